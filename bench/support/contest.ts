/** What the service's code does beside what the bare client does, against the same engine in the same run. */
import { median, table, verdict } from './report.js';

/** One kind of work, done either way; each resolves with how many a second. */
export interface Contest {
  readonly what: string;
  readonly bare: () => Promise<number>;
  readonly ours: () => Promise<number>;
}

/** Contests on one engine. */
export interface Arena {
  /** Which server, in words. */
  readonly engine: string;
  /** Whether figures on it mean anything: not on a server that only stands in for the real one. */
  readonly judged: boolean;
  readonly contests: readonly Contest[];
  /** Closes the clients and removes what was written. */
  close(): Promise<void>;
}

/**
 * Rounds of both alternate, who goes first too: what the machine and the server do meanwhile falls on either. The
 * median round counts; prints a table, and whether each reaches `least` of the bare client's figure.
 */
export async function compete({ engine, judged, contests }: Arena, rounds: number, least: number): Promise<void> {
  const rows: { what: string; adapter: number; bare: number; ratio: number }[] = [];
  for (const { what, bare, ours } of contests) {
    await bare();
    await ours();
    const figures: { bare: number; ours: number }[] = [];
    for (let n = 0; n < rounds; n++)
      figures.push(
        n % 2 === 0 ? { bare: await bare(), ours: await ours() } : { ours: await ours(), bare: await bare() },
      );
    rows.push({
      what,
      adapter: median(figures.map((one) => one.ours)),
      bare: median(figures.map((one) => one.bare)),
      ratio: median(figures.map((one) => one.ours / one.bare)),
    });
  }
  console.log(`\n${engine}:`);
  table(rows);
  if (judged)
    for (const { what, ratio } of rows) verdict(`of what the bare client does: ${what}`, ratio, { atLeast: least });
  else console.log('No verdict: this is not the real engine.');
}

/** Runs `work` for each of the items, so many at once. @returns how many a second */
export async function inFlight<T>(
  count: number,
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
): Promise<number> {
  const began = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: count }, async () => {
      while (next < items.length) await work(items[next++] as T);
    }),
  );
  return (items.length / (performance.now() - began)) * 1_000;
}

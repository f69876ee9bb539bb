/** Runs many seeds in a few processes, each of which runs one seed after the other. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { inParallel } from '../../src/lib/async/inParallel.js';
import { failedReport, type SeedReport } from './seedReport.js';

export interface SeedOrder {
  readonly seed: number;
  /** Virtual ms in which clients act. */
  readonly forMs: number;
  /** Whether it is run again, to compare the two. */
  readonly twice: boolean;
}

/** Of so many seeds one is run twice. */
const TWICE_EVERY = 20;
/** Megabytes of young objects: with the default the collector takes a fourteenth of the time. */
const YOUNG_SPACE = '--max-semi-space-size=64';
const PROGRAM = fileURLToPath(new URL('seedProcess.js', import.meta.url));

/**
 * Runs seeds in so many processes at once.
 * @param onReport called for each seed as soon as it has run; a process that died is a finding of its seed
 */
export async function runSeeds(
  seeds: readonly number[],
  { forMs, processes }: { readonly forMs: number; readonly processes: number },
  onReport: (report: SeedReport) => void,
): Promise<void> {
  const idle: ChildProcess[] = [];
  await inParallel(seeds, processes, async (seed) => {
    const child = idle.pop() ?? fork(PROGRAM, { execArgv: [...process.execArgv, YOUNG_SPACE] });
    const report = await answered(child, { seed, forMs, twice: seed % TWICE_EVERY === 0 });
    // After an error that nothing handled, the next seed begins anew.
    if (report.hash === '') child.kill();
    else idle.push(child);
    onReport(report);
  });
  for (const child of idle) child.disconnect();
}

async function answered(child: ChildProcess, order: SeedOrder): Promise<SeedReport> {
  const over = new AbortController();
  const { signal } = over;
  const died = once(child, 'exit', { signal }).then(([code, by]) =>
    failedReport(order.seed, `the process died: ${String(by ?? `exit code ${String(code)}`)}`),
  );
  const sent = once(child, 'message', { signal }).then(([report]) => report as SeedReport);
  child.send(order);
  try {
    return await Promise.race([sent, died]);
  } finally {
    over.abort();
    await Promise.allSettled([sent, died]);
  }
}

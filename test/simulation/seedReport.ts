/** What the run of a seed shows, as plain data: processes send it to one another. */
import type { Finding } from './model/finding.js';
import type { History } from './model/history.js';
import { type Run, type RunOptions, simulate } from './simulate.js';

/** How often each of something happened, by name. */
export type Counts = Readonly<Record<string, number>>;

export interface SeedReport {
  readonly seed: number | string;
  /** Of all entries; empty: the run failed. */
  readonly hash: string;
  readonly entries: number;
  /** Virtual ms in which something happened. */
  readonly busyMs: number;
  readonly answers: Counts;
  readonly faults: Counts;
  readonly marks: Counts;
  /** What must not be; an error that ended the run is one. */
  readonly findings: readonly Finding[];
}

/** Runs a seed. It does not throw. */
export async function reportOf(options: RunOptions): Promise<SeedReport> {
  const { seed } = options;
  try {
    return toReport(seed, await simulate(options));
  } catch (error) {
    const { stack, message, cause } = error as Error;
    return failedReport(seed, `${stack ?? message}\ncause: ${(cause as Error | undefined)?.stack ?? 'none'}`);
  }
}

/** Runs a seed twice. Where the two differ, that is the one finding: whatever else one shows can't be repeated. */
export async function reportOfTwo(options: RunOptions): Promise<SeedReport> {
  const [first, second] = [await reportOf(options), await reportOf(options)];
  if (first.hash === second.hash) return first;
  const text = `one run has the hash ${first.hash}, the other ${second.hash}`;
  return { ...first, findings: [{ rule: 'not repeatable', text }] };
}

/** The report of a run that ended by an error. */
export function failedReport(seed: number | string, text: string): SeedReport {
  const nothing = { hash: '', entries: 0, busyMs: 0, answers: {}, faults: {}, marks: {} };
  return { seed, ...nothing, findings: [{ rule: 'failed', text }] };
}

function toReport(seed: number | string, { simulation, history, findings }: Run): SeedReport {
  return {
    seed,
    hash: simulation.hash(),
    entries: simulation.entries(),
    busyMs: simulation.busyMs(),
    answers: answersOf(history),
    faults: Object.fromEntries(simulation.faults.counts()),
    marks: Object.fromEntries(simulation.marks.counts()),
    findings,
  };
}

/** How often each kind of request had each status. */
function answersOf(history: History): Counts {
  return sumOf(history.map(({ operation, answer }) => ({ [`${operation.kind} ${answer?.status ?? 'unknown'}`]: 1 })));
}

/** The sum of counts, in the order of their names. */
export function sumOf(all: Iterable<Counts>): Counts {
  const sums = new Map<string, number>();
  for (const counts of all)
    for (const [name, count] of Object.entries(counts)) sums.set(name, (sums.get(name) ?? 0) + count);
  return Object.fromEntries([...sums].sort(([one], [other]) => (one < other ? -1 : 1)));
}

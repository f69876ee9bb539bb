/** What the system says of a process and its threads. */
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

export interface Thread {
  /** `main thread`, or the thread's place in the order of their start. */
  readonly name: string;
  /** Microseconds of processor time so far. */
  readonly used: number;
  /** How often the thread has gone to sleep so far. */
  readonly sleeps: number;
}

/** @param pid the process's id */
export function threadsOf(pid: number): readonly Thread[] {
  const tasks = readdirSync(`/proc/${pid}/task`).map(Number);
  return tasks
    .sort((one, other) => one - other)
    .map((task, index) => {
      const read = (file: string): string => readFileSync(`/proc/${pid}/task/${task}/${file}`, 'utf8');
      return {
        // Node before 24 gives its threads no names.
        name: index === 0 ? 'main thread' : named(read('comm').trim(), index + 1),
        used: Number(read('schedstat').split(' ')[0]) / 1_000,
        sleeps: Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(read('status'))?.[1]),
      };
    });
}

const named = (name: string, place: number): string =>
  name === 'node' ? `thread ${place}` : `thread ${place} (${name})`;

/** Megabytes (10^6 bytes) in memory. */
export const residentMb = (pid: number): number =>
  (Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1_024) / 1e6;

/** What follows requests is done once the process takes less of a core than this for so long. */
export const SETTLED = { share: 0.12, ms: 500 };

/**
 * Waits until a process has done what follows requests.
 * @param used its processor time so far, in microseconds
 * @throws Error after `mostMs`
 */
export async function settled(used: () => number, mostMs = Number.POSITIVE_INFINITY): Promise<void> {
  for (const end = performance.now() + mostMs; performance.now() < end;) {
    const [before, began] = [used(), performance.now()];
    await wait(SETTLED.ms);
    if ((used() - before) / 1_000 / (performance.now() - began) < SETTLED.share) return;
  }
  throw new Error('the service does not come to rest');
}

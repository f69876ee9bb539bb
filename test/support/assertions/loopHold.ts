/** How long work keeps the event loop from turning. */
import { readFileSync } from 'node:fs';

/**
 * Processor time of the main thread, ms: unlike the clock's it does not count what other processes of the machine take.
 * 0 where the system doesn't tell.
 */
function ownTime(): number {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  } catch {
    return 0;
  }
}

/** Its outcome, and the longest turn of the event loop until then, in ms of processor time. */
export async function heldDuring<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T; readonly longestMs: number }> {
  let longestMs = 0;
  let last = ownTime();
  let ticking = true;
  const tick = (): void => {
    const now = ownTime();
    longestMs = Math.max(longestMs, now - last);
    last = now;
    if (ticking) setImmediate(tick);
  };
  setImmediate(tick);
  try {
    const value = await work();
    tick();
    return { value, longestMs };
  } finally {
    ticking = false;
  }
}

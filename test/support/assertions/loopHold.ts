/** How long work keeps the event loop from turning. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

/** ms between two looks of the monitor. */
const RESOLUTION_MS = 1;

/** Its outcome, its time, and the longest time in which no timer could run, both in ms. */
export async function heldDuring<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T; readonly ms: number; readonly longestMs: number }> {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  await sleep(20);
  delay.reset();
  const began = performance.now();
  const value = await work();
  const ms = performance.now() - began;
  await sleep(5 * RESOLUTION_MS);
  delay.disable();
  return { value, ms, longestMs: delay.max / 1e6 };
}

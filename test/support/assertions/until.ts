/** Waiting for what comes by itself: once for all tests. */
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Looks again until `look` gives anything but `undefined` or `false`. @returns that. @throws Error naming `what` where
 * it takes longer than `withinMs`
 */
export async function eventually<T>(
  look: () => T | Promise<T>,
  withinMs = 60_000,
  what = 'what is looked for',
): Promise<Exclude<T, undefined | false>> {
  for (const end = performance.now() + withinMs; ; await sleep(10)) {
    const found = await look();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    if (performance.now() > end) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
  }
}

/** Waits until it holds, at most a minute. @throws Error naming `what` when it does not */
export async function until(holds: () => boolean | Promise<boolean>, what = 'the condition'): Promise<void> {
  await eventually(holds, undefined, what);
}

/** Waiting for what comes by itself: once for all tests. */
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The longest wait of a test, in ms: it tells what hangs from a slow machine, and is a bar for nothing. The runner, who
 * kills what says nothing, is more patient.
 */
export const DEADLINE_MS = 240_000;

/** For what must not be waited for: a test that did would hang. In ms. */
export const FOR_EVER_MS = 600_000;

/**
 * Looks again until `look` gives anything but `undefined` or `false`. @returns that. @throws Error naming `what` where
 * it takes longer than `DEADLINE_MS`
 */
export async function eventually<T>(
  look: () => T | Promise<T>,
  what = 'what is looked for',
): Promise<Exclude<T, undefined | false>> {
  for (const began = performance.now(); ;) {
    const found = await look();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    const waited = performance.now() - began;
    if (waited > DEADLINE_MS) throw new Error(`waited ${DEADLINE_MS} ms in vain for ${what}`);
    // What takes long is looked at less often: on a machine with much to do, looking is work that holds it up.
    await sleep(Math.min(50, 10 + waited / 20));
  }
}

/** Waits until it holds, at most `DEADLINE_MS`. @throws Error naming `what` when it does not */
export async function until(holds: () => boolean | Promise<boolean>, what = 'the condition'): Promise<void> {
  await eventually(holds, what);
}

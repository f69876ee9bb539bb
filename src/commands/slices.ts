/** Long loops in slices, so that the event loop is never held for long. */
import { setImmediate } from 'node:timers/promises';

const SLICE_MS = 8;

/** Calls `each` for every item in order and yields to the event loop every 8 ms. What `each` throws ends it. */
export async function inSlices<T>(items: Iterable<T>, each: (item: T, index: number) => void): Promise<void> {
  let since = performance.now();
  let index = 0;
  for (const item of items) {
    each(item, index++);
    if (performance.now() - since < SLICE_MS) continue;
    await setImmediate();
    since = performance.now();
  }
}

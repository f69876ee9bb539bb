/** Long loops in slices, so that other work of the process is never held up for long. */
import { setImmediate as nextTurn } from 'node:timers/promises';

const SLICE_MS = 5;
/** For work of lower priority than answers, such as folds. */
export const LOW_PRIORITY_SLICE_MS = 3;

export interface Slices {
  /** Starts a slice, where nothing ran just before. */
  start(): void;
  /** The slice is used up: `await rest()`. With small steps, ask once in some dozen. */
  due(): boolean;
  rest(): Promise<void>;
}

/** `ms`: length of a slice, default 5. */
export function slices(ms = SLICE_MS): Slices {
  let began = performance.now();
  return {
    start() {
      began = performance.now();
    },
    due: () => performance.now() - began >= ms,
    async rest() {
      await nextTurn();
      began = performance.now();
    },
  };
}

/** Calls `each` for every item in order, and yields to the event loop after each slice. An error of `each` ends it. */
export async function inSlices<T>(items: Iterable<T>, each: (item: T, index: number) => void): Promise<void> {
  const time = slices();
  let index = 0;
  for (const item of items) {
    each(item, index++);
    if (time.due()) await time.rest();
  }
}

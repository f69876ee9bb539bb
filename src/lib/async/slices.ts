/** Long loops in slices, so that they never hold up for long what else the same process does. */
import { setImmediate as nextTurn } from 'node:timers/promises';

const SLICE_MS = 5;
/**
 * Of work beside the answers, such as folds: reading, storing and answering have slices of their own in the same turn
 * of the event loop.
 */
export const BESIDE_SLICE_MS = 3;

/** The clock of one long loop. */
export interface Slices {
  /** Begins a slice, where nothing ran just before. */
  begin(): void;
  /**
   * Whether the slice is used up; then `await rest()`. Cheap, but not free: where steps are small, ask once in some
   * dozen.
   */
  due(): boolean;
  /** Lets the event loop turn, then begins the next slice. */
  rest(): Promise<void>;
}

/** Begins the first slice. `ms`: how long one runs, default 5. */
export function slices(ms = SLICE_MS): Slices {
  let began = performance.now();
  return {
    begin() {
      began = performance.now();
    },
    due: () => performance.now() - began >= ms,
    async rest() {
      await nextTurn();
      began = performance.now();
    },
  };
}

/**
 * Calls `each` for every item in order and yields to the event loop after each slice (`slices`). What `each` throws
 * ends it.
 */
export async function inSlices<T>(items: Iterable<T>, each: (item: T, index: number) => void): Promise<void> {
  const time = slices();
  let index = 0;
  for (const item of items) {
    each(item, index++);
    if (time.due()) await time.rest();
  }
}

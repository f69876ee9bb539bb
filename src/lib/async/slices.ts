/** Long synchronous work in slices of a few milliseconds, between which the event loop turns. */
import { nextTurn, ticks } from '../world.js';

const SLICE_MS = 5;
/** Milliseconds of a slice of work with lower priority than answers, such as folds. */
export const LOW_PRIORITY_SLICE_MS = 3;

export interface Slices {
  start(): void;
  /** Whether the slice is over: then `await rest()`. With small steps, checking every few dozen is enough. */
  due(): boolean;
  rest(): Promise<void>;
}

export function slices(ms = SLICE_MS): Slices {
  let began = ticks();
  return {
    start() {
      began = ticks();
    },
    due: () => ticks() - began >= ms,
    async rest() {
      await nextTurn();
      began = ticks();
    },
  };
}

export async function inSlices<T>(items: Iterable<T>, each: (item: T, index: number) => void): Promise<void> {
  const time = slices();
  let index = 0;
  for (const item of items) {
    each(item, index++);
    if (time.due()) await time.rest();
  }
}

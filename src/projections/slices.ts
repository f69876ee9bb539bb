/** Keeps long loops from holding up the requests that the same process answers. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long a loop runs before it lets others run, in ms. */
const SLICE_MS = 6;

/** The clock of one long loop. */
export interface Slices {
  /** Whether the slice is used up; then `await rest()`. Cheap, but not free: ask once in some dozen steps. */
  due(): boolean;
  /** Lets the event loop turn, then begins the next slice. */
  rest(): Promise<void>;
}

/** Begins the first slice. */
export function slices(): Slices {
  let began = performance.now();
  return {
    due: () => performance.now() - began >= SLICE_MS,
    async rest() {
      await nextTurn();
      began = performance.now();
    },
  };
}

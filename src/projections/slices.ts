/** Keeps long loops from holding up the requests that the same process answers. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long a loop runs before it lets others run, in ms. Reading and storing have slices of their own in the same turn of the event loop. */
const SLICE_MS = 3;

/** The clock of one long loop. */
export interface Slices {
  /** Begins a slice, where nothing ran just before. */
  begin(): void;
  /** Whether the slice is used up; then `await rest()`. Cheap, but not free: ask once in some dozen steps. */
  due(): boolean;
  /** Lets the event loop turn, then begins the next slice. */
  rest(): Promise<void>;
}

/** Begins the first slice. */
export function slices(): Slices {
  let began = performance.now();
  return {
    begin() {
      began = performance.now();
    },
    due: () => performance.now() - began >= SLICE_MS,
    async rest() {
      await nextTurn();
      began = performance.now();
    },
  };
}

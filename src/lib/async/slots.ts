/** Limits the number of concurrent runs. Waiting callers get slots in the order of their calls. */
import { type Deferred, deferred } from './deferred.js';

export interface Slots {
  /** Takes a slot. @returns the function that frees it; repeated calls do nothing @throws the error of `fail` */
  take(): Promise<() => void>;
  /** The number of slots that are taken; below it, the number of callers that wait for one. */
  readonly taken: number;
  readonly waiting: number;
  /** Rejects all waiting calls of `take`. */
  fail(error: Error): void;
}

export function openSlots(limit: number): Slots {
  const waiting: Deferred<() => void>[] = [];
  let taken = 0;

  const slot = (): (() => void) => {
    taken += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      taken -= 1;
      // The slot is passed on in the same turn, so that a later call of `take` can't overtake.
      waiting.shift()?.resolve(slot());
    };
  };

  return {
    async take() {
      if (taken < limit) return slot();
      const turn = deferred<() => void>();
      waiting.push(turn);
      return turn.promise;
    },
    get taken() {
      return taken;
    },
    get waiting() {
      return waiting.length;
    },
    fail(error) {
      for (const { reject } of waiting.splice(0)) reject(error);
    },
  };
}

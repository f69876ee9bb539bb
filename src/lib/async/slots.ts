/** Limits how many run at once. First come, first served. */
import { type Deferred, deferred } from './deferred.js';

export interface Slots {
  /** Resolves with what frees the slot, once or again. @throws the error of `fail` */
  take(): Promise<() => void>;
  /** How many hold a slot, and how many wait for one. */
  readonly taken: number;
  readonly waiting: number;
  /** Rejects those who wait. */
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
      // In the same turn, so that a newcomer can't overtake.
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

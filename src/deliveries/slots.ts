/** A limited number of attempts at once. First come, first served. */
export interface Slots {
  /** Resolves with what frees it, once or again. */
  take(): Promise<() => void>;
}

export function openSlots(limit: number): Slots {
  const waiting: ((free: () => void) => void)[] = [];
  let taken = 0;

  const slot = (): (() => void) => {
    taken += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      taken -= 1;
      waiting.shift()?.(slot());
    };
  };

  return {
    take: async () => (taken < limit ? slot() : new Promise((resolve) => waiting.push(resolve))),
  };
}

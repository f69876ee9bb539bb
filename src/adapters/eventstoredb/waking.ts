/** Waiting for what is changed elsewhere in this process. */

/** Those who wait for one thing. */
export interface Waking {
  /** Has each who waits look again. */
  wake(): void;
  /** Waits until `enough`, for at most `ms`. */
  until(enough: () => boolean, ms: number): Promise<void>;
}

/** Nobody waits yet. */
export function openWaking(): Waking {
  const waiting = new Set<() => void>();
  return {
    wake() {
      for (const look of waiting) look();
    },
    async until(enough, ms) {
      if (enough()) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, ms);
        function done(): void {
          clearTimeout(timer);
          waiting.delete(look);
          resolve();
        }
        function look(): void {
          if (enough()) done();
        }
        waiting.add(look);
      });
    },
  };
}

export interface Waking {
  wake(): void;
  until(enough: () => boolean, ms: number): Promise<void>;
}

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

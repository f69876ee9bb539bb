export interface Waking {
  wake(): void;
  until(enough: () => boolean, ms: number): Promise<void>;
}

export function openWaking(): Waking {
  const waiting = new Set<() => void>();
  return {
    wake() {
      for (const check of waiting) check();
    },
    async until(enough, ms) {
      if (enough()) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, ms);
        function done(): void {
          clearTimeout(timer);
          waiting.delete(check);
          resolve();
        }
        function check(): void {
          if (enough()) done();
        }
        waiting.add(check);
      });
    },
  };
}

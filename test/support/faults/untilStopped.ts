/** Traffic beneath a test: readers and writers who go on until they are stopped, or one of them fails. */
export interface Traffic {
  /** Stops all of it and waits for its end. @throws what any of it threw */
  stop(): Promise<void>;
}

/** Begins it. Each of `works` looks at `on()` between two things it does. */
export function untilStopped(works: readonly ((on: () => boolean) => Promise<void>)[]): Traffic {
  let stopped = false;
  const all = Promise.all(works.map((work) => work(() => !stopped)));
  // Told by `stop`; until then the others need not go on.
  all.catch(() => {
    stopped = true;
  });
  return {
    async stop() {
      stopped = true;
      await all;
    },
  };
}

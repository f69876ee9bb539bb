/** Traffic beneath a test: readers and writers that run until they are stopped, or one fails. */
export interface Traffic {
  /** Stops all of it and waits for its end. @throws any of its errors */
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

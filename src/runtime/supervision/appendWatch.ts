/** Watches whether appends to the log work, for readiness: with a full disk reads and pings go on. */
import { type EventStore, LogSealedError } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';

/**
 * How long a failure counts, in ms, while nothing is appended: later one has to be tried, or no process would ever be
 * ready again.
 */
const TOLD_MS = 5_000;

export interface AppendsFail {
  /** The first failure since the last append that worked. */
  readonly since: Date;
  /** Why, in words for anybody; `undefined`: the engine can't be reached. */
  readonly why: string | undefined;
}

export interface AppendWatch {
  readonly events: EventStore;
  /** Whether the last append failed, and since when; `undefined`: it did not, or that was some time ago. */
  failing(): AppendsFail | undefined;
}

/**
 * Watches the log. A refusal is no failure, nor is a sealed log, which readiness reports itself. `toldMs`: default 5 s.
 */
export function watchAppends(events: EventStore, toldMs = TOLD_MS): AppendWatch {
  let failed: (AppendsFail & { readonly at: number }) | undefined;

  async function watched<T>(append: Promise<T>): Promise<T> {
    try {
      const done = await append;
      failed = undefined;
      return done;
    } catch (error) {
      if (error instanceof UnavailableError && !(error instanceof LogSealedError))
        failed = { since: failed?.since ?? new Date(), why: error.publicReason, at: performance.now() };
      throw error;
    }
  }

  const { appendInOrder } = events;
  return {
    events: {
      ...events,
      append: async (...asked) => watched(events.append(...asked)),
      ...(appendInOrder === undefined
        ? {}
        : { appendInOrder: async (...asked: Parameters<typeof appendInOrder>) => watched(appendInOrder(...asked)) }),
    },
    failing: () => (failed === undefined || performance.now() - failed.at > toldMs ? undefined : failed),
  };
}

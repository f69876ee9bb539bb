/** Watches whether appends to the log work, for readiness: where its disk is full, reads and pings go on as ever. */
import { type EventStore, LogSealedError } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';

/**
 * A failure is told for so long, in ms, while nobody appends: later somebody has to try, or no process would ever be
 * ready again.
 */
const TOLD_MS = 5_000;

/** Appends that fail. */
export interface AppendsFail {
  /** The first that failed, of those without one in between that did not. */
  readonly since: Date;
  /** Why, in words for anybody; `undefined`: the engine can't be reached. */
  readonly why: string | undefined;
}

/** The watched log. */
export interface AppendWatch {
  /** The same store. */
  readonly events: EventStore;
  /** Whether the last append failed, and when that began; `undefined`: it did not, or that was some time ago. */
  failing(): AppendsFail | undefined;
}

/**
 * Begins to watch. A refusal, such as a conflict, is no failure; nor is a sealed log, of which readiness tells by
 * itself. `toldMs`: default 5 s.
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

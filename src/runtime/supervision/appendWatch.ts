/** Watches appends for readiness: with a full disk reads and pings still work. */
import { systemMs, ticks } from '../../lib/world.js';
import { type EventStore, LogSealedError } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';

/**
 * Milliseconds that a failed append makes a process unready. Then an append must be tried, or no process would become
 * ready again.
 */
const RECENT_MS = 5_000;

interface AppendsFail {
  readonly since: Date;
  /** Reason that anyone may see; `undefined`: the engine can't be reached. */
  readonly why: string | undefined;
}

export interface AppendWatch {
  readonly events: EventStore;
  /** `undefined`: the last append succeeded, or failed some time ago. */
  failing(): AppendsFail | undefined;
}

/**
 * Wraps appends to note their failures. A refused append is no failure, nor is a sealed log, which readiness reports
 * itself.
 */
export function watchAppends(events: EventStore, recentMs = RECENT_MS): AppendWatch {
  let failed: (AppendsFail & { readonly at: number }) | undefined;

  async function watched<T>(append: Promise<T>): Promise<T> {
    try {
      const done = await append;
      failed = undefined;
      return done;
    } catch (error) {
      if (error instanceof UnavailableError && !(error instanceof LogSealedError))
        failed = { since: failed?.since ?? new Date(systemMs()), why: error.publicReason, at: ticks() };
      throw error;
    }
  }

  const { appendInOrder } = events;
  return {
    events: {
      ...events,
      append: async (...args) => watched(events.append(...args)),
      ...(appendInOrder === undefined
        ? {}
        : { appendInOrder: async (...args: Parameters<typeof appendInOrder>) => watched(appendInOrder(...args)) }),
    },
    failing: () => (failed === undefined || ticks() - failed.at > recentMs ? undefined : failed),
  };
}

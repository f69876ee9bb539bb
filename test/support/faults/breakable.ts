/** An event store whose feeds fail on demand, while they wait or read. */
import type { EventBatch, EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';

/** The store, and how its feeds are broken. */
export interface Breakable {
  readonly events: EventStore;
  /** Has every feed that follows fail, once there are so many. @returns whether there were */
  breakFeeds(error: unknown, least: number): boolean;
}

/** One of every class of error that a feed can end with. */
export const FEED_ERRORS: readonly (() => unknown)[] = [
  () => new UnavailableError('an engine is lost'),
  () => new RangeError('18446744073709551615 is no position'),
  () => new TypeError('undefined is not a function'),
  () => new Error('an error of no class'),
  () => 'a rejection that is no error',
];

/** The same store until it is broken. */
export function breakable(events: EventStore): Breakable {
  const breaks = new Set<(error: unknown) => void>();
  return {
    events: {
      ...events,
      async *follow(after, filter, options = {}) {
        const ended = new AbortController();
        const signal = options.signal === undefined ? ended.signal : AbortSignal.any([options.signal, ended.signal]);
        let broken: (error: unknown) => void = () => undefined;
        const breaking = new Promise<{ readonly broken: unknown }>((resolve) => {
          broken = (error) => resolve({ broken: error });
        });
        const batches = events.follow(after, filter, { ...options, signal })[Symbol.asyncIterator]();
        breaks.add(broken);
        try {
          for (;;) {
            const next: IteratorResult<EventBatch> | { readonly broken: unknown } = await Promise.race([
              breaking,
              batches.next(),
            ]);
            if ('broken' in next) throw next.broken;
            if (next.done === true) return;
            yield next.value;
          }
        } finally {
          breaks.delete(broken);
          ended.abort();
        }
      },
    },
    breakFeeds(error, least) {
      // Followers that fail one by one would pause for longer and longer, and never follow at the same time.
      if (breaks.size < least) return false;
      for (const one of breaks) one(error);
      breaks.clear();
      return true;
    },
  };
}

/**
 * Keeps long work (a rebuild, a new version, a verification) from delaying requests. It runs at full speed while no
 * requests are answered. Else its rate follows the event-loop delay of the answering processes.
 */
import { sleep, ticks } from '../../lib/world.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore, Records, WriteBatch } from '../../ports/readStore.js';
import { servingNow } from './serving.js';

const POLL_MS = 1_000;
/** Batch size while requests are answered on the same thread. */
const EVENTS = 100;
/** Documents in one write while requests are answered, since other writers wait for the store's lock. */
const DOCUMENTS = 200;
/** Events a second while requests are answered: the first rate, and the least. */
const RATE = { first: 8_000, least: 500 };
/** Event-loop delay in ms: below `good` the rate rises, above `bad` it falls. */
const DELAY = { good: 4, bad: 8 };

export interface Pace {
  /** Whether requests were being answered at the last poll of the load. */
  readonly polite: boolean;
  /** Pauses the work if its last `events` events came faster than the rate allows. */
  rest(events: number, signal?: AbortSignal): Promise<void>;
}

/** Time as a pace sees it, in ms; default the monotonic clock. */
const CLOCK = {
  now: ticks,
  sleep: (ms: number, signal: AbortSignal | undefined): Promise<void> => sleep(ms, { signal }),
};

export function considerate(records: Records, clock = CLOCK): Pace {
  let polite = false;
  let rate = RATE.first;
  let readAt = Number.NEGATIVE_INFINITY;
  let next = 0;

  async function readLoad(now: number): Promise<void> {
    readAt = now;
    // An engine that does not answer fails the work itself, so the failure is ignored here.
    const { requests, delayMs } = await servingNow(records).catch(() => ({
      requests: polite ? 1 : 0,
      delayMs: DELAY.good,
    }));
    const before = polite;
    polite = requests > 0;
    if (!before) rate = delayMs > DELAY.bad ? RATE.least : RATE.first;
    else if (polite && delayMs > DELAY.bad) rate = Math.max(RATE.least, rate / 2);
    else if (polite && delayMs < DELAY.good) rate *= 1.25;
  }

  return {
    get polite() {
      return polite;
    },
    async rest(events, signal) {
      const now = clock.now();
      if (now - readAt >= POLL_MS) await readLoad(now);
      if (!polite) return;
      next = Math.max(next, now) + (events / rate) * 1_000;
      const wait = next - clock.now();
      if (wait >= 1) await clock.sleep(wait, signal).catch(() => undefined);
    },
  };
}

export function paced<E extends Pick<EventStore, 'follow' | 'readAll'>, S extends Pick<ReadStore, 'write'>>(
  { events, store }: { readonly events: E; readonly store: S },
  pace: Pace,
): { readonly events: E; readonly store: S } {
  const slowed = (read: EventStore['follow']): EventStore['follow'] =>
    async function* (after, filter, options = {}) {
      let position = after;
      await pace.rest(0);
      for (;;) {
        const { polite } = pace;
        let ended = true;
        for await (const batch of read(position, filter, polite ? { ...options, batchSize: EVENTS } : options)) {
          position = batch.position;
          yield batch;
          await pace.rest(batch.events.length, options.signal);
          if (pace.polite === polite) continue;
          ended = false;
          break;
        }
        if (ended) return;
      }
    };

  /** Writes in parts, and pauses after each part for as long as it took (50 ms at most), for other writers. */
  async function write(batches: readonly WriteBatch[]): Promise<void> {
    if (!pace.polite) return store.write(batches);
    for (const { collection, documents, checkpoint } of batches) {
      for (let from = 0; from === 0 || from < documents.length; from += DOCUMENTS) {
        const last = from + DOCUMENTS >= documents.length;
        const start = ticks();
        await store.write([
          {
            collection,
            documents: documents.slice(from, from + DOCUMENTS),
            ...(last && checkpoint !== undefined ? { checkpoint } : {}),
          },
        ]);
        await sleep(Math.min(50, ticks() - start));
      }
    }
    return undefined;
  }

  return {
    events: { ...events, follow: slowed(events.follow), readAll: slowed(events.readAll) },
    store: { ...store, write },
  };
}

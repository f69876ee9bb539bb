/**
 * Keeps long work (a rebuild, a new version, a verification) from holding up requests. While nobody asks for anything
 * it runs at full speed; while anybody does, a little at a time, and the faster the less the processes that answer are
 * held up.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore, Records, WriteBatch } from '../../ports/readStore.js';
import { servingNow } from '../readmodels/serving.js';

/** How often it looks how busy they are, in ms. */
const LOOK_MS = 1_000;
/** Events read at once while requests are answered: on the same thread they are held up by no more than that. */
const EVENTS = 100;
/** Documents written at once: others wait for the store's lock meanwhile. */
const DOCUMENTS = 200;
/** Events a second: at first, and at least. */
const RATE = { first: 8_000, least: 500 };
/** Delays of an event loop, in ms, below which more is tried, and above which less is done. */
const DELAY = { good: 4, bad: 8 };

/** The pace of one piece of long work. */
export interface Pace {
  /** Whether requests are answered meanwhile, as far as is known. */
  readonly polite: boolean;
  /** After work on so many events: looks at the clock, and rests if it is time to. @param signal ends the rest. */
  rest(events: number, signal?: AbortSignal): Promise<void>;
}

/** A pace that goes by how busy the processes are that answer requests. */
export function considerate(records: Records): Pace {
  let polite = false;
  let rate = RATE.first;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let next = 0;

  async function look(now: number): Promise<void> {
    lookedAt = now;
    // An engine that does not answer leaves what was known; the work itself meets it.
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
      const now = performance.now();
      if (now - lookedAt >= LOOK_MS) await look(now);
      if (!polite) return;
      next = Math.max(next, now) + (events / rate) * 1_000;
      const wait = next - performance.now();
      if (wait >= 1) await sleep(wait, undefined, { signal }).catch(() => undefined);
    },
  };
}

/** The engines as work at that pace uses them. */
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

  /** Each part is written before the next is handed over, and others get as long as it took. */
  async function write(batches: readonly WriteBatch[]): Promise<void> {
    if (!pace.polite) return store.write(batches);
    for (const { collection, documents, checkpoint } of batches) {
      for (let from = 0; from === 0 || from < documents.length; from += DOCUMENTS) {
        const last = from + DOCUMENTS >= documents.length;
        const began = performance.now();
        await store.write([
          {
            collection,
            documents: documents.slice(from, from + DOCUMENTS),
            ...(last && checkpoint !== undefined ? { checkpoint } : {}),
          },
        ]);
        await sleep(Math.min(50, performance.now() - began));
      }
    }
    return undefined;
  }

  return {
    events: { ...events, follow: slowed(events.follow), readAll: slowed(events.readAll) },
    store: { ...store, write },
  };
}

/** Reads the log once, span of time after span, in constant memory. */
import type { EventFilter, EventStore, RecordedEvent } from '../ports/eventStore.js';
import { positionAt } from './positionAt.js';

/** Clocks of several machines differ: what was decided earlier may stand this much later in the log, ms. */
const CLOCKS_MS = 10 * 60_000;

/** A clock that was ahead for a while leaves times of other days in the middle of one: that has been read whole once all times have been later for so long, ms. */
const SURE_MS = 2 * 3_600_000;

/** The events of a filter, as they stand in the log. */
export interface SpanFeed {
  /**
   * The events decided from the day's beginning on and before `to` (ms since the epoch) that no earlier call gave. `last`: nothing is asked for after this, so
   * late ones count too. @throws UnavailableError
   */
  until(to: number, last: boolean): AsyncIterable<RecordedEvent>;
  close(): Promise<void>;
}

/** Opens it for a day: ms since the epoch, from its first up to but not its last. @throws UnavailableError */
export async function openSpanFeed(events: EventStore, day: { readonly from: number; readonly to: number }, filter: EventFilter): Promise<SpanFeed> {
  const start = await positionAt(events, new Date(day.from - CLOCKS_MS).toISOString());
  const abort = new AbortController();
  const reading = flat(events.readAll(start, filter, { signal: abort.signal }));
  let held: RecordedEvent | undefined;
  let ended = false;

  /** The next event of the day, or shortly after it. */
  async function next(): Promise<RecordedEvent | undefined> {
    let laterSince = Number.POSITIVE_INFINITY;
    while (!ended) {
      const { value: event } = await reading.next();
      const at = event === undefined ? Number.POSITIVE_INFINITY : Date.parse(event.at);
      if (at < day.to + CLOCKS_MS) return event;
      laterSince = Math.min(laterSince, at);
      ended = event === undefined || at - laterSince >= SURE_MS;
    }
    return undefined;
  }

  return {
    async *until(to, last) {
      const end = last ? to + CLOCKS_MS : to;
      for (;;) {
        held ??= await next();
        if (held === undefined) return;
        const at = Date.parse(held.at);
        if (at >= end) return;
        const event = held;
        held = undefined;
        if (at >= day.from && at < to) yield event;
      }
    },
    async close() {
      abort.abort();
      await reading.return(undefined);
    },
  };
}

async function* flat(batches: AsyncIterable<{ readonly events: readonly RecordedEvent[] }>): AsyncGenerator<RecordedEvent, undefined> {
  for await (const batch of batches) yield* batch.events;
  return undefined;
}

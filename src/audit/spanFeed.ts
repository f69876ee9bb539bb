/** Reads the log once, span of time after span, in constant memory. */
import type { EventFilter, EventStore, RecordedEvent } from '../ports/eventStore.js';
import { positionAt } from './positionAt.js';

/** Clocks of several machines differ: what was decided earlier may stand this much later in the log, ms. */
const CLOCKS_MS = 10 * 60_000;

/** The events of a filter, as they stand in the log. */
export interface SpanFeed {
  /**
   * The events decided from the feed's beginning on and before `to` (ms since the epoch) that no earlier call gave. `last`: nothing is asked for after this, so
   * late ones count too. @throws UnavailableError
   */
  until(to: number, last: boolean): AsyncIterable<RecordedEvent>;
  close(): Promise<void>;
}

/** Opens it at a time (ms since the epoch). @throws UnavailableError */
export async function openSpanFeed(events: EventStore, from: number, filter: EventFilter): Promise<SpanFeed> {
  const start = await positionAt(events, new Date(from - CLOCKS_MS).toISOString());
  const abort = new AbortController();
  const reading = flat(events.readAll(start, filter, { signal: abort.signal }));
  let held: RecordedEvent | undefined;

  return {
    async *until(to, last) {
      const end = last ? to + CLOCKS_MS : to;
      for (;;) {
        if (held === undefined) {
          const next = await reading.next();
          if (next.done === true) return;
          held = next.value;
        }
        const at = Date.parse(held.at);
        if (at >= end) return;
        const event = held;
        held = undefined;
        if (at >= from && at < to) yield event;
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

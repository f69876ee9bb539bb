/** Reads the log once, one span of time after another, in constant memory. */
import type { EventFilter, EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { readRange } from './range.js';
import { timeBounds } from './timeBounds.js';

/**
 * Largest difference between clocks of machines: an event may follow another in the log whose time is so much later.
 */
const CLOCK_SKEW_MS = 10 * 60_000;

export interface SpanFeed {
  /**
   * The next events with times before `to` (ms since the epoch), in log order. `last`: the final call, which includes
   * events that come late in the log.
   */
  until(to: number, last: boolean): AsyncIterable<RecordedEvent>;
  close(): Promise<void>;
}

/** Opens the feed of one day, in ms since the epoch, end exclusive. @throws UnavailableError */
export async function openSpanFeed(
  events: EventStore,
  day: { readonly from: number; readonly to: number },
  filter: EventFilter,
): Promise<SpanFeed> {
  const times = { from: iso(day.from), to: iso(day.to + CLOCK_SKEW_MS - 1) };
  const part = await timeBounds(events, times);
  const abort = new AbortController();
  const reading = flat(
    readRange(events, { after: part?.after ?? null, through: part?.through ?? null, ...times }, filter, abort.signal),
  );
  let held: RecordedEvent | undefined;

  return {
    async *until(to, last) {
      const end = last ? to + CLOCK_SKEW_MS : to;
      for (;;) {
        held ??= (await reading.next()).value ?? undefined;
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

const iso = (ms: number): string => new Date(ms).toISOString();

async function* flat(
  batches: AsyncIterable<{ readonly events: readonly RecordedEvent[] }>,
): AsyncGenerator<RecordedEvent, undefined> {
  for await (const batch of batches) yield* batch.events;
  return undefined;
}

/** Reads the log once, span of time after span, in constant memory. */
import type { EventFilter, EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { readRange } from './range.js';
import { timeBounds } from './timeBounds.js';

/** Clocks of several machines differ: what was decided earlier may stand this much later in the log, ms. */
const CLOCKS_MS = 10 * 60_000;

/** The events of a filter, as they stand in the log. */
export interface SpanFeed {
  /**
   * The events decided from the day's beginning on and before `to` (ms since the epoch) that no earlier call gave.
   * `last`: nothing is asked for after this, so late ones count too. @throws UnavailableError
   */
  until(to: number, last: boolean): AsyncIterable<RecordedEvent>;
  close(): Promise<void>;
}

/** Opens it for a day: ms since the epoch, from its first up to but not its last. @throws UnavailableError */
export async function openSpanFeed(
  events: EventStore,
  day: { readonly from: number; readonly to: number },
  filter: EventFilter,
): Promise<SpanFeed> {
  // As if the day were so much longer: who asks for its last span wants what was decided in it and stands later.
  const times = { from: iso(day.from), to: iso(day.to + CLOCKS_MS - 1) };
  const part = await timeBounds(events, times);
  const abort = new AbortController();
  const reading = flat(
    readRange(events, { after: part?.after ?? null, through: part?.through ?? null, ...times }, filter, abort.signal),
  );
  let held: RecordedEvent | undefined;

  return {
    async *until(to, last) {
      const end = last ? to + CLOCKS_MS : to;
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

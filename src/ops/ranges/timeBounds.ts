/**
 * Positions of times, and the events of a span of time, for every engine and order of times
 * (docs/decisions.md#spans-of-time).
 */
import type { EventBatch, EventStore, LogPart, Position, TimesWithin } from '../../ports/eventStore.js';

/** Some purchases and gifts, evenly spread: ids are random, so one in a few hundred starts so. */
const SAMPLES = ['transaction-00', 'gift-000'];

/**
 * A part of the log with every event whose own time is within these: the narrowest, where the engine can tell,
 * otherwise the whole log. Readers check each event's time (`isWithin`). `undefined`: there is none.
 * @throws UnavailableError
 */
export async function timeBounds(events: EventStore, within: TimesWithin): Promise<LogPart | undefined> {
  if (events.timeBounds !== undefined) return events.timeBounds(within);
  const through = await events.end();
  return through === undefined || (within.after !== undefined && within.after >= through)
    ? undefined
    : { after: within.after, through };
}

/** Both ends included. */
export function isWithin(
  { at }: { readonly at: string },
  { from, to }: { readonly from?: string | null | undefined; readonly to?: string | null | undefined },
): boolean {
  return (from ?? '') <= at && (to === undefined || to === null || at <= to);
}

/**
 * The log's position at a time (ISO 8601, UTC, milliseconds): that of its last event of that time or before;
 * `undefined` when the log begins later. Later stamps before it, by a clock that was ahead, are part of that state: a
 * state is a prefix of the log. Once the time has passed the position stays, unless a clock is set back before it.
 * @throws UnavailableError
 */
export async function positionAt(events: EventStore, time: string): Promise<Position | undefined> {
  return events.timeBounds === undefined ? byReading(events, time) : (await events.timeBounds({ to: time }))?.through;
}

/** First among samples, of which the engine looks only at names, then among all events after the last of them. */
async function byReading(events: EventStore, time: string): Promise<Position | undefined> {
  const sample = await lastUpTo(events.readAll(undefined, { streams: SAMPLES }), time);
  return (await lastUpTo(events.readAll(sample), time)) ?? sample;
}

/** The position of the last event of that time or before; `undefined`: there is none. */
async function lastUpTo(feed: AsyncIterable<EventBatch>, time: string): Promise<Position | undefined> {
  let last: Position | undefined;
  for await (const batch of feed) for (const event of batch.events) if (event.at <= time) last = event.position;
  return last;
}

/**
 * Where in the log a time stands, and the events of a span of time, whatever the engine and whatever the order of times
 * (docs/decisions.md 11).
 */
import type { EventBatch, EventStore, LogPart, Position, TimesWithin } from '../../ports/eventStore.js';

/** Some purchases and gifts, evenly over the log: ids are random, so one in a few hundred begins so. */
const SAMPLES = ['transaction-00', 'gift-000'];

/**
 * A part of the log that holds every event whose own time is within these; the narrowest, where the engine can tell,
 * else all of it: so whoever reads it looks at each event's time (`isWithin`). `undefined`: there is none.
 * @throws UnavailableError
 */
export async function timeBounds(events: EventStore, within: TimesWithin): Promise<LogPart | undefined> {
  if (events.timeBounds !== undefined) return events.timeBounds(within);
  const through = await events.end();
  return through === undefined || (within.after !== undefined && within.after >= through)
    ? undefined
    : { after: within.after, through };
}

/** Whether an event's own time is within these, both included. */
export function isWithin(
  { at }: { readonly at: string },
  { from, to }: { readonly from?: string | null | undefined; readonly to?: string | null | undefined },
): boolean {
  return (from ?? '') <= at && (to === undefined || to === null || at <= to);
}

/**
 * Where the log stood at a time (ISO 8601, UTC, milliseconds): the position of its last event of that time or before;
 * `undefined` when the log begins later. What was stamped later and stands before it, by a clock that was ahead, is
 * part of that state: a state is always a beginning of the log. Once the time has passed it keeps this place, unless a
 * clock is set back to before it.
 * @throws UnavailableError
 */
export async function positionAt(events: EventStore, time: string): Promise<Position | undefined> {
  return events.timeBounds === undefined ? byReading(events, time) : (await events.timeBounds({ to: time }))?.through;
}

/** First among samples, which costs the engine a look at names alone, then among all events after the last of them. */
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

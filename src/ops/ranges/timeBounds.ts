import type { EventBatch, EventStore, LogPart, Position, TimesWithin } from '../../ports/eventStore.js';

/** One of some hundred transactions, and fewer gifts: evenly spread, since ids are random. */
const SAMPLES = ['transaction-00', 'gift-000'];

/**
 * A part of the log that has every event of these times (docs/decisions.md#spans-of-time): the whole log where the
 * engine has no index of times. Readers check each event (`isWithin`). `undefined`: there is none.
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
 * The position of the last event of a time (ISO 8601, UTC, milliseconds) or before; `undefined`: there is none. The
 * state at that time is the log up to there: events before it with later times, by a clock that was ahead, are part of
 * it. The position of a past time stays, unless a clock is set back. @throws UnavailableError
 */
export async function positionAt(events: EventStore, time: string): Promise<Position | undefined> {
  return events.timeBounds === undefined ? byReading(events, time) : (await events.timeBounds({ to: time }))?.through;
}

/** First among samples, which the engine finds by stream name, then among all events after the last match. */
async function byReading(events: EventStore, time: string): Promise<Position | undefined> {
  const sample = await lastUpTo(events.readAll(undefined, { streams: SAMPLES }), time);
  return (await lastUpTo(events.readAll(sample), time)) ?? sample;
}

async function lastUpTo(feed: AsyncIterable<EventBatch>, time: string): Promise<Position | undefined> {
  let last: Position | undefined;
  for await (const batch of feed) for (const event of batch.events) if (event.at <= time) last = event.position;
  return last;
}

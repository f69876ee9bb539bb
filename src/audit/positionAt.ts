/** Turns a time into the place where the log stood then (decisions 11), whatever the engine. */
import type { EventBatch, EventStore, Position } from '../ports/eventStore.js';

/** Some purchases and gifts, evenly over the log: ids are random, so one in a few hundred begins so. */
const SAMPLES = ['transaction-00', 'gift-000'];

/**
 * The position of an event of `time` (ISO 8601, UTC, milliseconds) or before that is followed by a later one, or by nothing; `undefined` when the log begins later.
 * Events' times rise along the log but for the moments between decision and append, and the clocks of several machines: then one such place is found, and the
 * same one whenever it is asked for.
 * @throws UnavailableError
 */
export async function positionAt(events: EventStore, time: string): Promise<Position | undefined> {
  return events.positionAt === undefined ? byReading(events, time) : events.positionAt(time);
}

/** First between which two samples, which costs the engine a look at names alone, then every event in between. */
async function byReading(events: EventStore, time: string): Promise<Position | undefined> {
  const sample = await lastUpTo(events.readAll(undefined, { streams: SAMPLES }), time);
  return (await lastUpTo(events.readAll(sample), time)) ?? sample;
}

/** The last event's position before the first that is later; `undefined`: the first one is, or there is none. */
async function lastUpTo(feed: AsyncIterable<EventBatch>, time: string): Promise<Position | undefined> {
  let last: Position | undefined;
  for await (const batch of feed) {
    for (const event of batch.events) {
      if (event.at > time) return last;
      last = event.position;
    }
  }
  return last;
}

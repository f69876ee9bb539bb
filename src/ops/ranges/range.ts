/**
 * A part of the log: the events of a span of their own times, and the positions around them, resolved once so that the
 * range does not move (docs/decisions.md#spans-of-time).
 */
import type { EventBatch, EventFilter, EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { withoutMark } from '../exports/csv.js';
import { isWithin, timeBounds } from './timeBounds.js';
import { TimeError, type TimeZone } from './times.js';

/** A range as asked for and as read: events between the positions, whose own time is within the times. */
export interface LogRange {
  /** Everything after this position, null: from the beginning, */
  readonly after: Position | null;
  /** up to this one; null: the log was empty. */
  readonly through: Position | null;
  /** The first and the last instant: ISO 8601, UTC; null: none was given. */
  readonly from: string | null;
  readonly to: string | null;
  readonly time_zone: string;
}

/** A request in words. Days and times are of the zone. */
export interface RangeWords {
  readonly zone: TimeZone;
  readonly from?: string | undefined;
  /** A day is meant to its end. */
  readonly to?: string | undefined;
  /** Goes on after this position, where an earlier reading ended; its spelling in CSV will do. */
  readonly after?: string | undefined;
}

/** @throws TimeError for a malformed time or a position that is not in this log; UnavailableError */
export async function logRange(events: EventStore, { zone, from, to, after: given }: RangeWords): Promise<LogRange> {
  const after = given === undefined ? undefined : withoutMark(given);
  const first = from === undefined ? null : zone.instant(from, 'first');
  const last = to === undefined ? null : zone.instant(to, 'last');
  if (first !== null && last !== null && first > last)
    throw new TimeError(`from (${first}) is later than to (${last})`);
  const end = await events.end();
  if (after !== undefined) refuseUnlessPlace(events, after, end);
  const all = { after: after ?? null, through: end ?? null };
  if (first === null && last === null) return { ...all, from: first, to: last, time_zone: zone.name };
  const part = await timeBounds(events, { from: first ?? undefined, to: last ?? undefined, after });
  // Without an end, the log was searched to this position; without a past time, there is nothing.
  const none = last === null ? { after: end ?? null, through: end ?? null } : { after: null, through: null };
  const found =
    part === undefined ? none : { after: part.after ?? null, through: last === null ? (end ?? null) : part.through };
  return { ...found, from: first, to: last, time_zone: zone.name };
}

/**
 * Refuses an `after` that is not in the log, which ends at `end`: it is another log's, or mistyped. Nothing comes after
 * it, which would look like the end of a list. @throws TimeError
 */
export function refuseUnlessPlace(
  events: Pick<EventStore, 'isPosition'>,
  after: string,
  end: Position | undefined,
): void {
  if (events.isPosition(after) && end !== undefined && after <= end) return;
  throw new TimeError(
    `after must be a position of this log${end === undefined ? ', which is empty' : `, such as ${end}`}`,
  );
}

export function isInRange(
  event: Pick<RecordedEvent, 'at' | 'position'>,
  { after, through, from, to }: LogRange,
): boolean {
  return (
    through !== null &&
    event.position <= through &&
    (after === null || event.position > after) &&
    isWithin(event, { from, to })
  );
}

/**
 * The events of a range that pass a filter, in log order, in batches; each says how far the log was searched, at most
 * to the range's end.
 * @throws UnavailableError
 */
export async function* readRange(
  events: EventStore,
  range: Omit<LogRange, 'time_zone'>,
  filter: EventFilter,
  signal?: AbortSignal,
): AsyncGenerator<Pick<EventBatch, 'events' | 'position'>> {
  const { after, through } = range;
  if (through === null || (after !== null && after >= through)) return;
  for await (const batch of events.readAll(after ?? undefined, filter, { signal })) {
    const ended = batch.position >= through;
    yield {
      events: batch.events.filter((event) => event.position <= through && isWithin(event, range)),
      position: ended ? through : batch.position,
    };
    if (ended) return;
  }
}

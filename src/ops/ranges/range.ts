/**
 * A part of the log: the events of a span of time, by their own times, and the positions between which they stand,
 * found once, so that what is read does not move (decisions 11).
 */
import type { EventBatch, EventFilter, EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { withoutMark } from '../exports/csv.js';
import { isWithin, timeBounds } from './timeBounds.js';
import { TimeError, type TimeZone } from './times.js';

/**
 * The part, as it was asked for and as it is read: of the events between its positions those whose own time is in it.
 */
export interface LogRange {
  /** Everything after this position, from the beginning where it is null; */
  readonly after: Position | null;
  /** up to this one; null: the log had not begun. */
  readonly through: Position | null;
  /** The first and the last instant asked for: ISO 8601, UTC; null where none was. */
  readonly from: string | null;
  readonly to: string | null;
  readonly time_zone: string;
}

/** What was asked. Days and times are of the zone. */
export interface RangeWords {
  readonly zone: TimeZone;
  readonly from?: string | undefined;
  /** A day is meant to its end. */
  readonly to?: string | undefined;
  /** Goes on after this position, where an earlier reading ended; as it stands in CSV will do. */
  readonly after?: string | undefined;
}

/** The range of these words. @throws TimeError for what is no time or no position of this log; UnavailableError */
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
  // Up to where it was looked through for what has no end; where none of a past time is, nothing was there.
  const none = last === null ? { after: end ?? null, through: end ?? null } : { after: null, through: null };
  const found =
    part === undefined ? none : { after: part.after ?? null, through: last === null ? (end ?? null) : part.through };
  return { ...found, from: first, to: last, time_zone: zone.name };
}

/**
 * Refuses what was given as `after` and is no place in the log, which ends at `end`: one beyond it is another log's, or
 * mistyped. Nothing stands after it, which would pass for a list that has come to its end. @throws TimeError
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

/** Whether an event of a stream belongs to a range. */
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
 * The events of a range that a filter lets through, in log order, in batches; each says how far the log has been looked
 * at, at most to the range's end. @throws UnavailableError
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

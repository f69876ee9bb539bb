/** A part of the log: between two times, turned into positions once, so that what is read does not move (decisions 11). */
import type { EventBatch, EventFilter, EventStore, Position } from '../ports/eventStore.js';
import { positionAt } from './positionAt.js';
import { TimeError, type TimeZone } from './times.js';

/** The part, as it was asked for and as it is read. */
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
  /** Goes on after this position, where an earlier reading ended. */
  readonly after?: string | undefined;
}

/** The range of these words. @throws TimeError for what is no time or no position of this log; UnavailableError */
export async function logRange(events: EventStore, { zone, from, to, after }: RangeWords): Promise<LogRange> {
  const first = from === undefined ? null : zone.instant(from, 'first');
  const last = to === undefined ? null : zone.instant(to, 'last');
  if (first !== null && last !== null && first > last) throw new TimeError(`from (${first}) is later than to (${last})`);
  const end = await events.end();
  if (after !== undefined) refuseUnlessPlace(events, after, end);
  const through = last === null ? end : await positionAt(events, last);
  const begin = first === null ? undefined : await positionAt(events, new Date(Date.parse(first) - 1).toISOString());
  const later = after !== undefined && (begin === undefined || after > begin) ? after : begin;
  return { after: later ?? null, through: through ?? null, from: first, to: last, time_zone: zone.name };
}

/**
 * Refuses what was given as `after` and is no place in the log, which ends at `end`: one beyond it is another log's, or
 * mistyped. Nothing stands after it, which would pass for a list that has come to its end. @throws TimeError
 */
export function refuseUnlessPlace(events: Pick<EventStore, 'isPosition'>, after: string, end: Position | undefined): void {
  if (events.isPosition(after) && end !== undefined && after <= end) return;
  throw new TimeError(`after must be a position of this log${end === undefined ? ', which is empty' : `, such as ${end}`}`);
}

/** The events of a range that a filter lets through, in batches; each says how far the log has been looked at, at most to the range's end. @throws UnavailableError */
export async function* readRange(events: EventStore, { after, through }: Pick<LogRange, 'after' | 'through'>, filter: EventFilter, signal?: AbortSignal): AsyncGenerator<Pick<EventBatch, 'events' | 'position'>> {
  if (through === null || (after !== null && after >= through)) return;
  for await (const batch of events.readAll(after ?? undefined, filter, { signal })) {
    const ended = batch.position >= through;
    yield ended ? { events: batch.events.filter((event) => event.position <= through), position: through } : { events: batch.events, position: batch.position };
    if (ended) return;
  }
}

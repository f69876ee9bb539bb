import type { EventBatch, EventFilter, EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { withoutMark } from '../exports/csv.js';
import { isWithin, timeBounds } from './timeBounds.js';
import { TimeError, type TimeZone } from './times.js';

/** Events between these positions whose own times are within `from` and `to` (docs/support.md#spans-of-time). */
export interface LogRange {
  /** Position before the range, exclusive; null where the range begins at the log's start. */
  readonly after: Position | null;
  /** Last position of the range, inclusive; null where the range is empty. */
  readonly through: Position | null;
  /** First and last instant of the range: ISO 8601, UTC; null where it was not given. */
  readonly from: string | null;
  readonly to: string | null;
  readonly time_zone: string;
}

/** A range as it was requested. */
interface RangeTexts {
  readonly zone: TimeZone;
  readonly from?: string | undefined;
  /** End of the range; a day includes its end. */
  readonly to?: string | undefined;
  /** The position where an earlier reading ended, also as spelt in CSV. */
  readonly after?: string | undefined;
}

/** A span of time, by its first and last instant. */
export type TimeRange = Pick<LogRange, 'from' | 'to' | 'time_zone'>;

/** @throws TimeError */
export function timeRange({ zone, from, to }: Omit<RangeTexts, 'after'>): TimeRange {
  const first = from === undefined ? null : about('from', () => zone.instant(from, 'first'));
  const last = to === undefined ? null : about('to', () => zone.instant(to, 'last'));
  if (first !== null && last !== null && first > last)
    throw new TimeError(`from (${first}) is later than to (${last})`, 'from');
  return { from: first, to: last, time_zone: zone.name };
}

/** @throws TimeError, also for a position of another log; UnavailableError */
export async function logRange(events: EventStore, { after: given, ...texts }: RangeTexts): Promise<LogRange> {
  const after = given === undefined ? undefined : withoutMark(given);
  const times = timeRange(texts);
  const { from: first, to: last } = times;
  const end = await events.end();
  if (after !== undefined) refuseUnlessPosition(events, after, end);
  const all = { after: after ?? null, through: end ?? null };
  if (first === null && last === null) return { ...all, ...times };
  const part = await timeBounds(events, { from: first ?? undefined, to: last ?? undefined, after });
  // Without `to`, a repeated call continues after this position.
  const none = last === null ? { after: end ?? null, through: end ?? null } : { after: null, through: null };
  const found =
    part === undefined ? none : { after: part.after ?? null, through: last === null ? (end ?? null) : part.through };
  return { ...found, ...times };
}

/** Runs `read`, and adds the parameter's name to its TimeError. */
export function about<T>(field: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof TimeError && error.field === undefined
      ? new TimeError(`${field}: ${error.message}`, field)
      : error;
  }
}

/** @throws TimeError for a position of another log: an empty answer would look like the end of a list */
export function refuseUnlessPosition(
  events: Pick<EventStore, 'isPosition'>,
  after: string,
  end: Position | undefined,
): void {
  if (events.isPosition(after) && end !== undefined && after <= end) return;
  throw new TimeError(
    `after must be a position of this log${end === undefined ? ', which is empty' : `, such as ${end}`}`,
    'after',
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
 * Events of a range, in log order. A batch's position says how far the log was searched, at most to the range's end.
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

import {
  about,
  type LogRange,
  logRange,
  refuseUnlessPosition,
  type TimeRange,
  timeRange,
} from '../../ops/ranges/range.js';
import { DEFAULT_ZONE, TimeError, type TimeZone, pastInstant, timeZone } from '../../ops/ranges/times.js';
import type { UnknownFilter } from '../../ops/ranges/unknownFilter.js';
import type { EventStore } from '../../ports/eventStore.js';
import { fieldHeader, HttpError } from '../pipeline/errors.js';
import type { Call, Schema } from '../pipeline/route.js';
import { orNull, textSchema, timeSchema } from '../pipeline/schemas.js';

export const dayParameter = (name: string, description: string): Readonly<Record<string, Schema>> => ({
  [name]: textSchema(description, {
    format: 'date',
    'x-errors': { format: `${name} must be a date such as 2026-05-04` },
  }),
});

export const zoneParameter = {
  time_zone: textSchema('The zone of days, and of times without an offset (IANA).', {
    maxLength: 64,
    default: DEFAULT_ZONE,
  }),
} as const satisfies Record<string, Schema>;

export const rangeParameters = {
  from: textSchema(
    'Events from this time on, by their own times, whatever their order in the log (`2026-05-04T12:30:00Z`; without an offset in `time_zone`), or from the beginning of a day.',
    { maxLength: 64 },
  ),
  to: textSchema('Up to this time, or to the end of a day. Default: the end of the log.', { maxLength: 64 }),
  ...zoneParameter,
} as const satisfies Record<string, Schema>;

/** Fields of an answer that name the part of the log that was read. */
export const rangeProperties = {
  after: orNull(textSchema('The log was read after this position; null: from its beginning.')),
  through: orNull(textSchema('The log was read up to this position; null: it had no events yet.')),
  from: orNull(timeSchema()),
  to: orNull(timeSchema()),
  time_zone: textSchema(),
} as const satisfies Record<string, Schema>;

export const rangeExample: LogRange = {
  after: '0000000000001041',
  through: '0000000000099117',
  from: '2026-05-03T23:00:00.000Z',
  to: '2026-05-31T22:59:59.999Z',
  time_zone: DEFAULT_ZONE,
};

/** @throws HttpError `schema` */
export function requestedZone(query: Call['query']): TimeZone {
  return orRefusal(() => timeZone((query['time_zone'] as string | undefined) ?? DEFAULT_ZONE));
}

/**
 * Reads a past time in the query's time zone. `now`: ISO 8601, UTC.
 * @throws HttpError `schema`, also for a time in the future
 */
export function requestedPastInstant(query: Call['query'], text: string, now: string): string {
  const zone = requestedZone(query);
  return orRefusal(() => about('time', () => pastInstant(zone, text, now)));
}

/** @throws HttpError `schema` */
export function requestedTimes(query: Call['query']): TimeRange {
  const zone = requestedZone(query);
  const [from, to] = ['from', 'to'].map((name) => query[name] as string | undefined);
  return orRefusal(() => timeRange({ zone, from, to }));
}

/** @throws HttpError `schema`; UnavailableError */
export async function requestedRange(events: EventStore, query: Call['query']): Promise<LogRange> {
  const zone = requestedZone(query);
  const [from, to, after] = ['from', 'to', 'after'].map((name) => query[name] as string | undefined);
  return logRange(events, { zone, from, to, after }).catch((error: unknown) => {
    throw refusedMessage(error);
  });
}

/** @throws HttpError `schema` where `after` is no position of the log; UnavailableError */
export async function refuseOtherPositions(
  events: Pick<EventStore, 'isPosition' | 'end'>,
  after: string | undefined,
): Promise<void> {
  if (after === undefined) return;
  const end = await events.end();
  orRefusal(() => refuseUnlessPosition(events, after, end));
}

/**
 * Runs `read` on a text about time.
 * @throws HttpError `schema` with the message of a TimeError; other errors of `read`
 */
export function orRefusal<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw refusedMessage(error);
  }
}

function refusedMessage(error: unknown): unknown {
  return error instanceof TimeError
    ? new HttpError('schema', { message: error.message, headers: fieldHeader(error.field ?? '') })
    : error;
}

/** @param unknown a filter's value that the log does not know @throws HttpError `schema` that names it */
export function refuseUnknownFilter(unknown: UnknownFilter | undefined): void {
  if (unknown === undefined) return;
  const { name, words } = unknown;
  throw new HttpError('schema', { message: `${name}: ${words}`, headers: fieldHeader(name) });
}

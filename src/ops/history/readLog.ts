/** The log as support and auditors read it, without access records (docs/support.md#the-log). */
import { ACCESS_TYPES, accessStream } from '../../domain/access.js';
import { FIELD_CLASSES } from '../../domain/fieldClasses.js';
import { idOf, kindOf } from '../../domain/streamName.js';
import { ticks } from '../../lib/world.js';
import type { EventBatch, EventFilter, EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { lastEvent } from '../../runtime/log/lastEvent.js';
import { type LogRange, readRange } from '../ranges/range.js';
import { isWithin } from '../ranges/timeBounds.js';
import { type UnknownFilter, unknownFilter } from '../ranges/unknownFilter.js';
import { streamBetween } from './streamBetween.js';

/** Filters by name, and the events that each leaves. */
export const LOG_FILTERS = {
  stream: 'events of this stream',
  category: 'events of streams of this kind, such as `gift`: what comes before the first dash of a name',
  type: 'events of this type',
  correlation_id: 'events that follow from the request with this id',
} as const;

/** All that are given must match. */
export type LogFilter = { readonly [Name in keyof typeof LOG_FILTERS]?: string | undefined };

type LogBatch = Pick<EventBatch, 'events' | 'position'>;

const ACCESS = kindOf(accessStream(''));
/** Factor by which each search back goes further than the one before. */
const FURTHER = 4;

/** The first filter that no event can match. @throws UnavailableError */
export async function unknownLogFilter(
  events: Pick<EventStore, 'read'>,
  { stream, category, type }: LogFilter,
): Promise<UnknownFilter | undefined> {
  const ofAccess = Object.entries({ stream, category }).find(([, text]) => kindOf(text ?? '') === ACCESS)?.[0];
  const name = ofAccess ?? (ACCESS_TYPES.has(type ?? '') ? 'type' : undefined);
  if (name !== undefined) return { name, words: 'access records are listed by GET /ops/access and gift audit access' };
  if (type !== undefined && !Object.hasOwn(FIELD_CLASSES, type))
    return { name: 'type', words: `this release knows no type ${JSON.stringify(type)}` };
  return unknownFilter(events, stream === undefined ? [] : [{ name: 'stream', id: stream, stream }]);
}

/** The gift, purchase or person whose stream is read, for the access record. */
export function logTopic({ stream }: LogFilter): Readonly<Record<string, string>> {
  if (stream === undefined) return {};
  const name = { gift: 'gift', notification: 'gift', transaction: 'transactionId', user: 'person' }[kindOf(stream)];
  return name === undefined ? {} : { [name]: idOf(stream) };
}

/**
 * Events of a range that match, in log order. A batch's position says how far the log was searched.
 * @throws UnavailableError
 */
export async function* readLog(
  events: EventStore,
  range: Omit<LogRange, 'time_zone'>,
  filter: LogFilter,
  signal?: AbortSignal,
): AsyncGenerator<LogBatch> {
  const { after, through } = range;
  if (through === null) return;
  if (filter.stream === undefined) {
    for await (const batch of readRange(events, range, engineFilter(filter), signal))
      yield { ...batch, events: batch.events.filter((event) => matches(event, filter)) };
    return;
  }
  for await (const page of streamBetween(events, filter.stream, after ?? '', through)) {
    if (signal?.aborted === true) return;
    const found = page.filter((event) => isWithin(event, range) && matches(event, filter));
    yield { events: found, position: page.at(-1)?.position ?? through };
  }
}

interface LastEvents {
  readonly events: readonly RecordedEvent[];
  /** Position after which all matching events were found; null: the log's beginning. */
  readonly after: Position | null;
}

/**
 * The last `count` events up to a position that match, in log order: fewer where the search back took `withinMs`.
 * @throws UnavailableError
 */
export async function lastOfLog(
  events: EventStore,
  end: Position | null,
  filter: LogFilter,
  { count, withinMs, signal }: { readonly count: number; readonly withinMs: number; readonly signal?: AbortSignal },
): Promise<LastEvents> {
  const startedAt = ticks();
  const isLate = (): boolean => ticks() - startedAt >= withinMs;
  let found: RecordedEvent[] = [];
  let through = end;
  for (let back = count; ; back *= FURTHER) {
    const after = (await startOfLast(events, filter, back)) ?? null;
    const earlier: RecordedEvent[] = [];
    for await (const batch of readLog(events, { after, through, from: null, to: null }, filter, signal)) {
      earlier.push(...batch.events);
      if (back > count && isLate()) return { events: found, after: through };
    }
    if (signal?.aborted === true) return { events: found, after: through };
    found = [...earlier, ...found];
    const dropped = found.at(-1 - count);
    if (dropped !== undefined) return { events: found.slice(-count), after: dropped.position };
    if (after === null || found.length === count || isLate()) return { events: found, after };
    // More events than the search goes back may have been appended meanwhile.
    if (through !== null && after < through) through = after;
  }
}

/** Follows the log: all matching events after a position, until `signal` ends it. */
export async function* followLog(
  events: EventStore,
  after: Position | undefined,
  filter: LogFilter,
  signal: AbortSignal,
): AsyncGenerator<LogBatch> {
  for await (const { events: all, position } of events.follow(after, engineFilter(filter), { signal }))
    yield { events: all.filter((event) => matches(event, filter)), position };
}

async function startOfLast(events: EventStore, { stream }: LogFilter, count: number): Promise<Position | undefined> {
  if (stream === undefined) return events.startOfLast(count);
  const last = await lastEvent(events, stream);
  if (last === undefined || last.revision < count) return undefined;
  return (await events.read(stream, { from: last.revision - count, limit: 1 }))[0]?.position;
}

/** What the engine finds without a look at each event. */
function engineFilter({ stream, category, type }: LogFilter): EventFilter {
  const prefix = stream ?? (category === undefined ? undefined : `${category}-`);
  return {
    ...(type === undefined ? {} : { types: [type] }),
    ...(prefix === undefined ? {} : { streams: [prefix] }),
  };
}

function matches(event: RecordedEvent, { stream, category, type, correlation_id }: LogFilter): boolean {
  const kind = kindOf(event.stream);
  return (
    kind !== ACCESS &&
    (stream === undefined || event.stream === stream) &&
    (category === undefined || kind === category) &&
    (type === undefined || event.type === type) &&
    (correlation_id === undefined || event.metadata.correlationId === correlation_id)
  );
}

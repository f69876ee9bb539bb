/** The event log of a simulated event store: what survives crashes. Its methods work at once, each as a whole. */
import { matcherOf } from '../../../src/adapters/eventMatcher.js';
import { isPosition, positionOf } from '../../../src/adapters/embedded/eventStore/log.js';
import {
  type Appended,
  ConflictError,
  type EventBatch,
  type EventFilter,
  type EventTexts,
  type ExpectedRevision,
  LogSealedError,
  type Position,
  type RecordedEvent,
} from '../../../src/ports/eventStore.js';

/** An event as it is stored: data and metadata are texts. */
export type StoredEvent = EventTexts;

/** An event to be stored, encoded by its writer. */
export type EncodedEvent = Pick<StoredEvent, 'id' | 'type' | 'at' | 'data' | 'metadata'>;

export interface EventLog {
  readonly logId: string;
  /** Everything in log order. */
  readonly stored: readonly StoredEvent[];
  /** @throws ConflictError; LogSealedError */
  append(stream: string, events: readonly EncodedEvent[], expected: ExpectedRevision): Appended;
  read(stream: string, from: number, limit: number): StoredEvent[];
  /**
   * The matching events after a position, at most `limit`, among the first `scanned` events from there.
   * @returns `undefined` when the log has nothing after the position
   */
  slice(after: Position | undefined, filter: EventFilter, limit: number): Slice | undefined;
  end(): Position | undefined;
  lastOf(stream: string): Position | undefined;
  startOfLast(count: number): Position | undefined;
  reaches(position: Position): boolean;
  seal(): void;
  sealed(): boolean;
  /** Calls `grown` after each append, until the returned function is called. */
  watch(grown: () => void): () => void;
  /** The log as it is, which grows no more with this one. */
  copied(): EventLog;
}

export type Slice = Omit<EventBatch, 'events'> & { readonly events: readonly StoredEvent[] };

/** Events that one slice passes by at most. */
const SCANNED = 5_000;

/** @param stored events that the log already has */
export function eventLog(logId: string, stored: StoredEvent[] = []): EventLog {
  /** Indexes in `stored` of each stream's events. */
  const streams = new Map<string, number[]>();
  for (const [index, { stream }] of stored.entries()) {
    const indexes = streams.get(stream);
    if (indexes === undefined) streams.set(stream, [index]);
    else indexes.push(index);
  }
  const watchers = new Set<() => void>();
  let isSealed = false;

  const indexesOf = (stream: string): readonly number[] => streams.get(stream) ?? [];
  const positionAt = (index: number): Position | undefined => (index < 0 ? undefined : positionOf(index + 1));
  /** The number of events up to and including a position. */
  const countTo = (position: Position | undefined): number => (position === undefined ? 0 : Number(position));

  /** What the same append was answered before; `undefined`: it is a new one. */
  function repeated(stream: string, events: readonly EncodedEvent[], expected: ExpectedRevision): Appended | undefined {
    const indexes = indexesOf(stream);
    const first =
      expected === 'any' ? indexes.findIndex((index) => stored[index]?.id === events[0]?.id) : revisionOf(expected) + 1;
    if (first < 0) return undefined;
    const same = events.every(({ id }, n) => stored[indexes[first + n] ?? -1]?.id === id);
    const last = first + events.length - 1;
    return same ? { revision: last, position: positionOf((indexes[last] as number) + 1) } : undefined;
  }

  return {
    logId,
    stored,
    append(stream, events, expected) {
      if (isSealed) throw new LogSealedError();
      const before = repeated(stream, events, expected);
      if (before !== undefined) return before;
      const indexes = streams.get(stream) ?? [];
      const actual = indexes.length - 1;
      if (expected !== 'any' && actual !== revisionOf(expected)) throw new ConflictError(stream, expected, actual);
      streams.set(stream, indexes);
      for (const event of events) {
        indexes.push(stored.length);
        stored.push({ ...event, stream, revision: indexes.length - 1, position: positionOf(stored.length + 1) });
      }
      for (const grown of watchers) grown();
      return { revision: indexes.length - 1, position: positionOf(stored.length) };
    },
    read: (stream, from, limit) =>
      indexesOf(stream)
        .slice(from, from + limit)
        .map((index) => stored[index] as StoredEvent),
    slice(after, filter, limit) {
      const matches = matcherOf(filter);
      const first = countTo(after);
      if (first >= stored.length) return undefined;
      const events: StoredEvent[] = [];
      let next = first;
      for (; next < stored.length && events.length < limit && next < first + SCANNED; next++) {
        const event = stored[next] as StoredEvent;
        if (matches(event.stream, event.type)) events.push(event);
      }
      return { events, position: positionOf(next), caughtUp: next === stored.length };
    },
    end: () => positionAt(stored.length - 1),
    lastOf: (stream) => positionAt(indexesOf(stream).at(-1) ?? -1),
    startOfLast: (count) => positionAt(stored.length - 1 - count),
    reaches: (position) => isPosition(position) && Number(position) <= stored.length,
    seal() {
      isSealed = true;
    },
    sealed: () => isSealed,
    watch(grown) {
      watchers.add(grown);
      return () => void watchers.delete(grown);
    },
    copied: () => eventLog(logId, [...stored]),
  };
}

const revisionOf = (expected: Exclude<ExpectedRevision, 'any'>): number => (expected === 'none' ? -1 : expected);

/** An event as readers get it, which share nothing with the log. */
export function recordedOf({ data, metadata, ...event }: StoredEvent): RecordedEvent {
  return {
    ...event,
    data: JSON.parse(data) as object,
    metadata: JSON.parse(metadata) as RecordedEvent['metadata'],
  };
}

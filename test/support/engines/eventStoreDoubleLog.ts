/**
 * The log behind the double: an embedded event store, with what EventStoreDB has beyond the port (deletions, events of
 * any kind, positions with gaps).
 */
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import type { EventMetadata, EventStore, NewEvent, RecordedEvent } from '../../../src/ports/eventStore.js';
import { ConflictError } from '../../../src/ports/eventStore.js';

/** An event as EventStoreDB takes it: data and metadata are bytes. */
export interface RawEvent {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Buffer;
  readonly metadata: Buffer;
}

/** An event as EventStoreDB holds it. */
export interface RawRecord extends RawEvent {
  readonly stream: string;
  readonly revision: number;
  /** Commit position. */
  readonly commit: number;
  /** Ms since the epoch. */
  readonly created: number;
}

/** `commit` is absent for a repeat of events that were deleted since. */
export type RawOutcome =
  { readonly revision: number; readonly commit: number | undefined } | { readonly conflict: number } | 'deleted';

/** 'any', 'none', 'exists' or a revision. */
export type RawExpected = number | 'any' | 'none' | 'exists';

/** Positions of EventStoreDB have gaps: one that lies between two events is no mistake of the reader's. */
const STRIDE = 100;

/** The log. */
export interface DoubleLog {
  append(stream: string, events: readonly RawEvent[], expected: RawExpected): Promise<RawOutcome>;
  /** `undefined` when there is nothing to read, `'deleted'` when the stream was deleted for good. */
  read(stream: string, from: number, limit: number): Promise<RawRecord[] | 'deleted' | undefined>;
  readBack(stream: string, from: number | undefined, limit: number): Promise<RawRecord[] | 'deleted' | undefined>;
  /** Events from a position on. */
  logOn(from: number, limit: number, matches: (record: RawRecord) => boolean): Promise<RawRecord[]>;
  /** From the log's end back. */
  logBack(limit: number, matches: (record: RawRecord) => boolean): Promise<RawRecord[]>;
  /** All events after a position, for ever, as they are appended; `caughtUp` after those that are there. */
  follow(after: number | undefined, signal: AbortSignal): AsyncIterable<{ records: RawRecord[]; caughtUp: boolean }>;
  /** Deletes a stream; later appends go on with its revisions. `hard`: for good. */
  remove(stream: string, hard: boolean): Promise<void>;
  /** A restarted server has forgotten the ids. */
  forget(): void;
  close(): Promise<void>;
}

/** Extra fields of an event's metadata in the embedded store. */
interface Foreign {
  readonly contentType?: string;
  /** Its data is kept as bytes: it isn't JSON, or says so wrongly. */
  readonly octets?: true;
  /** Its metadata had no time. */
  readonly timeless?: true;
}

/** Opens the log in `dir`. */
export async function openDoubleLog(dir: string): Promise<DoubleLog> {
  const store = await openEmbeddedEventStore({ dir });
  const ends = new Map<string, number>();
  const hidden = new Map<string, number>();
  const tombstones = new Set<string>();
  const seen = new Map<string, { stream: string; revision: number }>();
  /** The appends handed to the store that were last of their streams. */
  const underWay = new Map<string, Promise<unknown>>();
  let handingOver: Promise<unknown> = Promise.resolve();

  async function endOf(stream: string): Promise<number> {
    const known = ends.get(stream);
    if (known !== undefined) return known;
    const end = (await store.read(stream)).at(-1)?.revision ?? -1;
    ends.set(stream, end);
    return end;
  }

  /**
   * As they come, whatever their streams, appends are handed to the store, which carries them out in that order: none
   * waits until the one before is stored.
   */
  async function inTurn(stream: string, events: readonly RawEvent[], expected: RawExpected): Promise<RawOutcome> {
    const turn = handingOver.then(async () => {
      // Existing events are looked at first.
      if (expected === 'any' || expected === 'exists' || hidden.has(stream)) await underWay.get(stream);
      const end = await endOf(stream);
      const outcome = handedOver(stream, events, expected, end);
      underWay.set(
        stream,
        outcome.catch(() => undefined),
      );
      return { outcome };
    });
    handingOver = turn.catch(() => undefined);
    return (await turn).outcome;
  }

  const softDeleted = (stream: string, end: number): boolean => end >= 0 && hidden.get(stream) === end + 1;

  /** A deleted event is known by its id and its place in the stream, and can't be read. */
  async function repeated(stream: string, revision: number): Promise<RawOutcome> {
    const [last] = revision < (hidden.get(stream) ?? 0) ? [] : await store.read(stream, { from: revision, limit: 1 });
    return { revision, commit: last === undefined ? undefined : commitOf(last) };
  }

  /** Hands it over before anything is awaited, but for a repeat that is looked up. */
  async function handedOver(
    stream: string,
    events: readonly RawEvent[],
    expected: RawExpected,
    end: number,
  ): Promise<RawOutcome> {
    if (tombstones.has(stream)) return 'deleted';
    if (expected === 'exists' && softDeleted(stream, end)) return 'deleted';
    if (expected === 'exists' && end === -1) return { conflict: end };
    if (expected === 'any' || expected === 'exists') {
      const places = events
        .map(({ id }) => seen.get(id))
        .map((place) => (place?.stream === stream ? place.revision : undefined));
      if (places[0] !== undefined)
        return places.includes(undefined) ? { conflict: end } : repeated(stream, places.at(-1)!);
    } else {
      const from = expected === 'none' ? 0 : expected + 1;
      if (from < (hidden.get(stream) ?? 0)) {
        const there = (await store.read(stream, { from, limit: events.length })).map(({ id }) => id);
        const other = events.findIndex(({ id }, index) => id !== there[index]);
        if (other === -1) return repeated(stream, from + events.length - 1);
        if (other > 0) return { conflict: end };
      }
    }
    const base = expected === 'none' ? -1 : typeof expected === 'number' ? expected : end;
    const actual = expected === 'none' && softDeleted(stream, end) ? end : base;
    try {
      const { revision, position } = await store.append(stream, events.map(stored), actual === -1 ? 'none' : actual);
      for (const [index, { id }] of events.entries())
        seen.set(id, { stream, revision: revision - events.length + 1 + index });
      ends.set(stream, Math.max(ends.get(stream) ?? end, revision));
      return { revision, commit: Number(position) * STRIDE };
    } catch (error) {
      if (error instanceof ConflictError) return { conflict: error.actual };
      throw error;
    }
  }

  async function readable(stream: string, from: number, limit: number): Promise<RawRecord[] | 'deleted' | undefined> {
    if (tombstones.has(stream)) return 'deleted';
    const end = await endOf(stream);
    if (end === -1 || softDeleted(stream, end)) return undefined;
    return (await store.read(stream, { from: Math.max(from, hidden.get(stream) ?? 0), limit })).map(rawOf);
  }

  return {
    append: inTurn,
    read: readable,
    async readBack(stream, from, limit) {
      const last = Math.min(from ?? Number.MAX_SAFE_INTEGER, await endOf(stream));
      const first = Math.max(0, last - limit + 1);
      const records = await readable(stream, first, last - first + 1);
      return Array.isArray(records) ? records.toReversed() : records;
    },
    async logOn(from, limit, matches) {
      const before = Math.ceil(from / STRIDE) - 1;
      const records: RawRecord[] = [];
      for await (const { events } of store.readAll(before > 0 ? String(before).padStart(16, '0') : undefined)) {
        records.push(...events.map(rawOf).filter(matches));
        if (records.length >= limit) break;
      }
      return records.slice(0, limit);
    },
    async logBack(limit, matches) {
      const end = Number((await store.end()) ?? 0);
      for (let span = 64; ; span *= 4) {
        const records: RawRecord[] = [];
        for await (const { events } of store.readAll(end > span ? String(end - span).padStart(16, '0') : undefined))
          records.push(...events.map(rawOf));
        const found = records.toReversed().filter(matches);
        if (found.length >= limit || span >= end) return found.slice(0, limit);
      }
    },
    follow: (after, signal) => follow(store, after, signal),
    async remove(stream, hard) {
      await underWay.get(stream);
      const end = await endOf(stream);
      if (hard) tombstones.add(stream);
      else hidden.set(stream, end + 1);
      const [kept, type] = hard ? [stream, '$streamDeleted'] : [`$$${stream}`, '$metadata'];
      await store.append(
        kept,
        [
          stored({
            id: crypto.randomUUID(),
            type,
            contentType: 'application/json',
            data: Buffer.from(hard ? '{}' : '{"$tb":9223372036854775807}'),
            metadata: Buffer.alloc(0),
          }),
        ],
        'any',
      );
    },
    forget: () => seen.clear(),
    close: async () => store.close(),
  };
}

async function* follow(
  store: EventStore,
  after: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<{ records: RawRecord[]; caughtUp: boolean }, void> {
  // The server skips the first event at or after the position it is given.
  const through = after === undefined ? 0 : Math.ceil(after / STRIDE);
  const position = through === 0 ? undefined : String(through).padStart(16, '0');
  const end = await store.end();
  if (end === undefined || (position !== undefined && end <= position)) yield { records: [], caughtUp: true };
  for await (const { events, caughtUp } of store.follow(position, {}, { signal, batchSize: 32 }))
    yield { records: events.map(rawOf), caughtUp };
}

function commitOf(event: RecordedEvent): number {
  return Number(event.position) * STRIDE;
}

/** JSON is stored as JSON, and the time beside it, so that the embedded store's limit is not met before ours. */
function stored({ id, type, contentType, data, metadata }: RawEvent): NewEvent {
  const parsed = contentType === 'application/json' ? parse(data) : undefined;
  const { at, ...rest } = metadata.length > 0 ? (JSON.parse(metadata.toString()) as { at?: string }) : {};
  const foreign: Foreign = {
    ...(parsed === undefined ? { contentType, octets: true } : {}),
    ...(at === undefined ? { timeless: true } : {}),
  };
  return {
    id,
    type,
    at: at ?? new Date().toISOString(),
    data: parsed ?? { base64: data.toString('base64') },
    metadata: { ...rest, ...foreign } as EventMetadata,
  };
}

function parse(data: Buffer): object | undefined {
  try {
    return JSON.parse(data.toString()) as object;
  } catch {
    return undefined;
  }
}

function rawOf(event: RecordedEvent): RawRecord {
  const { contentType = 'application/json', octets, timeless, ...metadata } = event.metadata as EventMetadata & Foreign;
  return {
    id: event.id,
    type: event.type,
    stream: event.stream,
    revision: event.revision,
    commit: commitOf(event),
    created: Date.parse(event.at),
    contentType,
    data:
      octets === undefined
        ? Buffer.from(JSON.stringify(event.data))
        : Buffer.from((event.data as { base64: string }).base64, 'base64'),
    metadata: Buffer.from(
      timeless
        ? Object.keys(metadata).length === 0
          ? ''
          : JSON.stringify(metadata)
        : JSON.stringify({ at: event.at, ...metadata }),
    ),
  };
}

import { UnavailableError } from './unavailable.js';

/**
 * The event store port: one append-only log, divided into streams. The log is the only truth of the service.
 *
 * Guarantees, tested for every adapter by `test/contract/eventStore.ts`:
 * - `append` is atomic (all of its events or none) and durable (fsynced) when it resolves.
 * - A stream's expected revision is the only concurrency control: of many appends that expect the same revision one
 * succeeds.
 * - A repeated append (same stream, same event ids, same expectation) succeeds without writing again.
 * - `readAll` and `follow` deliver every event of the filter exactly once and in log order.
 * - No position that it gives lies outside the numbers that its log can count to, or beyond the log's end, whatever the
 * engine's server says; a feed whose filter nothing matches is no
 *   exception. What is stored of them is held to that when it is read: see `storedPosition.ts`.
 * - Several processes of one installation may use the same log side by side.
 * - A sealed log takes no more events, from whatever process, for ever; everything else goes on.
 */

/** A place in the log: a fixed-width string whose byte order is log order. Positions of two logs can't be compared. */
export type Position = string;

/**
 * Who caused an event. `roles` are the user's roles and permissions at that time; `cli:<system user>@<host>` is a user
 * too.
 */
export interface Caller {
  readonly user?: string;
  readonly client?: string;
  readonly roles?: readonly string[];
}

/** The auditor's who and why, kept with every event. */
export interface EventMetadata {
  /** The command that appended the event. A repeated command finds its own events by it. */
  readonly commandId: string;
  /** SHA-256 (base64url) of the command's canonical body, where it came with an idempotency key. */
  readonly bodyHash?: string;
  /** The id of the event that led to this one (process managers), else absent. */
  readonly causationId?: string;
  /** The id shared by everything that follows from one request. */
  readonly correlationId: string;
  readonly requestId?: string;
  readonly by: Caller;
  /**
   * Version of the event type's data; `domain/upcasters.ts` brings older ones up to date where they are read. Absent:
   * 1.
   */
  readonly schema?: number;
  /** True in events that a simulated provider answered for. */
  readonly simulated?: boolean;
  /** The trace that it belongs to, where tracing was on: a W3C `traceparent`. Nothing decides by it. */
  readonly traceparent?: string;
}

/** An event about to be appended. */
export interface NewEvent {
  /** A UUID. The same id again in the same append is recognised as a repeat. */
  readonly id: string;
  readonly type: string;
  /** When it was decided: ISO 8601, UTC, milliseconds. */
  readonly at: string;
  /** JSON-serialisable. */
  readonly data: object;
  readonly metadata: EventMetadata;
}

/** An event as the log holds it. */
export interface RecordedEvent extends NewEvent {
  readonly stream: string;
  /** From 0, without gaps, within the stream. */
  readonly revision: number;
  readonly position: Position;
}

/** `'none'`: the stream has no event; a number: the revision of its last event; `'any'`: whatever stands there. */
export type ExpectedRevision = 'none' | 'any' | number;

/** One append of several: what `append` takes. */
export interface StreamAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: Exclude<ExpectedRevision, 'any'>;
}

/** What an append brought about. */
export interface Appended {
  /** Revision of the last event appended. */
  readonly revision: number;
  /** Position of the last event appended. */
  readonly position: Position;
}

/** Which events of the log are wanted: all conditions given must hold; an empty list matches nothing. */
export interface EventFilter {
  /** Event types. */
  readonly types?: readonly string[];
  /** Prefixes of stream names, for example `gift-`. */
  readonly streams?: readonly string[];
}

/** Consecutive events of the log, with how far the log has been looked at. */
export interface EventBatch {
  readonly events: readonly RecordedEvent[];
  /** Everything up to and including here has been looked at, filtered events included. Never goes back. */
  readonly position: Position;
  /** True when the log's end, as it was during this read, has been reached. */
  readonly caughtUp: boolean;
}

/** Options of `readAll` and `follow`. */
export interface ReadOptions {
  /** At most so many events a batch; default 1,000. */
  readonly batchSize?: number;
  /** Ends the iteration (without an error) when aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Of `follow`: called with each failure that it waits out, and with `undefined` while it waits at the log's end for
   * what is appended. Must not throw.
   */
  readonly onTrouble?: ((error: Error | undefined) => void) | undefined;
}

/** A log on this very machine, as it is when it is asked: nothing that was acknowledged before is missing. */
export interface LocalLog {
  /** Position of the last event of the log; `undefined` while it is empty. @throws UnavailableError */
  end(): Position | undefined;
  /** Position of the last event of a stream; `undefined` while it has none. @throws UnavailableError */
  lastOf(stream: string): Position | undefined;
}

/** The engine. */
export interface EventStore {
  /** The log's id: made with the log, never changed. */
  readonly logId: string;
  /** `embedded`, `eventstoredb`: as `/readyz`, metrics and the command line name it. */
  readonly engine: string;

  /**
   * Appends `events` (at least one) to `stream`.
   * @throws LogSealedError when the log is sealed, also for a repeat (nothing was written).
   * @throws ConflictError when the stream is not at the expected revision (nothing was written).
   * @throws EventTooLargeError when the events have more than 1,000,000 bytes (nothing was written).
   * @throws UnavailableError when the engine can't be reached or its disk is full; with `outcomeUnknown` the events may
   *   have been stored, and the same call with the same ids is safe.
   */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>;

  /**
   * Appends to many streams, so that log order is the order given, faster than one `append` after the other; absent
   * where an engine can't. When the engine fails, what was stored is a beginning of `appends`, and the same call is
   * safe. After a ConflictError, appends behind the one that met it may have been stored.
   * @throws as `append`
   */
  appendInOrder?(appends: readonly StreamAppend[]): Promise<void>;

  /**
   * The events of one stream in order, from revision `from` (default 0), at most `limit` (default all). An unknown
   * stream is empty.
   * @throws UnavailableError
   */
  read(stream: string, options?: { from?: number; limit?: number }): Promise<RecordedEvent[]>;

  /**
   * The log after `after` (`undefined`: from its beginning) up to its end as it is when the reader gets there, in
   * batches; the last has `caughtUp`. An empty result is one batch without events only when the log has grown past
   * `after`, else none.
   * @throws UnavailableError
   */
  readAll(after: Position | undefined, filter?: EventFilter, options?: ReadOptions): AsyncIterable<EventBatch>;

  /**
   * As `readAll`, then goes on for ever with what is appended, by whatever process (within 50 ms on the embedded
   * engine). The next batch is fetched only when it is asked for. Survives a lost connection and a restarted server by
   * itself. Ends only with `signal`. A batch without events is delivered when only filtered events were appended, so
   * that `position` advances.
   */
  follow(after: Position | undefined, filter?: EventFilter, options?: ReadOptions): AsyncIterable<EventBatch>;

  /**
   * Whether a text that came from outside can be a position, by its form alone: all positions of an engine have one
   * form, digits of one width that stand for a number from 0 to the greatest that its log counts to (2^63-1; 2^53-1 on
   * the embedded engine). What can't be one must not be handed to `readAll` or `follow`.
   */
  isPosition(text: string): boolean;

  /** Position of the last event of the log; `undefined` while it is empty. @throws UnavailableError */
  end(): Promise<Position | undefined>;

  /**
   * Whether the log reaches a position: an event stands there or later, be it one of the server's own, which no reader
   * is given. A position that it does not reach it has never given, or has lost since. False for what is no position.
   * @throws UnavailableError
   */
  reaches(position: Position): Promise<boolean>;

  /**
   * What the log holds at this moment, whichever process appended it, said without a round trip; absent where an engine
   * can't: then whoever must know asks and waits.
   */
  readonly local?: LocalLog;

  /**
   * Position of the last event of a stream, as the server has it: nothing that was acknowledged before it was asked is
   * missing. `undefined` while the stream has none. Absent where `local` says it. @throws UnavailableError
   */
  lastOf?(stream: string): Promise<Position | undefined>;

  /**
   * The narrowest part of the log that holds every event whose own time is within these (ISO 8601, UTC, milliseconds;
   * both included), in whatever order times stand in the log: a clock may have been ahead for a while, and clocks of
   * several machines differ. `undefined`: there is none. It looks at the times of what lies outside that part, never at
   * data: some two seconds a million, in slices. Absent where an engine has no way but to read all of it
   * (`audit/timeBounds.ts`). @throws UnavailableError
   */
  timeBounds?(within: TimesWithin): Promise<LogPart | undefined>;

  /**
   * Ends the log: once this resolves, every append is refused, by whatever process. Appends under way are stored or
   * refused. Sealing again changes nothing. @throws UnavailableError
   */
  seal(): Promise<void>;

  /** Whether the log is sealed. @throws UnavailableError */
  sealed(): Promise<boolean>;

  /** Resolves when the engine answers. @throws UnavailableError */
  ping(): Promise<void>;

  /** Ends what is under way and releases everything. Appends already accepted are finished first. */
  close(): Promise<void>;
}

/** Times that events are looked for by. */
export interface TimesWithin {
  /** Default: from the beginning of time. */
  readonly from?: string | undefined;
  /** Default: to its end. */
  readonly to?: string | undefined;
  /** Only what stands after this position. */
  readonly after?: Position | undefined;
}

/** A part of the log: what stands after `after` (`undefined`: from the beginning) and up to `through`. */
export interface LogPart {
  readonly after: Position | undefined;
  readonly through: Position;
}

/**
 * The log is sealed: it lives on in another engine, and takes no more events here. To callers it is an engine that
 * can't now, and won't by trying again.
 */
export class LogSealedError extends UnavailableError {
  constructor() {
    super('the event log is sealed since it was copied to another engine: use that one (EVENTSTORE_URL, DATA_DIR)');
  }
}

/** The stream was not at the expected revision. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError';
  readonly stream: string;
  readonly expected: ExpectedRevision;
  /** Revision of the stream's last event; -1 when it has none. */
  readonly actual: number;
  constructor(stream: string, expected: ExpectedRevision, actual: number) {
    super(`stream ${stream} is at revision ${actual}, expected ${expected}`);
    this.stream = stream;
    this.expected = expected;
    this.actual = actual;
  }
}

/** The events of one append exceed what the engines can store. */
export class EventTooLargeError extends Error {
  override readonly name = 'EventTooLargeError';
  constructor(bytes: number) {
    super(`an append of ${bytes} bytes exceeds ${MAX_APPEND_BYTES}`);
  }
}

/** The most bytes (data and metadata as JSON in UTF-8) that one append may have. */
export const MAX_APPEND_BYTES = 1_000_000;

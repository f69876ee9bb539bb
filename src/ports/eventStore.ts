import { UnavailableError } from './unavailable.js';

/**
 * The event store port: one append-only log, divided into streams, and the only truth of the service.
 * Guarantees, tested for every adapter by `test/contract/eventStore.ts`:
 * - `append` is atomic (all of its events or none) and durable (fsynced) when it resolves.
 * - A stream's expected revision is the only concurrency control: of many appends that expect the same revision one
 * succeeds.
 * - A repeated append (same stream, same event ids, same expectation) succeeds without writing again.
 * - `readAll` and `follow` deliver every event of the filter exactly once and in log order.
 * - Every position is one of the log and not beyond its end, whatever the engine's server reports. That holds for a
 * feed whose filter matches nothing too; `storedPosition.ts` checks stored positions.
 * - Several processes of one installation may use the same log at the same time.
 * - A sealed log takes no more events, from any process, for ever; everything else still works.
 */

/** A fixed-width string whose byte order is log order. Positions of two logs can't be compared. */
export type Position = string;

/**
 * The cause of an event. `roles`: the user's roles and permissions at that time. `cli:<system user>@<host>` is a user
 * too.
 */
export interface Caller {
  readonly user?: string;
  readonly client?: string;
  readonly roles?: readonly string[];
}

/** The personal fields of an event, as the log holds them (docs/design.md#personal-data). */
export interface EncryptedFields {
  /** Id of the subject whose data key decrypts the fields. */
  readonly subject: string;
  /** The fields as a JSON object, encrypted: nonce (12 bytes), tag (16) and ciphertext of AES-256-GCM, in base64url. */
  readonly box: string;
}

/** The circumstances of an event, for auditors. */
export interface EventMetadata {
  /** The command that appended the event. A repeated command finds its own events by it. */
  readonly commandId: string;
  /** Keyed hash of the command's canonical body, for a command with an idempotency key. */
  readonly bodyHash?: string;
  /** The event that led to this one; only process managers set it. */
  readonly causationId?: string;
  /** Shared by everything that follows from one request. */
  readonly correlationId: string;
  readonly requestId?: string;
  readonly by: Caller;
  /** Version of the event type's data (default 1); `domain/upcasters.ts` upcasts older ones when they are read. */
  readonly schema?: number;
  /** True in events from a simulated provider's answer. */
  readonly simulated?: boolean;
  /** The event's trace, where tracing was on: a W3C `traceparent`. No decision depends on it. */
  readonly traceparent?: string;
  /**
   * The event's encrypted fields. Absent: the event has no personal fields, or has them in the clear. Only copies and
   * backups read it; other readers get the fields decrypted in `data`.
   */
  readonly personal?: EncryptedFields;
}

export interface NewEvent {
  /** A UUID; the same id again in the same append marks a repeat. */
  readonly id: string;
  readonly type: string;
  /** The time of the decision: ISO 8601, UTC, milliseconds. */
  readonly at: string;
  /** The event's content, JSON-serialisable. */
  readonly data: object;
  readonly metadata: EventMetadata;
}

export interface RecordedEvent extends NewEvent {
  readonly stream: string;
  /** Number of the event within its stream: from 0, without gaps. */
  readonly revision: number;
  readonly position: Position;
}

/** A recorded event of known types: those of the aggregate whose stream it is in, or of the filter of its read. */
export type Recorded<E extends Pick<RecordedEvent, 'type' | 'data'>> = RecordedEvent & E;

/**
 * An event whose data and metadata are the texts that the log stores: the appended JSON, with its members in their
 * order. In an altered log they may be no JSON at all.
 */
export interface EventTexts extends Omit<RecordedEvent, 'data' | 'metadata'> {
  readonly data: string;
  readonly metadata: string;
  /** A column has a value of another type, so that no method but `readTexts` gives the event. */
  readonly altered?: true;
}

/** Events at positions that the engine never assigns. `found` is the number of all, `first` has the first of them. */
export interface Strays {
  readonly found: number;
  /** Their positions are plain decimal numbers, not the fixed-width strings of `Position`. */
  readonly first: readonly Omit<RecordedEvent, 'data' | 'metadata'>[];
}

/** `'none'`: the stream has no event; a number: the revision of its last event; `'any'`: no expectation. */
export type ExpectedRevision = 'none' | 'any' | number;

export interface StreamAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: Exclude<ExpectedRevision, 'any'>;
}

export interface Appended {
  /** Revision of the last event appended. */
  readonly revision: number;
  readonly position: Position;
}

/** All conditions given must hold; an empty list matches nothing. */
export interface EventFilter {
  readonly types?: readonly string[];
  /** Prefixes of stream names, for example `gift-`. */
  readonly streams?: readonly string[];
}

export interface EventBatch {
  readonly events: readonly RecordedEvent[];
  /** Everything up to and including here has been read, filtered events included. Never goes back. */
  readonly position: Position;
  /** The log's end, as it was during this read, has been reached. */
  readonly caughtUp: boolean;
}

export interface TextBatch extends Omit<EventBatch, 'events'> {
  readonly events: readonly EventTexts[];
}

export interface ReadOptions {
  /** Events in a batch at most; default 1,000. */
  readonly batchSize?: number;
  /** A signal whose abort ends the iteration without an error. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Least milliseconds between two batches of `follow` at the log's end. The first few batches after a quiet time, and
   * batches requested by `hurry`, are delivered at once. Engines where a batch costs little ignore it.
   */
  readonly gatherMs?: number | undefined;
  /**
   * Called by `follow` only, with each failure that it waits out, and with `undefined` while it waits at the log's end.
   * Must not throw.
   */
  readonly onTrouble?: ((error: Error | undefined) => void) | undefined;
}

/** A log on this machine, at the moment of the call: no acknowledged append is missing. */
export interface LocalLog {
  /** Position of the log's last event; `undefined` while the log is empty. @throws UnavailableError */
  end(): Position | undefined;
  /** Position of the stream's last event; `undefined` while it has none. @throws UnavailableError */
  lastOf(stream: string): Position | undefined;
}

export interface EventStore {
  /** The log's id, created with the log and never changed. */
  readonly logId: string;
  /** `embedded` or `eventstoredb`, as shown by `/readyz`, metrics and the command line. */
  readonly engine: string;

  /**
   * Appends `events` (at least one) to `stream`. Only an UnavailableError with `outcomeUnknown` may have stored them;
   * then the same call with the same ids is safe.
   * @throws LogSealedError when the log is sealed, also for a repeat
   * @throws ConflictError when the stream is not at the expected revision
   * @throws EventTooLargeError when the events have more than 1,000,000 bytes
   * @throws UnavailableError when the engine can't be reached or its disk is full
   */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>;

  /**
   * Appends to many streams, in log order as given, faster than one `append` after the other; absent where an engine
   * can't. When the engine fails, a prefix of `appends` is stored, and the same call is safe. After a ConflictError,
   * appends behind the conflicting one may be stored.
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
   * The log after `after` (`undefined`: from its start) up to its end when the reader gets there, in batches; the last
   * has `caughtUp`. Without matching events: one empty batch when the log has grown past `after`, else none.
   * @throws UnavailableError
   */
  readAll(after: Position | undefined, filter?: EventFilter, options?: ReadOptions): AsyncIterable<EventBatch>;

  /**
   * As `readAll`, in less time: data and metadata are not parsed, so events with malformed JSON are delivered too.
   * Absent where an engine stores no texts.
   * @throws UnavailableError
   */
  readTexts?(after: Position | undefined, filter?: EventFilter, options?: ReadOptions): AsyncIterable<TextBatch>;

  /**
   * Events at positions that this engine never assigns: its file was altered. No other method finds them. Absent where
   * an engine can't have events at such positions.
   * @param limit how many of them the answer describes at most
   * @throws UnavailableError
   */
  unsequenced?(limit: number): Promise<Strays>;

  /**
   * As `readAll`, and then all later appends of any process (within 50 ms on the embedded engine), until `signal` ends
   * it. The next batch is fetched only on demand. It survives lost connections and restarted servers. When only
   * filtered events were appended, an empty batch advances `position`: within 100 ms, or at once after `hurry`.
   */
  follow(after: Position | undefined, filter?: EventFilter, options?: ReadOptions): AsyncIterable<EventBatch>;

  /**
   * Called while a reader waits for the events up to `position`. For at most a second, no follower of this process
   * delays their batches by `gatherMs`. Absent where an engine ignores `gatherMs`.
   */
  hurry?(position: Position): void;

  /**
   * Whether a text from outside has the form of a position: digits of the engine's width, at most 2^63-1 (2^53-1 on the
   * embedded engine). No other text may be passed to `readAll` or `follow`.
   */
  isPosition(text: string): boolean;

  /** Position of the log's last event; `undefined` while the log is empty. @throws UnavailableError */
  end(): Promise<Position | undefined>;

  /**
   * Position after which the log has its last `count` events (at least 1); `undefined`: it has no more than these. The
   * cost grows with `count`, not with the log.
   * @throws UnavailableError
   */
  startOfLast(count: number): Promise<Position | undefined>;

  /**
   * Whether the log has an event at the position or later, also one of the server's own, which no reader gets. False:
   * the log never had one, or has lost it since, or the text is no position.
   * @throws UnavailableError
   */
  reaches(position: Position): Promise<boolean>;

  /** The log at this moment, without a round trip; absent where an engine can't. */
  readonly local?: LocalLog;

  /**
   * Position of the stream's last event on the server: no append acknowledged before the call is missing. `undefined`
   * while it has none. Absent where `local` answers.
   * @throws UnavailableError
   */
  lastOf?(stream: string): Promise<Position | undefined>;

  /**
   * The narrowest part of the log that holds every event of these times (ISO 8601, UTC, milliseconds, both included);
   * `undefined`: there is none. Times need not be in log order, since clocks differ. Reads the times of events outside
   * that part, never their data. Absent where an engine can only read everything (`ops/ranges/timeBounds.ts`).
   * @throws UnavailableError
   */
  timeBounds?(within: TimesWithin): Promise<LogPart | undefined>;

  /**
   * Ends the log: once this resolves, every append of every process is refused. Running appends are stored or refused.
   * Sealing again changes nothing.
   * @throws UnavailableError
   */
  seal(): Promise<void>;

  /** Whether the log is sealed. @throws UnavailableError */
  sealed(): Promise<boolean>;

  /** Resolves when the engine answers. @throws UnavailableError */
  ping(): Promise<void>;

  /** Finishes accepted appends, ends everything else and releases it. */
  close(): Promise<void>;
}

export interface TimesWithin {
  /** Earliest time, included; default: no limit. */
  readonly from?: string | undefined;
  /** Latest time, included; default: no limit. */
  readonly to?: string | undefined;
  readonly after?: Position | undefined;
}

/** The log after `after` (`undefined`: from its start), up to and including `through`. */
export interface LogPart {
  readonly after: Position | undefined;
  readonly through: Position;
}

/** The log was copied to another engine. Retrying does not help. */
export class LogSealedError extends UnavailableError {
  constructor() {
    super('the event log is sealed since it was copied to another engine: use that one (EVENTSTORE_URL, DATA_DIR)');
  }
}

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

export class EventTooLargeError extends Error {
  override readonly name = 'EventTooLargeError';
  constructor(bytes: number) {
    super(`an append of ${bytes} bytes exceeds ${MAX_APPEND_BYTES}`);
  }
}

/** Bytes of one append at most: data and metadata of its events as JSON in UTF-8. */
export const MAX_APPEND_BYTES = 1_000_000;

/**
 * The read store port: documents that projections write and queries read, and small records. All of it can be rebuilt
 * from the log, or lost without harm.
 * Guarantees, tested for every adapter by `test/contract/readStore.ts`:
 * - A document has its log position; an older write never replaces a newer one. So a batch that is repeated, or written
 * late by a process that lost its lease, changes nothing.
 * - A batch's checkpoint is stored with or after its documents, never before, and never goes back.
 * - A collection's new version is built alongside the old one. A pointer that changes by compare-and-set then swaps
 * readers over at once. So a process that was frozen while it swapped can't put an outdated version over a newer one.
 * - A document whose stored body is damaged is read as an `UnreadableBody`; the others stay readable.
 * - Queries find a document by the fields of its body. In an altered file they may miss it: `misindexed` finds those.
 * - Records change by compare-and-set: of many puts that expect the same version one succeeds.
 * - `scrub` leaves no byte of replaced and deleted records and personal documents in the store's files.
 */
import type { Position } from './eventStore.js';

/** Strings compare by bytes, numbers by value; `null` equals an absent field. */
export type Scalar = string | number | boolean | null;

/** A document without its id and position: plain JSON. */
export type Body = object;

/** The body of a stored document whose file was damaged, until it is repaired. */
export interface UnreadableBody {
  readonly $unreadable: string;
}

/** A secondary index. Queries may use `id` and the fields of one index, from its first field on. */
export interface IndexSpec {
  readonly fields: readonly string[];
  /**
   * For documents whose ids rise with time, when most indexed values have few documents. An engine may divide the
   * index into parts, by id, so that new documents change few of its pages. A query that uses it names one value, not
   * null, for each of its fields, and sorts by id. Its time grows a little with the range of ids (about a second for
   * 10^10 documents). Not for personal collections: the engine may store ids apart from their documents.
   */
  readonly partitioned?: true;
}

/** One version of a collection, stored under its name and version number. */
export interface CollectionSpec {
  /** Lower-case letters, digits and `_`. */
  readonly name: string;
  /** Raised when the documents' shape or fold changes: a new version is built alongside the old one. */
  readonly version: number;
  readonly indexes: readonly IndexSpec[];
  /** The documents hold personal data in the clear: replaced and deleted ones can be scrubbed from the store. */
  readonly personal?: true;
}

export interface StoredDocument<B extends Body = Body> {
  readonly id: string;
  /** Position of the last event folded into the document. */
  readonly position: Position;
  readonly body: B;
}

/** A query's condition on one field of the body, or on `id`. */
export type Condition =
  | Scalar
  | { readonly in: readonly Scalar[] }
  | { readonly gte?: Scalar; readonly gt?: Scalar; readonly lte?: Scalar; readonly lt?: Scalar }
  | { readonly prefix: string };

/**
 * All conditions must hold. Fields are top-level fields of the body, or `id`; an undeclared field is refused with an
 * Error.
 */
export interface Query {
  readonly where?: Readonly<Record<string, Condition>>;
  /** Most significant field first: 1 ascending, -1 descending. Ties are broken by id, in the last field's direction. */
  readonly sort?: readonly (readonly [field: string, direction: 1 | -1])[];
  readonly skip?: number;
  readonly limit?: number;
}

export interface WriteBatch {
  readonly collection: CollectionSpec;
  /** At most 1,000 documents or 2 MB, in any order. Without documents only the checkpoint advances. */
  readonly documents: readonly StoredDocument[];
  /** The projection's progress once this batch is stored; absent when more batches of the same events follow. */
  readonly checkpoint?: Checkpoint;
}

/** Repairs one document at any position, where a write would only advance it. */
export interface Correction {
  readonly id: string;
  /** The position that the stored document must have; `undefined`: there must be no document. */
  readonly expected: Position | undefined;
  /** The document to store; `undefined` deletes the stored one. */
  readonly document: StoredDocument | undefined;
}

export interface Checkpoint {
  /** A projection's name and version, for example `gifts@3`. */
  readonly projection: string;
  readonly position: Position;
}

/** A small document changed by compare-and-set: session, lease, stored answer, counter. */
export interface StoredRecord<V = unknown> {
  readonly key: string;
  readonly value: V;
  /** Number of puts: 1 for a new record. A record that was deleted or has expired starts again at 1. */
  readonly version: number;
  /** Milliseconds since the epoch, after which the record is gone; absent: never. */
  readonly expiresAt?: number;
}

export interface PutOptions {
  /** 0: there must be no record; a number: the record's version; absent: no condition. */
  readonly expected?: number;
  /** Milliseconds since the epoch, after which the record is gone; absent: never. */
  readonly expiresAt?: number;
}

export interface ActivateOptions {
  /** 0: no version may be active; a number: the active version; absent: no condition. */
  readonly expected?: number;
}

/** Keys have at most 200 characters. */
export interface Records {
  /** The record of a key, unless it has expired. @throws UnavailableError */
  get<V>(key: string): Promise<StoredRecord<V> | undefined>;
  /**
   * @param value plain JSON
   * @returns the new version, or `undefined` when `expected` does not hold (nothing was written)
   * @throws UnavailableError
   */
  put(key: string, value: unknown, options?: PutOptions): Promise<number | undefined>;
  /** @returns whether a record with the expected version was deleted. @throws UnavailableError */
  delete(key: string, expected?: number): Promise<boolean>;
  /**
   * Unexpired records whose key starts with `prefix`, in key order; with `after`, only those with a greater key.
   * @throws UnavailableError
   */
  list<V>(prefix: string, limit?: number, after?: string): Promise<StoredRecord<V>[]>;
}

/** A stored document, record or other row as text, for searches over everything that the store holds. */
export interface StoredText {
  /** The engine's name of the row's collection, a space, and the row's id. */
  readonly place: string;
  /** All fields of the row, as they are stored. */
  readonly text: string;
}

/** Every method throws UnavailableError when the engine can't be reached or its disk is full. */
export interface ReadStore {
  /** `embedded` or `mongodb`, as shown by `/readyz`, metrics and the command line. */
  readonly engine: string;
  readonly records: Records;

  /**
   * Creates a missing collection and missing indexes. With `deferIndexes` no secondary index is created; a later call
   * without it creates them. Where a person has dropped the collection, its checkpoint goes, too, and it is not in use
   * any more: it is to be filled from the beginning.
   */
  ensure(collection: CollectionSpec, options?: { deferIndexes?: boolean }): Promise<void>;
  /** Drops one version of a collection and its checkpoint, where they exist. */
  drop(collection: CollectionSpec): Promise<void>;

  get<B extends Body>(collection: CollectionSpec, id: string): Promise<StoredDocument<B> | undefined>;
  /** Reads documents in one round trip, in the order of `ids`; `undefined` where there is no document. */
  getMany<B extends Body>(
    collection: CollectionSpec,
    ids: readonly string[],
  ): Promise<(StoredDocument<B> | undefined)[]>;
  /** @throws Error when the query names an undeclared field */
  find<B extends Body>(collection: CollectionSpec, query: Query): Promise<StoredDocument<B>[]>;
  count(collection: CollectionSpec, query: Query): Promise<number>;
  /**
   * The ids among these whose documents queries miss, or find by values that their bodies do not have. For
   * verification: it reads the documents.
   */
  misindexed(collection: CollectionSpec, ids: readonly string[]): Promise<string[]>;

  /**
   * Writes the batches in order. Each document replaces only one of a lower position, and each checkpoint only a lower
   * one; the rest is skipped silently. Safe to repeat as a whole.
   */
  write(batches: readonly WriteBatch[]): Promise<void>;
  /**
   * Repairs documents by compare-and-set, whatever their positions; at most as many as a batch.
   * @returns whether each correction was made
   */
  correct(collection: CollectionSpec, corrections: readonly Correction[]): Promise<boolean[]>;
  checkpoint(projection: string): Promise<Position | undefined>;
  /**
   * Waits until the projection's checkpoint, written by any process, is at or past `position`.
   * @returns false when `timeoutMs` passed first
   */
  reached(projection: string, position: Position, timeoutMs: number): Promise<boolean>;

  /** The version that readers use; `undefined` before the first `activate`. */
  active(name: string): Promise<number | undefined>;
  /** The stored versions of a collection, ascending. */
  versions(name: string): Promise<number[]>;
  /**
   * Swaps readers over to this version, at once and durably. Safe to repeat.
   * @returns whether it is now active: false when `expected` does not hold (nothing was changed)
   */
  activate(name: string, version: number, options?: ActivateOptions): Promise<boolean>;
  /**
   * Deactivates this version, at once and durably; its documents stay.
   * @returns whether no version is active now: false when another one is (nothing was changed)
   */
  deactivate(name: string, version: number): Promise<boolean>;

  /**
   * Removes replaced and deleted records, and personal collections' replaced and deleted documents, from the store's
   * files; a server frees their bytes by its own rules. The time grows with the number of records and personal
   * documents. Reads and writes continue concurrently. Safe to repeat.
   */
  scrub(): Promise<void>;

  /**
   * Every stored row once, for searches, including rows of collections that no program knows of. Rows that change
   * during the scan may be missing.
   */
  texts(): AsyncIterable<readonly StoredText[]>;

  /** The id of the log that this store was filled from; set by the first call. */
  boundTo(logId: string): Promise<string>;
  ping(): Promise<void>;
  close(): Promise<void>;
}

export const MAX_BATCH_DOCUMENTS = 1_000;
/** Bytes of the bodies of one batch, as JSON. */
export const MAX_BATCH_BYTES = 2_000_000;

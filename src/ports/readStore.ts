/**
 * The read store port: documents that projections write and queries read, and small records. All of it can be rebuilt
 * from the log, or lost without harm.
 * Guarantees, tested for every adapter by `test/contract/readStore.ts`:
 * - A document has its log position; an older write never replaces a newer one. So a batch that is repeated, or written
 * late by a process that lost its lease, changes nothing.
 * - A batch's checkpoint is stored with or after its documents, never before, and never goes back.
 * - A collection's new version is built beside the old one. A pointer that changes by compare-and-set then swaps
 * readers over at once. So a process that was frozen while it swapped can't put an outdated version over a newer one.
 * - A document whose stored body is damaged is read as an `UnreadableBody`; the others stay readable.
 * - Queries find a document by the fields of its body. Where a file was altered they may not: `misindexed` tells.
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
   * For documents whose ids rise with time, where most values have few of them: an engine may keep the index in parts,
   * by id, so that new documents change few of its pages. A query that uses it names one value, not null, for each of
   * its fields, and sorts by id. Its time grows a little with the range of ids (about a second for 10^10 documents).
   * Not for personal collections: ids may be kept beside their documents.
   */
  readonly partitioned?: true;
}

/** One version of a collection, stored under both names. */
export interface CollectionSpec {
  /** Lower-case letters, digits and `_`. */
  readonly name: string;
  /** Raised when the documents' shape or fold changes: a new version is built beside the old one. */
  readonly version: number;
  readonly indexes: readonly IndexSpec[];
  /** Its documents hold personal data in the clear: what was replaced or deleted can be scrubbed from the store. */
  readonly personal?: true;
}

export interface StoredDocument<B extends Body = Body> {
  readonly id: string;
  /** Of the last event folded into it. */
  readonly position: Position;
  readonly body: B;
}

/** On one field, or on `id`. */
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
  /** Absent when more batches of the same events follow. */
  readonly checkpoint?: Checkpoint;
}

/** Repairs one document at any position, where a write would only advance it. */
export interface Correction {
  readonly id: string;
  /** The position that the stored document must have; `undefined`: there must be no document. */
  readonly expected: Position | undefined;
  /** `undefined`: the document is deleted. */
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
  /** From 1, raised by each put. A record that was deleted or has expired starts again at 1. */
  readonly version: number;
  /** Milliseconds since the epoch, after which the record is gone; absent: never. */
  readonly expiresAt?: number;
}

export interface PutOptions {
  /** 0: there must be no record; a number: the record's version; absent: no condition. */
  readonly expected?: number;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
}

export interface ActivateOptions {
  /** 0: no version may be active; a number: the active version; absent: no condition. */
  readonly expected?: number;
}

/** Keys have at most 200 characters. */
export interface Records {
  /** @throws UnavailableError */
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
   * The records whose key starts with `prefix`, by key, without expired ones; only those after the key `after`.
   * @throws UnavailableError
   */
  list<V>(prefix: string, limit?: number, after?: string): Promise<StoredRecord<V>[]>;
}

/** A document, a record or another row. */
export interface StoredText {
  /** The engine's name of its collection, and its id. */
  readonly place: string;
  /** All its fields, as they are stored. */
  readonly text: string;
}

/** Every method throws UnavailableError when the engine can't be reached or its disk is full. */
export interface ReadStore {
  /** `embedded` or `mongodb`, as shown by `/readyz`, metrics and the command line. */
  readonly engine: string;
  readonly records: Records;

  /**
   * Creates a missing collection and missing indexes. `deferIndexes`: a later call without it creates the secondary
   * indexes.
   */
  ensure(collection: CollectionSpec, options?: { deferIndexes?: boolean }): Promise<void>;
  /** Drops one version of a collection and its checkpoint, where they exist. */
  drop(collection: CollectionSpec): Promise<void>;

  get<B extends Body>(collection: CollectionSpec, id: string): Promise<StoredDocument<B> | undefined>;
  /** In one round trip, in the order of `ids`, `undefined` where there is no document. */
  getMany<B extends Body>(
    collection: CollectionSpec,
    ids: readonly string[],
  ): Promise<(StoredDocument<B> | undefined)[]>;
  /** @throws Error when the query names an undeclared field */
  find<B extends Body>(collection: CollectionSpec, query: Query): Promise<StoredDocument<B>[]>;
  count(collection: CollectionSpec, query: Query): Promise<number>;
  /**
   * Those of the ids whose documents queries find by other values than their bodies have, or miss. For verification:
   * it reads the documents.
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
   * What was replaced or deleted before, of records and of documents of personal collections, is in none of the store's
   * files once it resolves; a server frees it by its own rules. Takes time with the number of both; reads and writes go
   * on meanwhile. Safe to repeat.
   */
  scrub(): Promise<void>;

  /**
   * All that is stored, in collections that no program knows of, too: for searches. Each row once, though what changes
   * meanwhile may be missing.
   */
  texts(): AsyncIterable<readonly StoredText[]>;

  /** The id of the log that this store was filled from; set by the first call. */
  boundTo(logId: string): Promise<string>;
  ping(): Promise<void>;
  close(): Promise<void>;
}

export const MAX_BATCH_DOCUMENTS = 1_000;
/** Of the bodies as JSON. */
export const MAX_BATCH_BYTES = 2_000_000;

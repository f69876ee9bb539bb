/**
 * The read store port: documents that projections write and queries read, and small records beside them.
 * Everything in it can be thrown away and rebuilt from the log, or lost without harm.
 *
 * Guarantees, tested for every adapter by `test/contract/readStore.ts`:
 * - A document carries the log position it stands at; an older write never replaces a newer one, so a batch written
 * twice,
 *   or late by a process that lost its lease, changes nothing.
 * - A batch's checkpoint is stored with or after its documents, never before, and never goes back.
 * - A version of a collection is built beside another and swapped in at once, by a pointer, which changes by
 * compare-and-set: a process that was frozen while it
 *   swapped can't put an outdated version over a newer one when it wakes.
 * - A document whose body was damaged where it is stored is read as an `UnreadableBody`: it keeps nobody from the
 * others.
 * - Records change by compare-and-set: of many puts that expect the same version one succeeds.
 */
import type { Position } from './eventStore.js';

/**
 * A scalar that can be indexed and compared: strings by bytes, numbers by value, booleans; `null` equals an absent
 * field.
 */
export type Scalar = string | number | boolean | null;

/** What a document holds, without its id and position: plain JSON. */
export type Body = object;

/**
 * The body of a stored document that can't be read, since its file was damaged: nothing of it is known but this. It
 * stays so until it is put right.
 */
export interface UnreadableBody {
  /** What is wrong with it. */
  readonly $unreadable: string;
}

/** A secondary index. Queries may use only fields of one index, from its first field on, besides the id. */
export interface IndexSpec {
  readonly fields: readonly string[];
}

/** One version of a collection. Its stored name is made of both. */
export interface CollectionSpec {
  /** Lower-case letters, digits and `_`. */
  readonly name: string;
  /** Raised when the documents' shape or fold changes: a new version is built beside the old one. */
  readonly version: number;
  readonly indexes: readonly IndexSpec[];
}

/** A stored document. */
export interface StoredDocument<B extends Body = Body> {
  readonly id: string;
  /** The log position of the last event folded into it. */
  readonly position: Position;
  readonly body: B;
}

/** A condition on one field (or on `id`). */
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
  /**
   * Field and direction (1 ascending, -1 descending), in order of weight. Ties are broken by id, in the last field's
   * direction: an index read from one end.
   */
  readonly sort?: readonly (readonly [field: string, direction: 1 | -1])[];
  readonly skip?: number;
  readonly limit?: number;
}

/** Documents to write and the checkpoint they bring a projection to. */
export interface WriteBatch {
  /** Where the documents go. */
  readonly collection: CollectionSpec;
  /** At most 1,000 documents or 2 MB; the adapter sorts them by id. May be empty (the checkpoint alone advances). */
  readonly documents: readonly StoredDocument[];
  /** Stored with or after the documents; absent when more batches of the same events follow. */
  readonly checkpoint?: Checkpoint;
}

/** One document put right whatever position it stands at: what a write, which never goes back, can't do. */
export interface Correction {
  readonly id: string;
  /** The position at which the stored document must stand, or nothing is done; `undefined`: there must be none. */
  readonly expected: Position | undefined;
  /** What is to stand there; `undefined`: nothing. */
  readonly document: StoredDocument | undefined;
}

/** How far a projection has come. */
export interface Checkpoint {
  /** The projection's name and version, for example `gifts@3`. */
  readonly projection: string;
  readonly position: Position;
}

/** A small document changed by compare-and-set: session, lease, stored answer, counter. */
export interface StoredRecord<V = unknown> {
  readonly key: string;
  readonly value: V;
  /** From 1; rises with each put. A record that was deleted or has expired starts again at 1. */
  readonly version: number;
  /** Milliseconds since the epoch after which the record is as if it were not there; absent: never. */
  readonly expiresAt?: number;
}

/** Options of a put. */
export interface PutOptions {
  /** 0: there must be none; a number: it must have this version; absent: whatever stands there. */
  readonly expected?: number;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
}

/** Options of a swap. */
export interface ActivateOptions {
  /** 0: no version may be in use yet; a number: that one must be; absent: whatever is. */
  readonly expected?: number;
}

/** Small documents beside the read models. Keys are at most 200 characters. */
export interface Records {
  /** @throws UnavailableError */
  get<V>(key: string): Promise<StoredRecord<V> | undefined>;
  /**
   * Writes the record; the value is plain JSON.
   * @returns the new version, or `undefined` when `expected` does not hold (nothing was written).
   * @throws UnavailableError
   */
  put(key: string, value: unknown, options?: PutOptions): Promise<number | undefined>;
  /**
   * Deletes the record if it is there (and has the expected version). @returns whether it was. @throws UnavailableError
   */
  delete(key: string, expected?: number): Promise<boolean>;
  /** The records whose key begins with `prefix`, by key, without the expired. @throws UnavailableError */
  list<V>(prefix: string, limit?: number): Promise<StoredRecord<V>[]>;
}

/** The engine. Every method throws UnavailableError when the engine can't be reached or its disk is full. */
export interface ReadStore {
  /** `embedded`, `mongodb`: as `/readyz`, metrics and the command line name it. */
  readonly engine: string;
  readonly records: Records;

  /**
   * Makes the collection and its indexes where they are missing. `deferIndexes`: secondary indexes are made by the next
   * call without it.
   */
  ensure(collection: CollectionSpec, options?: { deferIndexes?: boolean }): Promise<void>;
  /** Drops one version of a collection and its checkpoint; what isn't there is no error. */
  drop(collection: CollectionSpec): Promise<void>;

  /** One document, or `undefined`. */
  get<B extends Body>(collection: CollectionSpec, id: string): Promise<StoredDocument<B> | undefined>;
  /** The documents in the order of `ids`, `undefined` where there is none: one round trip. */
  getMany<B extends Body>(
    collection: CollectionSpec,
    ids: readonly string[],
  ): Promise<(StoredDocument<B> | undefined)[]>;
  /** The documents of the query. @throws Error when it names an undeclared field. */
  find<B extends Body>(collection: CollectionSpec, query: Query): Promise<StoredDocument<B>[]>;
  /** How many documents the query (its `where`) matches. */
  count(collection: CollectionSpec, query: Query): Promise<number>;

  /**
   * Writes the batches in their order. Each document replaces only one of a lower position; equal or older ones are
   * skipped silently. A checkpoint below the stored one is skipped. Safe to repeat as a whole.
   */
  write(batches: readonly WriteBatch[]): Promise<void>;
  /**
   * Puts documents right by compare-and-set, whatever their positions: for repairs. At most as many as a batch.
   * @returns for each correction, in their order, whether it was made.
   */
  correct(collection: CollectionSpec, corrections: readonly Correction[]): Promise<boolean[]>;
  /** The stored checkpoint of a projection. */
  checkpoint(projection: string): Promise<Position | undefined>;
  /**
   * Waits until the projection's checkpoint is at or past `position`, by whatever process it is written.
   * @returns false when `timeoutMs` passed first.
   */
  reached(projection: string, position: Position, timeoutMs: number): Promise<boolean>;

  /** The version of a collection that readers use; `undefined` before the first `activate`. */
  active(name: string): Promise<number | undefined>;
  /** The versions of a collection that are stored, from the lowest. */
  versions(name: string): Promise<number[]>;
  /**
   * Swaps readers over to this version, at once and durably. Asked again, since the answer was lost, it is in use
   * already, and that is well.
   * @returns whether it is in use now: false when `expected` does not hold (nothing was changed).
   */
  activate(name: string, version: number, options?: ActivateOptions): Promise<boolean>;
  /**
   * Takes this version out of use, at once and durably: no version is in use then, as before the first `activate`. What
   * it holds stays.
   * @returns whether none is in use now: false when another version is (nothing was changed).
   */
  deactivate(name: string, version: number): Promise<boolean>;

  /** The id of the log that this store was filled from; sets it when there is none yet. */
  boundTo(logId: string): Promise<string>;
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The most documents one batch may have. */
export const MAX_BATCH_DOCUMENTS = 1_000;
/** The most bytes (JSON) one batch may have. */
export const MAX_BATCH_BYTES = 2_000_000;

import { randomUUID } from 'node:crypto';
import type {
  Body,
  CollectionSpec,
  IndexSpec,
  ReadStore,
  StoredDocument,
  WriteBatch,
} from '../../../src/ports/readStore.js';

/** A store to test, which may already hold other collections and records. */
export interface ReadStoreFixture {
  readonly store: ReadStore;
  /** The same store again, once `store` is closed. */
  readonly reopen: () => Promise<ReadStore>;
  /** Another client of the same store, beside `store`. */
  readonly second: () => Promise<ReadStore>;
  /** How many documents the largest case writes, in thousands; 10,000 when absent. */
  readonly many?: number;
  /** Makes this text of a document's body, past the store. */
  readonly damage: (collection: CollectionSpec, id: string, body: string) => Promise<void>;
  /** Makes this the value that queries find a document by, past the store; `null`: none. */
  readonly misindex: (collection: CollectionSpec, id: string, field: string, value: string | null) => Promise<void>;
  /** Which of these texts stand in the store's files; absent: a server has them. */
  readonly textsInFiles?: (texts: readonly string[]) => readonly string[];
  /** Closes and removes everything. */
  readonly destroy: () => Promise<void>;
}

/** Checks one promise of the port on a fresh fixture. */
export type ReadStorePromised = (store: ReadStore, fixture: ReadStoreFixture) => Promise<void>;

/** A collection that no other test has. */
export function newCollection(indexes: readonly (readonly string[])[] = [], version = 1): CollectionSpec {
  return {
    name: `test_${randomUUID().replaceAll('-', '')}`,
    version,
    indexes: indexes.map((fields): IndexSpec => ({ fields })),
  };
}

/** The nth position of a log. */
export function at(n: number): string {
  return String(n).padStart(20, '0');
}

/** A document at the nth position. */
export function doc<B extends Body>(id: string, n: number, body: B): StoredDocument<B> {
  return { id, position: at(n), body };
}

/** The name under which a collection's projection keeps its checkpoint. */
export function projectionOf(collection: CollectionSpec): string {
  return `${collection.name}@${collection.version}`;
}

/** A batch, with the checkpoint it brings the collection's projection to where one is given. */
export function batch(
  collection: CollectionSpec,
  documents: readonly StoredDocument[],
  checkpoint?: number,
): WriteBatch {
  return {
    collection,
    documents,
    ...(checkpoint === undefined
      ? {}
      : { checkpoint: { projection: projectionOf(collection), position: at(checkpoint) } }),
  };
}

/** A new collection that holds a document for each body, with the ids `d00`, `d01` … */
export async function filled(
  store: ReadStore,
  bodies: readonly Body[],
  indexes: readonly (readonly string[])[] = [],
): Promise<CollectionSpec> {
  const collection = newCollection(indexes);
  await store.ensure(collection);
  await store.write([
    batch(
      collection,
      bodies.map((body, n) => doc(`d${String(n).padStart(2, '0')}`, n + 1, body)),
    ),
  ]);
  return collection;
}

/** The rejection of a promise; fails when it resolves. */
export async function rejectionOf(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    (value) => {
      throw new Error(`expected a failure, got ${JSON.stringify(value)}`);
    },
    (error: unknown) => error as Error,
  );
}

/** The ids, in order. */
export function idsOf(documents: readonly ({ readonly id: string } | undefined)[]): (string | undefined)[] {
  return documents.map((document) => document?.id);
}

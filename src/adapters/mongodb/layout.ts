/** How the read store lies in MongoDB: one collection a version of a read model, and three small ones beside them. */
import type { IndexDirection } from 'mongodb';
import type { CollectionSpec, Scalar, StoredDocument } from '../../ports/readStore.js';
import { collectionNameOf, rememberedLayouts, scalarOf, storedNameOf } from '../readStoreRules.js';
import { storedBodyOf } from '../storedBody.js';

/**
 * A stored document. Its body is JSON text: any key survives exactly, and it is read and written faster than the same
 * body as BSON.
 */
export interface MongoDocument {
  readonly _id: string;
  /** Its position. */
  readonly p: string;
  /** Its body. */
  readonly b: string;
  /** The fields that indexes name (`keyOf`); one that a query can't find is left out. */
  readonly [key: `f_${string}`]: Scalar;
}

/** The checkpoints of projections: `_id` is the projection's, `p` its position. */
export const CHECKPOINTS = 'checkpoints';
/** Sessions, leases and other records. */
export const RECORDS = 'records';
/** Pointers, the log this store is bound to, which fields stand beside the bodies of a collection. */
export const META = 'meta';

/** A field that can be queried and the key under which its value stands beside the body. */
export interface FieldKey {
  readonly field: string;
  readonly key: `f_${string}`;
}

/** An index as it is made. */
export interface MongoIndex {
  readonly name: string;
  /** Ends with the id, so that ties are already in order. */
  readonly key: Readonly<Record<string, IndexDirection>>;
}

/** The collection of one version. */
export interface Layout {
  /** For messages: `gifts@3`; the name of its checkpoint too. */
  readonly name: string;
  /** The collection's name in the database. */
  readonly collection: string;
  readonly fields: readonly FieldKey[];
  /** As declared, without `id`. */
  readonly declared: readonly { readonly fields: readonly string[] }[];
  readonly indexes: readonly MongoIndex[];
}

/** The layout of a collection. @throws Error when its name or version can't be part of a collection's name. */
export const layoutOf = rememberedLayouts(makeLayout);

/** The key of a field, whatever its name: MongoDB gives `$` and `.` in keys a meaning. */
export function keyOf(field: string): `f_${string}` {
  return `f_${field.replaceAll(/[^A-Za-z0-9_]/gu, (sign) => `~${(sign.codePointAt(0) as number).toString(16)}~`)}`;
}

/** The values that queries can find, by key. */
export function valuesOf(fields: readonly FieldKey[], body: object): Record<`f_${string}`, Scalar> {
  const values: Record<`f_${string}`, Scalar> = {};
  for (const { field, key } of fields) {
    const value = scalarOf((body as Readonly<Record<string, unknown>>)[field]);
    if (value !== null) values[key] = value;
  }
  return values;
}

/** A document as the port has it. */
export function documentOf<B extends object>({ _id, p, b }: MongoDocument): StoredDocument<B> {
  return { id: _id, position: p, body: storedBodyOf(b) as B };
}

function makeLayout(collection: CollectionSpec): Layout {
  const name = collectionNameOf(collection);
  const declared = collection.indexes.map(({ fields }) => ({ fields: fields.filter((field) => field !== 'id') }));
  const fields = [...new Set(declared.flatMap((index) => index.fields))].map((field) => ({ field, key: keyOf(field) }));
  const indexes = new Map<string, MongoIndex>();
  for (const index of declared) {
    if (index.fields.length === 0) continue;
    const keys = [...index.fields.map(keyOf), '_id'];
    const indexName = keys.join(',');
    indexes.set(indexName, { name: indexName, key: Object.fromEntries(keys.map((key) => [key, 1])) });
  }
  return { name, collection: storedNameOf(collection), fields, declared, indexes: [...indexes.values()] };
}

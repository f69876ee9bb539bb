import type { IndexDirection } from 'mongodb';
import type { CollectionSpec, IndexSpec, Scalar, StoredDocument } from '../../ports/readStore.js';
import { collectionNameOf, isStoredAs, rememberedLayouts, scalarOf, storedNameOf } from '../readStoreRules.js';
import { storedBodyOf } from '../storedBody.js';

/** A document as MongoDB stores it. The body is JSON text: every key survives, and it is faster than BSON. */
export interface MongoDocument {
  readonly _id: string;
  /** Position of the event that the document reflects. */
  readonly p: string;
  /** Body as JSON text. */
  readonly b: string;
  /** Values of the indexed fields, without those that queries can't find. */
  readonly [key: `f_${string}`]: Scalar;
}

/** Collection of the checkpoints: `_id` is the projection, `p` its position. */
export const CHECKPOINTS = 'checkpoints';
export const RECORDS = 'records';
export const META = 'meta';
/** Collections of the key store. */
export const SUBJECTS = 'subjects';
export const ERASURES = 'erasures';

export interface FieldKey {
  readonly field: string;
  readonly key: `f_${string}`;
}

export interface MongoIndex {
  readonly name: string;
  /** Fields of the index, which ends with the id, so that ties are in order. */
  readonly key: Readonly<Record<string, IndexDirection>>;
}

export interface Layout {
  /** The collection's name in messages and checkpoints, such as `gifts@3`. */
  readonly name: string;
  readonly collection: string;
  readonly fields: readonly FieldKey[];
  /** Indexes as the collection declares them, without `id`. */
  readonly declared: readonly IndexSpec[];
  readonly indexes: readonly MongoIndex[];
}

export const layoutOf = rememberedLayouts(makeLayout);

/**
 * The document's key for a field. Signs other than letters, digits and `_` are escaped: `$` and `.` have a meaning in
 * MongoDB's keys.
 */
export function keyOf(field: string): `f_${string}` {
  return `f_${field.replaceAll(/[^A-Za-z0-9_]/gu, (sign) => `~${(sign.codePointAt(0) as number).toString(16)}~`)}`;
}

/** Values of the fields in a body: only those that queries can find. */
export function valuesOf(fields: readonly FieldKey[], body: object): Record<`f_${string}`, Scalar> {
  const values: Record<`f_${string}`, Scalar> = {};
  for (const { field, key } of fields) {
    const value = scalarOf((body as Readonly<Record<string, unknown>>)[field]);
    if (value !== null) values[key] = value;
  }
  return values;
}

export function isMisindexed({ fields }: Layout, document: MongoDocument): boolean {
  const body = storedBodyOf(document.b) as Readonly<Record<string, unknown>>;
  return fields.some(({ field, key }) => !isStoredAs(scalarOf(body[field]), document[key] ?? null));
}

export function documentOf<B extends object>({ _id, p, b }: MongoDocument): StoredDocument<B> {
  return { id: _id, position: p, body: storedBodyOf(b) as B };
}

function makeLayout(collection: CollectionSpec): Layout {
  const name = collectionNameOf(collection);
  const declared = collection.indexes.map((index) => ({
    ...index,
    fields: index.fields.filter((field) => field !== 'id'),
  }));
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

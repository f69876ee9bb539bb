import type { IndexDirection } from 'mongodb';
import type { CollectionSpec, IndexSpec, Scalar, StoredDocument } from '../../ports/readStore.js';
import { collectionNameOf, isKeptAs, rememberedLayouts, scalarOf, storedNameOf } from '../readStoreRules.js';
import { storedBodyOf } from '../storedBody.js';

/** The body is JSON text: every key survives, and it is faster than BSON. */
export interface MongoDocument {
  readonly _id: string;
  /** Position. */
  readonly p: string;
  /** Body. */
  readonly b: string;
  /** Without values that queries can't find. */
  readonly [key: `f_${string}`]: Scalar;
}

/** `_id` is the projection, `p` its position. */
export const CHECKPOINTS = 'checkpoints';
export const RECORDS = 'records';
export const META = 'meta';

export interface FieldKey {
  readonly field: string;
  readonly key: `f_${string}`;
}

export interface MongoIndex {
  readonly name: string;
  /** Ends with the id, so that ties are in order. */
  readonly key: Readonly<Record<string, IndexDirection>>;
}

export interface Layout {
  /** As in messages and checkpoints: `gifts@3`. */
  readonly name: string;
  readonly collection: string;
  readonly fields: readonly FieldKey[];
  /** As declared, without `id`. */
  readonly declared: readonly IndexSpec[];
  readonly indexes: readonly MongoIndex[];
}

export const layoutOf = rememberedLayouts(makeLayout);

/** `$` and `.` have a meaning in MongoDB's keys. */
export function keyOf(field: string): `f_${string}` {
  return `f_${field.replaceAll(/[^A-Za-z0-9_]/gu, (sign) => `~${(sign.codePointAt(0) as number).toString(16)}~`)}`;
}

/** Only values that queries can find. */
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
  return fields.some(({ field, key }) => !isKeptAs(scalarOf(body[field]), document[key] ?? null));
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

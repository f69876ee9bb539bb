/** A table per version of a collection, a column per indexed field. */
import type { Database } from 'better-sqlite3';
import type { CollectionSpec, IndexSpec, Scalar } from '../../../ports/readStore.js';
import {
  collectionNameOf,
  rememberedLayouts,
  storedNameOf,
  storedPrefixOf,
  versionsAmong,
} from '../../readStoreRules.js';

export interface FieldColumn {
  readonly field: string;
  readonly column: string;
}

/** Table, columns and indexes of a collection, as plain data that crosses threads. */
export interface Layout {
  /** The collection's name in messages and checkpoints, such as `gifts@3`. */
  readonly name: string;
  readonly table: string;
  readonly personal: boolean;
  readonly columns: readonly FieldColumn[];
  /** `fields` lacks `id`; the SQL index ends with it, so that ties are in order. */
  readonly indexes: readonly (IndexSpec & { readonly name: string; readonly columns: readonly string[] })[];
  /** Columns of the partitioned indexes. */
  readonly partitioned: readonly string[];
  /** A text that is equal for equal tables and indexes. */
  readonly key: string;
}

/**
 * A value as SQLite stores it. Booleans become blobs, which sort after strings: SQLite has no booleans, and 1 would
 * equal `true`.
 */
export type SqlScalar = string | number | Uint8Array | null;

const FALSE = new Uint8Array([0]);
const TRUE = new Uint8Array([1]);

export const layoutOf = rememberedLayouts(makeLayout);

export function versionsOf(database: Database, name: string): number[] {
  const tables = database
    .prepare<[string], string>(`SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB ? || '*'`)
    .pluck()
    .all(storedPrefixOf(name));
  return versionsAmong(tables, name);
}

export function sqlScalar(value: Scalar): SqlScalar {
  return typeof value === 'boolean' ? (value ? TRUE : FALSE) : value;
}

/** The value of a stored column. Bytes that are no boolean stay bytes, and equal no value. */
export function scalarFrom(stored: SqlScalar): unknown {
  if (!(stored instanceof Uint8Array)) return stored;
  if (Buffer.compare(stored, TRUE) === 0) return true;
  return Buffer.compare(stored, FALSE) === 0 ? false : stored;
}

function makeLayout(collection: CollectionSpec): Layout {
  const { indexes } = collection;
  const name = collectionNameOf(collection);
  const table = storedNameOf(collection);
  const fields = new Set(indexes.flatMap((index) => index.fields).filter((field) => field !== 'id'));
  const columns = [...fields].map((field) => ({ field, column: columnOf(field) }));
  const own = indexes.map((index) => {
    const indexed = index.fields.filter((field) => field !== 'id');
    const parts = index.partitioned === true ? ' by partition' : '';
    return {
      ...index,
      name: quoted(`${table}(${JSON.stringify(indexed)})${parts}`),
      fields: indexed,
      columns: indexed.map(columnOf),
    };
  });
  const layout = {
    name,
    table: quoted(table),
    personal: collection.personal === true,
    columns,
    indexes: own,
    partitioned: own.flatMap((index) => (index.partitioned === true ? index.columns : [])),
  };
  return { ...layout, key: JSON.stringify(layout) };
}

/** The column of a field, with upper-case letters escaped: SQLite ignores case in column names. */
function columnOf(field: string): string {
  return quoted(`f:${field.replaceAll(/[A-Z^]/g, (letter) => `^${letter.toLowerCase()}`)}`);
}

export function unquoted(name: string): string {
  return name.slice(1, -1).replaceAll('""', '"');
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Finds rows whose indexed columns have other values than their bodies. */
import { storedBodyOf } from '../../storedBody.js';
import { isKeptAs, scalarOf } from '../../readStoreRules.js';
import { type Layout, scalarFrom, type SqlScalar, unquoted } from './layout.js';
import { PARTITION, partitionOf } from './partitions.js';

/** Id, body, the layout's columns, the row's partition and the partition that it should be in. */
export type IndexedRow = readonly [id: string, body: string, ...SqlScalar[]];

/**
 * The query for rows to check. Parameters: the table's name, and ids as JSON.
 * @param present names of the table's columns; a column that was never added reads as NULL
 */
export function indexedRowsSql({ table, columns, partitioned }: Layout, present: ReadonlySet<string>): string {
  const own = [...columns.map(({ column }) => column), PARTITION];
  const stored = own.map((column) => (present.has(unquoted(column)) ? `d.${column}` : 'NULL'));
  const holding = partitioned.length === 0 ? '?' : `(${partitionOf('d.id')})`;
  return `SELECT d.id, d.body, ${stored.join(', ')}, ${holding}
    FROM json_each(?) AS wanted CROSS JOIN ${table} AS d ON d.id = wanted.value`;
}

export function isMisindexed({ columns, partitioned }: Layout, [, text, ...stored]: IndexedRow): boolean {
  const body = storedBodyOf(text) as Readonly<Record<string, unknown>>;
  const values = columns.map(({ field }) => scalarOf(body[field]));
  if (values.some((value, index) => !isKeptAs(value, scalarFrom(stored[index] ?? null)))) return true;
  if (partitioned.length === 0) return false;
  const isInOne = columns.some(({ column }, index) => partitioned.includes(column) && values[index] !== null);
  const [partition, holding] = stored.slice(columns.length);
  return partition !== (isInOne ? holding : null);
}

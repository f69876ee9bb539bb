import type { Condition, Query, Scalar } from '../../../ports/readStore.js';
import { afterPrefix } from '../../prefix.js';
import { conditionsOf } from '../../readStoreRules.js';
import { VALUE } from '../sqlite.js';
import { sqlScalar, type Layout, type SqlScalar, unquoted } from './layout.js';
import { PARTITION, PARTITION_OF_ID, PARTITIONS } from './partitions.js';

interface Sql {
  readonly text: string;
  readonly parameters: readonly SqlScalar[];
}

/** FROM and WHERE of a query; `partitioned`: whether documents are read one partition after the other. */
interface Where extends Sql {
  readonly partitioned: boolean;
}

type Bounds = Extract<Condition, { gt?: Scalar }>;

const OPERATORS = { gte: '>=', gt: '>', lte: '<=', lt: '<' } as const;

/**
 * FROM and WHERE of a query.
 * @throws Error when its fields, those of `sort` too, are not the first fields of one index, or for an unknown operator
 */
export function whereOf(layout: Layout, query: Query): Where {
  const { where, partitioned } = conditionsOf(layout.name, layout.indexes, query);
  const terms = where.map(([field, condition]) => termOf(layout, field, condition));
  if (partitioned) terms.unshift(...partitionTerms(layout, query.where?.['id']));
  const from = partitioned ? `${PARTITIONS} CROSS JOIN ${layout.table}` : layout.table;
  return {
    text: `${from}${terms.length === 0 ? '' : ` WHERE ${terms.map(({ text }) => text).join(' AND ')}`}`,
    parameters: terms.flatMap(({ parameters }) => parameters),
    partitioned,
  };
}

/** The partitions in which such ids may be, each joined with its documents. */
function partitionTerms({ table }: Layout, id: Condition | undefined): Sql[] {
  const collection = unquoted(table);
  const terms: Sql[] = [{ text: `collection = ? AND ${PARTITION} = number`, parameters: [collection] }];
  const { from, to } = rangeOf(id);
  if (from !== undefined) terms.push({ text: `number >= (${PARTITION_OF_ID})`, parameters: [collection, from] });
  if (to !== undefined) terms.push({ text: 'first_id <= ?', parameters: [to] });
  return terms;
}

/** The range of ids in which all ids that meet the condition are. */
function rangeOf(id: Condition | undefined): { readonly from?: string; readonly to?: string } {
  if (typeof id === 'string') return { from: id, to: id };
  if (id === undefined || id === null || typeof id !== 'object' || 'in' in id) return {};
  if ('prefix' in id) return { from: id.prefix };
  const { gt, gte = gt, lt, lte = lt } = id;
  return { ...(typeof gte === 'string' ? { from: gte } : {}), ...(typeof lte === 'string' ? { to: lte } : {}) };
}

/** Ties are in the order of ids, descending where the last field is. */
export function pageOf(layout: Layout, query: Query, { partitioned }: Pick<Where, 'partitioned'>): Sql {
  const sort = query.sort ?? [];
  const order = sort.map(([field, direction]) => `${columnOf(layout, field)} ${direction === 1 ? 'ASC' : 'DESC'}`);
  if (!sort.some(([field]) => field === 'id')) order.push(sort.at(-1)?.[1] === -1 ? 'id DESC' : 'id ASC');
  // In this order SQLite reads an index and sorts nothing.
  if (partitioned) order.unshift(sort[0]?.[1] === -1 ? 'number DESC' : 'number ASC');
  return {
    text: ` ORDER BY ${order.join(', ')} LIMIT ${VALUE} OFFSET ${VALUE}`,
    parameters: [query.limit ?? -1, query.skip ?? 0],
  };
}

function columnOf(layout: Layout, field: string): string {
  return layout.columns.find((column) => column.field === field)?.column ?? 'id';
}

function termOf(layout: Layout, field: string, condition: Condition): Sql {
  const column = columnOf(layout, field);
  if (condition === null) return { text: `${column} IS NULL`, parameters: [] };
  if (typeof condition !== 'object') return { text: `${column} = ?`, parameters: [sqlScalar(condition)] };
  if ('in' in condition) return anyOf(column, condition.in);
  if ('prefix' in condition) return beginsWith(column, condition.prefix);
  return between(column, condition);
}

/** One JSON parameter keeps the statement the same for any number of values. */
function anyOf(column: string, values: readonly Scalar[]): Sql {
  const plain = values.filter((value) => typeof value === 'string' || typeof value === 'number');
  const terms = plain.length === 0 ? [] : [`${column} IN (SELECT value FROM json_each(?))`];
  const parameters: SqlScalar[] = plain.length === 0 ? [] : [JSON.stringify(plain)];
  for (const value of [true, false]) {
    if (!values.includes(value)) continue;
    terms.push(`${column} = ?`);
    parameters.push(sqlScalar(value));
  }
  if (values.includes(null)) terms.push(`${column} IS NULL`);
  return { text: terms.length === 0 ? '0' : `(${terms.join(' OR ')})`, parameters };
}

function beginsWith(column: string, prefix: string): Sql {
  const end = afterPrefix(prefix);
  if (end === undefined) return { text: `${column} >= ${VALUE} AND ${column} < x''`, parameters: [prefix] };
  return { text: `${column} >= ${VALUE} AND ${column} < ${VALUE}`, parameters: [prefix, end] };
}

/**
 * A bound matches only its own type: SQLite would continue from numbers (up to '') to strings (up to x'') to booleans.
 */
function between(column: string, bounds: Bounds): Sql {
  const terms: string[] = [];
  const parameters: SqlScalar[] = [];
  const given = (['gte', 'gt', 'lte', 'lt'] as const).flatMap((name) =>
    bounds[name] === undefined ? [] : [{ name, value: bounds[name] }],
  );
  for (const { name, value } of given) {
    if (value === null) {
      terms.push(name === 'gte' || name === 'lte' ? `${column} IS NULL` : '0');
      continue;
    }
    terms.push(`${column} ${OPERATORS[name]} ${VALUE}`);
    parameters.push(sqlScalar(value));
    const lower = name.startsWith('g');
    // With both bounds given, the end of the type would only keep SQLite from using the nearer one.
    const closed = given.some((other) => other.name.startsWith('g') !== lower && typeof other.value === typeof value);
    if (!closed) terms.push(...typeEnd(column, value, lower));
  }
  return { text: terms.join(' AND '), parameters };
}

function typeEnd(column: string, value: Exclude<Scalar, null>, lower: boolean): string[] {
  switch (typeof value) {
    case 'number':
      return lower ? [`${column} < ''`] : [];
    case 'string':
      return [lower ? `${column} < x''` : `${column} >= ''`];
    default:
      return lower ? [] : [`${column} >= x''`];
  }
}

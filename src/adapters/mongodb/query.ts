import type { Filter, Sort } from 'mongodb';
import type { Condition, Query, Scalar } from '../../ports/readStore.js';
import { afterPrefix } from '../prefix.js';
import { conditionsOf } from '../readStoreRules.js';
import { type Layout, type MongoDocument, keyOf } from './layout.js';

type Operators = Readonly<Record<string, Scalar | readonly Scalar[]>>;

/** The filter of a query; `undefined`: no document can match. @throws Error as `conditionsOf` */
export function filterOf(layout: Layout, query: Query): Filter<MongoDocument> | undefined {
  const filter: Record<string, Operators> = {};
  for (const [field, condition] of conditionsOf(layout.name, layout.declared, query).where) {
    const operators = operatorsOf(condition);
    if (operators === undefined) return undefined;
    filter[field === 'id' ? '_id' : keyOf(field)] = operators;
  }
  return filter as Filter<MongoDocument>;
}

/** Ties are in the order of ids, descending where the last field is: so the server reads an index and sorts nothing. */
export function sortOf(query: Query): Sort {
  const sort = new Map<string, 1 | -1>();
  for (const [field, direction] of query.sort ?? []) {
    const key = field === 'id' ? '_id' : keyOf(field);
    if (!sort.has(key)) sort.set(key, direction);
  }
  if (!sort.has('_id')) sort.set('_id', query.sort?.at(-1)?.[1] ?? 1);
  return sort;
}

export function prefixOf(prefix: string): { readonly $gte: string; readonly $lt?: string } {
  const end = afterPrefix(prefix);
  return end === undefined ? { $gte: prefix } : { $gte: prefix, $lt: end };
}

/** As in the port, MongoDB compares only values of one type, and `null` also finds absent fields. */
function operatorsOf(condition: Condition): Operators | undefined {
  if (condition === null || typeof condition !== 'object') return { $eq: condition };
  if ('in' in condition) return condition.in.length === 0 ? undefined : { $in: condition.in };
  if ('prefix' in condition) return prefixOf(condition.prefix);
  const operators: Record<string, Scalar> = {};
  for (const [name, bound] of Object.entries(condition) as [string, Scalar | undefined][]) {
    if (bound === undefined) continue;
    if (bound === null && !name.endsWith('e')) return undefined;
    if (bound === null) operators['$eq'] = null;
    else operators[`$${name}`] = bound;
  }
  return operators;
}

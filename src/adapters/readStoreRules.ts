import {
  MAX_BATCH_DOCUMENTS,
  type CollectionSpec,
  type Condition,
  type IndexSpec,
  type Query,
  type Scalar,
} from '../ports/readStore.js';

const MAX_KEY_LENGTH = 200;

const OPERATORS = new Set(['in', 'prefix', 'gte', 'gt', 'lte', 'lt']);

/** A collection's name with its version, such as `gifts@3`. @throws Error when it can't be part of a stored name */
export function collectionNameOf({ name, version }: CollectionSpec): string {
  if (!/^[a-z0-9_]+$/.test(name))
    throw new Error(`collection name ${JSON.stringify(name)}: only lower-case letters, digits and _`);
  if (!Number.isSafeInteger(version) || version < 1)
    throw new Error(`collection ${name}: version ${version} is not a whole number from 1`);
  return `${name}@${version}`;
}

export const storedNameOf = ({ name, version }: CollectionSpec): string => `${storedPrefixOf(name)}${version}`;

export const storedPrefixOf = (name: string): string => `doc_${name}_`;

export function versionsAmong(stored: readonly string[], name: string): number[] {
  const prefix = storedPrefixOf(name);
  const versions = stored.filter((one) => one.startsWith(prefix)).map((one) => one.slice(prefix.length));
  return versions
    .filter((version) => /^[1-9][0-9]*$/.test(version))
    .map(Number)
    .sort((a, b) => a - b);
}

/** Caches layouts by the object identity of their collections, which are constants. */
export function rememberedLayouts<L>(make: (collection: CollectionSpec) => L): (collection: CollectionSpec) => L {
  const layouts = new WeakMap<CollectionSpec, L>();
  return (collection) => {
    let layout = layouts.get(collection);
    if (layout === undefined) {
      layout = make(collection);
      layouts.set(collection, layout);
    }
    return layout;
  };
}

/** Queries treat anything but a finite number, a string or a boolean as absent. */
export function scalarOf(value: unknown): Scalar {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : null;
    default:
      return null;
  }
}

/**
 * Whether an engine would store this value as `stored`. Text that is not well-formed UTF-16 is stored differently by
 * each engine.
 */
export function isStoredAs(value: Scalar, stored: unknown): boolean {
  return typeof value === 'string' && !value.isWellFormed() ? typeof stored === 'string' : stored === value;
}

/** The conditions of a query; `partitioned`: whether a partitioned index answers it. */
interface Conditions {
  readonly where: readonly (readonly [field: string, condition: Condition])[];
  readonly partitioned: boolean;
}

/**
 * @throws Error for an unknown or missing operator, fields that are not the first of one index, or a query that a
 * partitioned index can't answer
 */
export function conditionsOf(collection: string, indexes: readonly IndexSpec[], query: Query): Conditions {
  const where = Object.entries(query.where ?? {}).filter(([, condition]) => condition !== undefined);
  const index = indexFor(collection, indexes, [
    ...where.map(([field]) => field),
    ...(query.sort ?? []).map(([field]) => field),
  ]);
  for (const [field, condition] of where) {
    if (condition === null || typeof condition !== 'object') continue;
    const operators = Object.keys(condition);
    const unknown = operators.find((operator) => !OPERATORS.has(operator));
    if (unknown !== undefined || operators.length === 0)
      throw new Error(`${collection}: the condition on ${field} has ${unknown ?? 'no operator'}`);
  }
  if (index?.partitioned !== true) return { where, partitioned: false };
  refuseUnlessByValue(collection, index, query);
  return { where, partitioned: true };
}

function refuseUnlessByValue(collection: string, { fields }: IndexSpec, { where = {}, sort = [] }: Query): void {
  const open = fields.find((field) => {
    const condition = where[field];
    return condition === undefined || condition === null || typeof condition === 'object';
  });
  if (open !== undefined)
    throw new Error(`${collection}: the query names no value for ${open}, of a partitioned index`);
  const sorted = sort.find(([field]) => field !== 'id');
  if (sorted !== undefined) throw new Error(`${collection}: a partitioned index sorts by id, not by ${sorted[0]}`);
}

/**
 * The index whose first fields are these, one without partitions where there is one; `undefined`: the query uses none.
 * @param indexes without `id`, which every index has
 */
function indexFor(collection: string, indexes: readonly IndexSpec[], used: readonly string[]): IndexSpec | undefined {
  const fields = [...new Set(used)].filter((field) => field !== 'id');
  if (fields.length === 0) return undefined;
  const unknown = fields.find((field) => !indexes.some((index) => index.fields.includes(field)));
  if (unknown !== undefined) throw new Error(`${collection}: field ${unknown} is in none of its indexes`);
  const covering = indexes.filter((index) => {
    const first = index.fields.slice(0, fields.length);
    return fields.every((field) => first.includes(field));
  });
  if (covering.length === 0)
    throw new Error(`${collection}: fields ${fields.join(', ')} are not the first fields of one index`);
  return covering.find(({ partitioned }) => partitioned !== true) ?? covering[0];
}

export function refuseTooMany(collection: CollectionSpec, documents: readonly unknown[], what: string): void {
  if (documents.length <= MAX_BATCH_DOCUMENTS) return;
  throw new Error(
    `${what} for ${collectionNameOf(collection)}: ${documents.length} documents, at most ${MAX_BATCH_DOCUMENTS} are allowed`,
  );
}

export function recordJson(key: string, value: unknown): string {
  if (key.length > MAX_KEY_LENGTH)
    throw new Error(`a record's key has at most ${MAX_KEY_LENGTH} characters, not ${key.length}`);
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) throw new TypeError(`record ${key}: its value is not JSON`);
  return json;
}

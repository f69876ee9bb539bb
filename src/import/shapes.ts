import { Ajv, type ErrorObject } from 'ajv';
import { OWN_SCHEMAS } from '../lib/schemaOptions.js';
import { inSlices } from '../lib/async/slices.js';
import { isObject } from '../lib/isObject.js';
import type { FaultCollector } from './faults.js';
import { ARRAY_NAMES, type ArrayName, type CheckedFile, type Placed } from './file.js';
import { ENTRY_SCHEMAS } from './schemas.js';

/** Maximum number of levels in a segment's `configuration`. */
const MAX_DEPTH = 16;

export interface Shaped {
  readonly file: CheckedFile;
  /** All entries that are objects, of any shape. */
  readonly objects: ReadonlyMap<ArrayName, readonly Placed<Readonly<Record<string, unknown>>>[]>;
  /** All ids, also of faulty entries: a reference to such an entry is no further fault. */
  readonly declared: ReadonlyMap<ArrayName, ReadonlySet<string>>;
}

const validators = lazily(() => {
  const ajv = new Ajv({ ...OWN_SCHEMAS, allErrors: true, strict: true, verbose: true, allowUnionTypes: true });
  return new Map(ARRAY_NAMES.map((array) => [array, ajv.compile(ENTRY_SCHEMAS[array])]));
});

/** Makes a value at its first use: compiling takes time that other commands need not spend. */
function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

export async function checkShapes(parsed: unknown, faults: FaultCollector): Promise<Shaped> {
  const file: Partial<Record<ArrayName, readonly Placed<unknown>[]>> = {};
  const objects = new Map<ArrayName, Placed<Readonly<Record<string, unknown>>>[]>();
  const declared = new Map<ArrayName, Set<string>>();
  if (!isObject(parsed)) {
    faults.addToFile('', 'the file must be a JSON object of arrays');
    return { file: {}, objects, declared };
  }
  for (const [field, value] of Object.entries(parsed)) {
    const array = ARRAY_NAMES.find((name) => name === field);
    if (array === undefined) {
      faults.addToFile(field, `unknown array; known are ${ARRAY_NAMES.join(', ')}`);
    } else if (!Array.isArray(value)) {
      faults.addToFile(field, 'must be a list');
    } else {
      const found = value.flatMap((entry: unknown, index) => (isObject(entry) ? [{ index, entry }] : []));
      objects.set(array, found);
      declared.set(array, idsOf(array, found));
      file[array] = await checkArray(array, value, faults);
    }
  }
  return { file: file as CheckedFile, objects, declared };
}

async function checkArray(
  array: ArrayName,
  entries: readonly unknown[],
  faults: FaultCollector,
): Promise<Placed<unknown>[]> {
  const validate = validators().get(array);
  if (validate === undefined) throw new Error(`no schema for ${array}`);
  const good: Placed<unknown>[] = [];
  await inSlices(entries, (entry, index) => {
    if (!validate(entry)) {
      for (const error of validate.errors ?? []) faults.add(array, index, pathOf(error), messageOf(error));
      return;
    }
    const nested =
      array === 'segments'
        ? faultWithin((entry as { configuration?: object }).configuration ?? {}, '.configuration', 1)
        : undefined;
    if (nested === undefined) good.push({ index, entry });
    else faults.add(array, index, nested.path, nested.fault);
  });
  return good;
}

function idsOf(array: ArrayName, entries: readonly Placed<Readonly<Record<string, unknown>>>[]): Set<string> {
  const field = idField(array);
  return new Set(entries.map(({ entry }) => entry[field]).filter((name) => typeof name === 'string'));
}

export function idField(array: ArrayName): string {
  return array === 'payment_methods' ? 'reference' : array === 'voucher_codes' ? 'code' : 'id';
}

/** Path of an error in a fault's form: `/top_ups/0` and a missing `amount` are `.top_ups[0].amount`. */
function pathOf(error: ErrorObject): string {
  const parts = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`));
  const params = error.params as { missingProperty?: string; additionalProperty?: string; i?: number; j?: number };
  if (error.keyword === 'uniqueItems') parts.push(`[${Math.max(params.i ?? 0, params.j ?? 0)}]`);
  const field = params.missingProperty ?? params.additionalProperty;
  return parts.join('') + (field === undefined ? '' : `.${field.slice(0, 64)}`);
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};

function messageOf({ keyword, params, parentSchema, message }: ErrorObject): string {
  const { limit, type, allowedValues } = params as {
    limit?: number;
    type?: string;
    allowedValues?: readonly unknown[];
  };
  switch (keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
      return 'unknown field';
    case 'type':
      return `must be ${TYPE_NAMES[type ?? ''] ?? type}`;
    case 'enum':
      return `must be ${(allowedValues ?? []).map((value) => JSON.stringify(value)).join(' or ')}`;
    case 'pattern':
      return String(parentSchema?.['description'] ?? message);
    case 'minimum':
      return `must be at least ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} characters`;
    case 'maxLength':
      return `must have at most ${limit} characters`;
    case 'uniqueItems':
      return 'stands in the list twice';
    case 'maxItems':
      return `must have at most ${limit} entries`;
    default:
      return message ?? keyword;
  }
}

/** The first value in free JSON that engines can't store. */
function faultWithin(value: unknown, path: string, depth: number): { path: string; fault: string } | undefined {
  if (typeof value === 'string')
    return /[\p{Cs}\0]/u.test(value) ? { path, fault: 'must be well-formed text without NUL characters' } : undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : { path, fault: 'is too large a number' };
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > MAX_DEPTH) return { path: '.configuration', fault: `must not nest deeper than ${MAX_DEPTH} levels` };
  for (const [field, item] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${field}]` : `${path}.${field.slice(0, 64)}`;
    if (field === '__proto__' || /[\p{Cs}\0]/u.test(field)) return { path, fault: 'has a field with a forbidden name' };
    const fault = faultWithin(item, at, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

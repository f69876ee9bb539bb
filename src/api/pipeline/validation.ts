/**
 * Validation of bodies and queries; its messages name fields as callers write them
 * (docs/api/conventions.md#bodies-and-queries).
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { shortened } from '../../lib/quotedText.js';
import { OWN_SCHEMAS } from '../../lib/schemaOptions.js';
import { HALF_A_CHARACTER, malformedPath } from '../../lib/unicodeText.js';
import { HttpError, faultOf, fieldHeader } from './errors.js';
import type { Schema } from './route.js';

/** Checks a body or query, and sets a query's defaults. @throws HttpError `schema` naming the field */
type Validator = (value: unknown) => void;

const VOCABULARY = ['x-message', 'x-errors', 'x-also', 'example'];
/** Most characters of a field's path in a message: names in free JSON may be long. */
const LONGEST_PATH = 200;

const bodies = new Ajv2020({
  ...OWN_SCHEMAS,
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  verbose: true,
});
const queries = new Ajv2020({ ...OWN_SCHEMAS, strict: true, allowUnionTypes: true, verbose: true, useDefaults: true });
for (const ajv of [bodies, queries]) {
  ajv.addVocabulary(VOCABULARY);
  addFormats.default(ajv);
}

/**
 * Validator of a body, whose strings must all be Unicode text (RFC 7493 2.1). `x-message` in a schema is the message of
 * every fault there; `x-errors` has messages by keyword.
 */
export function bodyValidator(schema: Schema): Validator {
  const validate = asserting(() => bodies.compile(schema));
  return (body) => {
    const path = malformedPath(body);
    if (path !== undefined)
      throw faultOf(shortened(path.replace(/^\./, ''), LONGEST_PATH) || 'the body', HALF_A_CHARACTER);
    validate(body);
  };
}

export function queryValidator(schema: Schema): Validator {
  return asserting(() => queries.compile(schema));
}

/**
 * Removes null fields, in place, where a field is optional and null is not one of its values
 * (docs/api/conventions.md#bodies-and-queries).
 */
export function dropNulls(schema: Schema, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const { properties = {}, required = [], items, oneOf = [] } = schema as FieldSchemas;
  if (Array.isArray(value)) {
    if (items?.properties !== undefined) for (const item of value as unknown[]) dropNulls(items, item);
    return;
  }
  const fields = value as Record<string, unknown>;
  for (const [name, field] of Object.entries(properties)) {
    if (fields[name] !== null) dropNulls(field, fields[name]);
    else if (!required.includes(name) && !([] as unknown[]).concat(field['type']).includes('null')) delete fields[name];
  }
  for (const alternative of oneOf) dropNulls(alternative, value);
}

interface FieldSchemas {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema & FieldSchemas;
  readonly oneOf?: readonly Schema[];
}

/** Compiles at the first use: compiling all schemas would delay the start. */
function asserting(compile: () => ValidateFunction): Validator {
  let compiled: ValidateFunction | undefined;
  return (value) => {
    const validate = (compiled ??= compile());
    if (validate(value)) return;
    throw refusalOf(validate.errors ?? []);
  };
}

/** The error of the first fault proper: a failed alternative or condition only frames another fault. */
function refusalOf(errors: readonly ErrorObject[]): HttpError {
  const error = errors.find(({ keyword }) => !['if', 'oneOf', 'anyOf', 'allOf'].includes(keyword)) ?? errors[0];
  if (error === undefined) return new HttpError('schema', { message: 'the request is not valid' });
  return new HttpError('schema', { message: messageOf(error), headers: fieldHeader(faultyField(error)) });
}

/** Path of the faulty field: a missing or unknown field by its own name, a repeated entry by its index. */
function faultyField({ keyword, instancePath, params }: ErrorObject): string {
  const { missingProperty, additionalProperty, unevaluatedProperty } = params as Readonly<
    Record<string, string | undefined>
  >;
  const field = fieldOf(instancePath);
  if (keyword === 'uniqueItems') return `${field}[${repeatedEntry(params)}]`;
  const name = keyword === 'required' ? missingProperty : (additionalProperty ?? unevaluatedProperty);
  return [field, name].filter((part) => part !== undefined && part !== '').join('.');
}

function messageOf(error: ErrorObject): string {
  const own = error.parentSchema as
    { readonly 'x-message'?: string; readonly 'x-errors'?: Readonly<Record<string, string>> } | undefined;
  return own?.['x-errors']?.[error.keyword] ?? own?.['x-message'] ?? describe(error);
}

/** `/purchase/receivers/3/phone_number` becomes `purchase.receivers[3].phone_number`. */
function fieldOf(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((field, part) => (/^\d+$/.test(part) ? `${field}[${part}]` : field === '' ? part : `${field}.${part}`), '');
}

const repeatedEntry = ({ i, j }: Readonly<Record<string, unknown>>): number => Math.max(Number(i), Number(j));

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  null: 'null',
};

function describe({ keyword, instancePath, params }: ErrorObject): string {
  const field = fieldOf(instancePath);
  const subject = field === '' ? 'the body' : field;
  const inside = (name: string): string => (field === '' ? name : `${field}.${name}`);
  const p = params as Readonly<Record<string, unknown>>;
  switch (keyword) {
    case 'required':
      return `${inside(String(p['missingProperty']))} is required`;
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return `${inside(shortened(String(p['additionalProperty'] ?? p['unevaluatedProperty'])))} is not a known field`;
    case 'type':
      return `${subject} must be ${([] as string[])
        .concat(p['type'] as string | string[])
        .map((type) => TYPES[type] ?? type)
        .join(' or ')}`;
    case 'const':
      return `${subject} must be ${String(p['allowedValue'])}`;
    case 'enum':
      return `${subject} must be ${(p['allowedValues'] as unknown[]).map(String).join(' or ')}`;
    case 'minimum':
      return `${subject} must be at least ${String(p['limit'])}`;
    case 'maximum':
      return `${subject} must be at most ${String(p['limit'])}`;
    case 'minLength':
      return p['limit'] === 1
        ? `${subject} must not be empty`
        : `${subject}: at least ${String(p['limit'])} characters`;
    case 'maxLength':
      return `${subject}: at most ${String(p['limit'])} characters`;
    case 'minItems':
      return `${subject}: at least ${String(p['limit'])}`;
    case 'maxItems':
      return `${subject}: at most ${String(p['limit'])}`;
    case 'uniqueItems':
      return `${subject}[${repeatedEntry(p)}] is in the list already: leave it out`;
    default:
      return `${subject} is not valid`;
  }
}

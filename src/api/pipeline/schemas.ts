/** The vocabulary of route tables: schemas of fields, records and lists, and answers with an example. */
import type { Schema, SuccessAnswer } from './route.js';

/** A maker of schemas of one kind of field. `more`: further keywords. */
const field =
  (kind: Schema) =>
  (description?: string, more?: Schema): Schema => ({
    ...kind,
    ...more,
    ...(description === undefined ? {} : { description }),
  });

export const textSchema = field({ type: 'string' });
/** ISO 8601, with an offset. */
export const timeSchema = field({ type: 'string', format: 'date-time' });
export const flagSchema = field({ type: 'boolean' });
export const integerSchema = field({ type: 'integer' });
/** A whole number from 0. */
export const countSchema = field({ type: 'integer', minimum: 0 });

/** One of these texts. */
export const choiceSchema = (choices: readonly unknown[], description?: string, more?: Schema): Schema =>
  textSchema(description, { enum: choices, ...more });

export const orNull = (schema: Schema): Schema => ({ ...schema, type: [schema['type'], 'null'] });

export function listSchema(items: Schema, description?: string): Schema {
  return { type: 'array', items, ...(description === undefined ? {} : { description }) };
}

/** Schema of an object without other fields than these. */
export function record(
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = Object.keys(properties),
): Schema {
  return { type: 'object', additionalProperties: false, required, properties };
}

/** A record that the API's description lists by its title. All fields but the `optional` ones are required. */
export function entity(
  title: string,
  properties: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema {
  return { title, ...record({ ...properties, ...optional }, Object.keys(properties)) };
}

/** Schema of a query, whose parameters are optional unless they are named in `required`. */
export function querySchema(properties: Readonly<Record<string, Schema>>, required?: readonly string[]): Schema {
  return { type: 'object', ...(required === undefined ? {} : { required }), properties };
}

/** `{data}` with an entity or a list, and the embedded kinds; their `description` says when they are there. */
export function dataSchema(data: Schema, embedded?: Schema): Schema {
  const properties =
    embedded === undefined
      ? { data }
      : { data, embedded: { description: 'The embedded entities; absent when none were requested.', ...embedded } };
  return record(properties, ['data']);
}

export function embeddedSchema(kinds: Readonly<Record<string, Schema>>): Schema {
  const properties: Record<string, Schema> = {};
  for (const [kind, items] of Object.entries(kinds)) properties[kind] = listSchema(items);
  return { type: 'object', additionalProperties: false, properties };
}

type AnswerDetails = Partial<Omit<SuccessAnswer, 'description' | 'schema' | 'example'>>;

/** An answer in JSON, with status 200 unless `details` name another. */
export function jsonAnswer(
  description: string,
  schema: Schema,
  example: unknown,
  details?: AnswerDetails,
): SuccessAnswer {
  return { status: 200, description, schema, example, ...details };
}

/** An answer `{data}` (`dataSchema`), of which `example` is the `data`. */
export function dataAnswer(
  description: string,
  data: Schema,
  example: unknown,
  details?: AnswerDetails,
): SuccessAnswer {
  return jsonAnswer(description, dataSchema(data), { data: example }, details);
}

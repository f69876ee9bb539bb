import type { Schema } from '../pipeline/route.js';

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
  for (const [kind, items] of Object.entries(kinds)) properties[kind] = { type: 'array', items };
  return { type: 'object', additionalProperties: false, properties };
}

export function listSchema(items: Schema): Schema {
  return { type: 'array', items };
}

/** Reads query parameters as a route's schema means them: numbers, booleans (`1`, `0`, `true`, `false`) and lists (`embed[]=a&embed[]=b`). */
import type { ParsedUrlQuery } from 'node:querystring';
import { HttpError } from './errors.js';
import type { Schema } from './route.js';

interface Property {
  readonly type?: string;
}

/** The most that a whole number of a query may be, where nothing of its own bounds it: enough for any list or price, and `page * per_page` stays exact. */
export const MAX_WHOLE_NUMBER = 2_147_483_647;

/** Converts one text; what doesn't convert stays text, so that validation names the fault. */
function converted(text: string, type: string | undefined): unknown {
  switch (type) {
    case 'integer':
      // What no number of ours can hold is more than any parameter may be: that is what is told.
      return /^-?\d+$/.test(text) ? Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(text))) : text;
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
    case 'boolean':
      return text === '1' || text === 'true' ? true : text === '0' || text === 'false' ? false : text;
    default:
      return text;
  }
}

/** The values of a list parameter, under its name with or without brackets. */
export function listParameter(query: ParsedUrlQuery, name: string): string[] {
  return [query[`${name}[]`], query[name]].flatMap((value) => value ?? []);
}

/** The parameters that `schema` knows, converted; others are ignored. @throws HttpError `schema` where one that is no list stands twice. */
export function readQuery(query: ParsedUrlQuery, schema: Schema): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, property] of Object.entries((schema['properties'] ?? {}) as Record<string, Property>)) {
    if (property.type === 'array') {
      const list = listParameter(query, name);
      if (list.length > 0) values[name] = list;
      continue;
    }
    const value = query[name];
    if (Array.isArray(value)) throw new HttpError('schema', { message: `${name} must be given only once` });
    if (value !== undefined) values[name] = converted(value, property.type);
  }
  return values;
}

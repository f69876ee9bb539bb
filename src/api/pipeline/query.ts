/**
 * Reads query parameters by a route's schema: numbers, booleans (`1`, `0`, `true`, `false`) and lists. A list has
 * brackets (`embed[]=a&embed[]=b`), none (`embed=a`), or indexes (`embed[0]=a&embed[1]=b`, as from PHP and qs).
 */
import { type ParsedUrlQuery, parse } from 'node:querystring';
import { shortened } from '../../lib/quotedText.js';
import { HALF_A_CHARACTER, malformedParameter } from '../../lib/unicodeText.js';
import { faultOf } from './errors.js';
import type { Schema } from './route.js';

interface Property {
  readonly type?: string;
  readonly 'x-also'?: readonly string[];
}

/** Schema keyword with further names of a query parameter: the names that its values have in answers. */
export function alsoNamed(names: readonly string[]): Schema {
  return names.length === 0 ? {} : { 'x-also': names };
}

/**
 * Name of the parameter that says where a list's page begins. An empty value means the list's beginning
 * (docs/api/conventions.md#pages-by-cursor).
 */
const CURSOR = 'after';

/** Maximum of whole numbers that have no bound of their own, so that `page * per_page` stays exact. */
export const MAX_WHOLE_NUMBER = 2_147_483_647;

/**
 * Converts a parameter's text to the type of its schema. Text that can't be converted is returned, and validation names
 * the fault.
 */
function converted(text: string, type: string | undefined): unknown {
  switch (type) {
    case 'integer':
      // Out-of-range numbers are clamped; validation refuses them.
      return /^-?\d+$/.test(text)
        ? Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(text)))
        : text;
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
    case 'boolean':
      return text === '1' || text === 'true' ? true : text === '0' || text === 'false' ? false : text;
    default:
      return text;
  }
}

/** Parses a raw query without the leading `?`. @throws HttpError `schema` for malformed Unicode */
export function parseQuery(text: string): ParsedUrlQuery {
  refuseMalformedParameters(text);
  return parseParameters(text);
}

/** Parses all parameters of a raw query or form; Node's default drops those after the thousandth. */
export function parseParameters(text: string): ParsedUrlQuery {
  return parse(text, '&', '=', { maxKeys: 0 });
}

/** `text`: a raw query or form. @throws HttpError `schema` naming the first parameter that is no Unicode text */
export function refuseMalformedParameters(text: string): void {
  const name = malformedParameter(text);
  if (name !== undefined) throw faultOf(shortened(name), HALF_A_CHARACTER);
}

/** `ids[]` and `ids[0]` become `ids`. */
const bareName = (name: string): string => name.replace(/\[\d*\]$/, '');

export function listParameter(query: ParsedUrlQuery, name: string): string[] {
  return Object.entries(query).flatMap(([written, value]) => (bareName(written) === name ? (value ?? []) : []));
}

const propertiesOf = (schema: Schema | undefined): [name: string, property: Property][] =>
  Object.entries((schema?.['properties'] ?? {}) as Record<string, Property>);

/**
 * The parameters of `schema`, converted; ignores others.
 * @throws HttpError `schema` for a repeated single parameter, under any of its names
 */
export function readQuery(query: ParsedUrlQuery, schema: Schema): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, property] of propertiesOf(schema)) {
    if (property.type === 'array') {
      const list = listParameter(query, name);
      if (list.length > 0) values[name] = list;
      continue;
    }
    const [value, second] = [name, ...(property['x-also'] ?? [])].flatMap((one) => query[one] ?? []);
    if (second !== undefined) throw faultOf(name, 'must be given only once');
    if (value === '' && name === CURSOR) continue;
    if (value !== undefined) values[name] = converted(value, property.type);
  }
  return values;
}

/**
 * Refuses unknown parameters: ignoring a mistyped filter would answer the unfiltered list.
 * @throws HttpError `schema` naming the first unknown parameter, and all known ones
 */
export function refuseUnknownParameters(query: ParsedUrlQuery, schema: Schema | undefined, embeds: boolean): void {
  const lists = [
    ...propertiesOf(schema).flatMap(([name, { type }]) => (type === 'array' ? [name] : [])),
    ...(embeds ? ['embed'] : []),
  ];
  const single = propertiesOf(schema).filter(([, { type }]) => type !== 'array');
  const names = new Set(single.flatMap(([name, property]) => [name, ...(property['x-also'] ?? [])]));
  const unknown = Object.keys(query).find((written) => !names.has(written) && !lists.includes(bareName(written)));
  if (unknown === undefined) return;
  const known = [...single.map(([name]) => name), ...lists.map((name) => `${name}[]`)];
  throw faultOf(
    shortened(unknown),
    known.length === 0
      ? 'is not a parameter here, where there are none'
      : `is not a parameter here; known are ${known.join(', ')}`,
  );
}

/** Limits on the body of a route, derived from its schema (docs/api/limits.md#bodies). */
import type { RouteDescription, Schema } from './route.js';

export interface BodyLimits {
  readonly bytes: number;
  /** Number of opening braces and brackets, colons and commas outside strings (`refuseCostlyJson`). */
  readonly marks: number;
}

/** Limits that every route allows at least, so that the fault of a small body is named. */
export const LEAST_BODY: BodyLimits = { bytes: 16_384, marks: 1_000 };
/** No route takes more bytes, however a valid body is written. */
const MOST_BYTES = 1_048_576;

/** Most bytes of a character: one outside the basic plane, as two escapes of four digits. */
const BYTES_A_CHARACTER = 12;
/** The length of a text whose schema names no maximum: that of an id. */
const CHARACTERS_OF_AN_ID = 64;
const BYTES_A_NUMBER = 25;
/** Bytes of white space allowed per mark: a line break with its indentation. */
const SPACE_A_MARK = 32;

/** @throws Error for a list without `maxItems` */
export function bodyLimits({ formBody }: Pick<RouteDescription, 'formBody'>, schema: Schema): BodyLimits {
  // Anyone may send a form, whose fields are parsed before any secret is checked.
  if (formBody === true) return LEAST_BODY;
  const { bytes, marks } = needOf(schema);
  return {
    bytes: Math.min(MOST_BYTES, Math.max(LEAST_BODY.bytes, bytes + marks * SPACE_A_MARK)),
    marks: Math.max(LEAST_BODY.marks, marks),
  };
}

/** Limits for the longest spelling of a valid value, without white space. */
function needOf(schema: Schema): BodyLimits {
  const { type, properties, items, maxItems, maxLength, oneOf, enum: values } = schema;
  if (oneOf !== undefined) return most((oneOf as readonly Schema[]).map(needOf));
  if (values !== undefined) return { bytes: Math.max(...(values as unknown[]).map(bytesOf)), marks: 0 };
  return most(
    ([] as unknown[]).concat(type).map((one) => {
      switch (one) {
        case 'object':
          return properties === undefined && schema['additionalProperties'] !== false
            ? { bytes: MOST_BYTES, marks: 0 }
            : objectNeed(properties as Readonly<Record<string, Schema>> | undefined);
        case 'array':
          if (maxItems === undefined) throw new Error('a list in a body has no maxItems');
          return listNeed(needOf(items as Schema), maxItems as number);
        case 'string':
          return {
            bytes: 2 + BYTES_A_CHARACTER * ((maxLength as number | undefined) ?? CHARACTERS_OF_AN_ID),
            marks: 0,
          };
        default:
          return { bytes: BYTES_A_NUMBER, marks: 0 };
      }
    }),
  );
}

/** Limits of an object: each field has a colon, and a comma or a brace; each name has its quotes. */
function objectNeed(properties: Readonly<Record<string, Schema>> = {}): BodyLimits {
  return Object.entries(properties).reduce(
    (sum, [name, schema]) => {
      const value = needOf(schema);
      return { bytes: sum.bytes + bytesOf(name) + 2 + value.bytes, marks: sum.marks + 2 + value.marks };
    },
    { bytes: 2, marks: 1 },
  );
}

const listNeed = (item: BodyLimits, length: number): BodyLimits => ({
  bytes: 2 + length * (item.bytes + 1),
  marks: 1 + length * (item.marks + 1),
});

const most = (needs: readonly BodyLimits[]): BodyLimits => ({
  bytes: Math.max(...needs.map(({ bytes }) => bytes)),
  marks: Math.max(...needs.map(({ marks }) => marks)),
});

const bytesOf = (value: unknown): number => BYTES_A_CHARACTER * JSON.stringify(value).length;

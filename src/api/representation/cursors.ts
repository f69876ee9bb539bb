/** Lists by cursor (docs/api/conventions.md#pages-by-cursor). */
import { TIME_KEY_LENGTH } from '../../projections/timeKey.js';
import type { Schema, SuccessAnswer } from '../pipeline/route.js';
import { flagSchema, integerSchema, jsonAnswer, listSchema, orNull, record, textSchema } from '../pipeline/schemas.js';

export type CursorRequest = {
  readonly limit: number;
  readonly after: string | undefined;
};

/** Entries of one page, and the `after` of the next page; null on the last. */
export interface CursorPage<T> {
  readonly data: readonly T[];
  readonly next: string | null;
}

const MAX_LIMIT = 100;

/** @param pattern regular expression that an entry's position matches */
export function cursorParameters(pattern: string): Readonly<Record<'limit' | 'after', Schema>> {
  return {
    limit: integerSchema('The most entries of a page.', { minimum: 1, maximum: MAX_LIMIT, default: 20 }),
    after: textSchema('`next` of the page before; absent or empty: the first page.', { maxLength: 128, pattern }),
  };
}

export const cursorRequest = (query: Readonly<Record<string, unknown>>): CursorRequest => query as CursorRequest;

/** Answer of a route whose body is a `cursorBody`. */
export function cursorAnswer(items: Schema, example: object): SuccessAnswer {
  const schema = record({
    data: listSchema(items),
    next: orNull(textSchema('`after` of the next page; null on the last.')),
    has_more: flagSchema('Whether there is a next page.'),
  });
  return jsonAnswer('One page.', schema, { data: [example], next: null, has_more: false });
}

export const cursorBody = <T>({ data, next }: CursorPage<T>): object => ({ data, next, has_more: next !== null });

/** @param found the entries from the page's first on: one more than the limit where there are more */
export function firstOf<T>(found: readonly T[], limit: number, cursorOf: (entry: T) => string): CursorPage<T> {
  const data = found.slice(0, limit);
  const last = found.length > limit ? data.at(-1) : undefined;
  return { data, next: last === undefined ? null : cursorOf(last) };
}

/** Pattern of a position: a time (`timeKey`), and an id of so many digits, which tells entries of that time apart. */
export const timedCursor = (digits: number): string => `^[0-9a-z]{${TIME_KEY_LENGTH}}\\.[0-9a-f]{${digits}}$`;

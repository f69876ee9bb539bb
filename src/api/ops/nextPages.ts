import type { Schema } from '../pipeline/route.js';
import { integerSchema, listSchema, orNull, record, textSchema } from '../pipeline/schemas.js';

/** How long one page is searched for, ms. The next page goes on from there. */
export const PAGE_MS = 1_000;

export const limitParameter = {
  limit: integerSchema('The most entries in this answer.', { minimum: 1, maximum: 1_000, default: 100 }),
} as const satisfies Record<string, Schema>;

/** A list whose `next` is the `after` of the following page. */
export function nextPageSchema(
  items: Schema,
  more: Readonly<Record<string, Schema>> = {},
  description = '`after` of the next page; null on the last.',
): Schema {
  return record({ data: listSchema(items), next: orNull(textSchema(description)), ...more });
}

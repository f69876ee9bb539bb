import type { Schema } from '../pipeline/route.js';
import { listSchema, record } from '../representation/schemas.js';

export const limitParameter = {
  limit: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000,
    default: 100,
    description: 'The most entries in this answer.',
  },
} as const satisfies Record<string, Schema>;

/** A list whose `next` is the `after` of the following page. */
export function nextPageSchema(
  items: Schema,
  after: 'string' | 'integer' | readonly ['integer', 'string'],
  more: Readonly<Record<string, Schema>> = {},
): Schema {
  return record({
    data: listSchema(items),
    next: { type: [...[after].flat(), 'null'], description: '`after` of the next page; null on the last.' },
    ...more,
  });
}

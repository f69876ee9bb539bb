/** Queries of documents in the plainest way: what every engine is held against, and how engines in memory answer. */
import { byBytes } from '../../../src/lib/byBytes.js';
import type { Condition, Query, Scalar } from '../../../src/ports/readStore.js';

/** The value of a document's field, or of its id; `null` where it has none. */
type FieldOf<D> = (document: D, field: string) => Scalar;

/** The documents that a query finds, in its order. */
export function found<D>(
  documents: readonly D[],
  { where = {}, sort = [], skip = 0, limit }: Query,
  fieldOf: FieldOf<D>,
): D[] {
  return documents
    .filter((document) =>
      Object.entries(where).every(
        ([field, condition]) => condition === undefined || holds(fieldOf(document, field), condition),
      ),
    )
    .sort((a, b) => {
      for (const [field, direction] of [...sort, ['id', sort.at(-1)?.[1] ?? 1] as const]) {
        const order = compare(fieldOf(a, field), fieldOf(b, field));
        if (order !== 0) return order * direction;
      }
      return 0;
    })
    .slice(skip, limit === undefined ? undefined : skip + limit);
}

/** Null, numbers, strings, booleans: the order across types. */
function rank(value: Scalar): number {
  return value === null ? 0 : { number: 1, string: 2, boolean: 3 }[typeof value as 'number'];
}

function compare(a: Scalar, b: Scalar): number {
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  if (typeof a === 'string') return byBytes(a, b as string);
  return Number(a) - Number(b);
}

function holds(value: Scalar, condition: Condition): boolean {
  if (condition === null || typeof condition !== 'object')
    return rank(value) === rank(condition) && compare(value, condition) === 0;
  if ('in' in condition) return condition.in.some((one) => holds(value, one));
  if ('prefix' in condition) return typeof value === 'string' && value.startsWith(condition.prefix);
  const { gte, gt, lte, lt } = condition;
  const within = (bound: Scalar | undefined, fits: (order: number) => boolean): boolean =>
    bound === undefined || (rank(value) === rank(bound) && fits(compare(value, bound)));
  return (
    within(gte, (order) => order >= 0) &&
    within(gt, (order) => order > 0) &&
    within(lte, (order) => order <= 0) &&
    within(lt, (order) => order < 0)
  );
}

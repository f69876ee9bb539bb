/** Limits of caches of the least recently used entries. */

const one = (): number => 1;

/**
 * Options of an `LRUCache` that drops its oldest entry beyond `count`. Its memory grows with its entries, while one that
 * is made by `max` takes all of it, and some ms for ten thousands of entries, at once.
 */
export const atMost = (count: number): { readonly maxSize: number; readonly sizeCalculation: () => number } => ({
  maxSize: count,
  sizeCalculation: one,
});

/** Copies of objects that gain fields. */

/**
 * A copy of `object` with these fields in place of, or beside, its own. For objects that are copied by the thousand: on
 * Node 20 each `{ ...object, field }` that gains a field gets a hidden class of its own. That takes microseconds, is
 * kept as long as the copy, and makes slow whatever reads such copies afterwards. Literals among the fields keep their
 * types.
 */
export function copyWith<T extends object, const F extends object>(object: T, fields: F): Omit<T, keyof F> & F {
  return Object.assign({}, object, fields);
}

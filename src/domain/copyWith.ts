/**
 * A copy of `object` with these fields in place of, or beside, its own; literals keep their types. For objects that are
 * copied by the thousand: on Node 20 each `{ ...object, field }` that gains a field gets a hidden class of its own,
 * which slows down all that reads such copies.
 */
export function copyWith<T extends object, const F extends object>(object: T, fields: F): Omit<T, keyof F> & F {
  return Object.assign({}, object, fields);
}

/**
 * `{ ...object, ...fields }` for objects that are copied by the thousand. On Node 20 each spread that adds a field
 * gives its copy a hidden class of its own, which slows down every reader of such copies. Literals keep their types.
 */
export function copyWith<T extends object, const F extends object>(object: T, fields: F): Omit<T, keyof F> & F {
  return Object.assign({}, object, fields);
}

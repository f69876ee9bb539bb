/**
 * Copies an object with further fields; for objects that are copied by the thousand. On Node 20, each object literal
 * `{ ...object, field }` that adds a field gives its copy a hidden class of its own. That slows down every reader.
 */
export function copyWith<T extends object, const F extends object>(object: T, fields: F): Omit<T, keyof F> & F {
  return Object.assign({}, object, fields);
}

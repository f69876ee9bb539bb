/** The order in which the catalogue is listed. */
import type { Catalogue } from '../projections/catalogueView.js';

/**
 * Lists one kind of entry in the order of names (equal ones by id), without regard to case, so that pages follow each other whatever the import's order.
 * Worked out once for each state of the catalogue.
 */
export function byName<T extends { readonly id: string; readonly name: string }>(
  entries: (catalogue: Catalogue) => ReadonlyMap<string, T>,
): (catalogue: Catalogue) => readonly T[] {
  const lists = new WeakMap<Catalogue, readonly T[]>();
  return (catalogue) => {
    let list = lists.get(catalogue);
    if (list === undefined) {
      // Comparing prepared keys is several times quicker than a collator, which would hold up other requests.
      const keyed = [...entries(catalogue).values()].map((entry) => ({ entry, key: `${entry.name.normalize('NFKD').toLowerCase()}\0${entry.id}` }));
      list = keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ entry }) => entry);
      lists.set(catalogue, list);
    }
    return list;
  };
}

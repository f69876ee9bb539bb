/**
 * One document for each catalogue entry, with its stream's name as id. Every process builds its catalogue in memory
 * from them (`view.ts`).
 */
import { CATALOGUE_KINDS, type CatalogueKind, type CatalogueKinds } from '../../domain/catalogue.js';
import { type Entry, entryEventTypes, evolveEntry } from '../../domain/entry.js';
import { kindOf } from '../../domain/streamName.js';
import type { Position } from '../../ports/eventStore.js';
import type { Projection } from '../../runtime/readmodels/index.js';

export interface EntryDocument<K extends CatalogueKind> {
  readonly entry: K;
  /** Position of the entry's first addition, which gives the order of imports. */
  readonly added: Position;
  readonly changed: Position;
  /** An import pruned the entry, and no new use is allowed. Products and brands are inactive then. */
  readonly retired: boolean;
  readonly value: CatalogueKinds[K];
}

export type CatalogueDocument = { [K in CatalogueKind]: EntryDocument<K> }[CatalogueKind];

export const catalogueProjection: Projection<CatalogueDocument> = {
  name: 'catalogue',
  version: 1,
  hidden: new Set(),
  indexes: [{ fields: ['changed'] }, { fields: ['added'] }],
  types: entryEventTypes(CATALOGUE_KINDS),
  documentIds: (event) => [event.stream],
  evolve(document, event, id) {
    const state: Entry<object> =
      document === undefined
        ? { status: 'none' }
        : { status: document.retired ? 'retired' : 'live', value: document.value };
    const next = evolveEntry(state, event);
    if (next.status === 'none') throw new Error(`${event.type} comes before anything was added to ${event.stream}`);
    const entry = kindOf(id);
    return {
      entry,
      added: document?.added ?? event.position,
      changed: event.position,
      retired: next.status === 'retired',
      value: next.value,
    } as CatalogueDocument;
  },
};

/**
 * Names of stores and products at a position of the log, from the log alone and in bounded memory: for reports that
 * people read.
 */
import { LRUCache } from 'lru-cache';
import { type CatalogueKind, type CatalogueKinds, catalogueStream } from '../../domain/catalogue.js';
import { type Entry, evolveEntry } from '../../domain/entry.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';

/** Entries whose streams are kept: as a rule a shop's whole catalogue. */
const REMEMBERED = 10_000;

/** An entry's name at a position, or its first one; '' for an unknown entry. @throws UnavailableError */
export type NameAt = (kind: CatalogueKind, id: string, position: Position) => Promise<string>;

/** Reads each entry's stream once as long as it is remembered. */
export function catalogueNames(events: Pick<EventStore, 'read'>): NameAt {
  const known = new LRUCache<string, Promise<RecordedEvent[]>>({ max: REMEMBERED });
  return async (kind, id, position) => {
    const stream = catalogueStream(kind, id);
    const read = known.get(stream) ?? events.read(stream);
    known.set(stream, read);
    let entry: Entry<CatalogueKinds[CatalogueKind]> = { status: 'none' };
    for (const event of await read)
      if (event.position <= position || entry.status === 'none') entry = evolveEntry(entry, event);
    return entry.status === 'none' ? '' : entry.value.name;
  };
}

/**
 * What stores and products were called when something happened, from the log alone and in bounded memory: for reports
 * that people read.
 */
import { LRUCache } from 'lru-cache';
import { type CatalogueKind, type CatalogueKinds, catalogueStream } from '../../domain/catalogue.js';
import { type Entry, evolveEntry } from '../../domain/entry.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';

/** Entries whose streams are kept: a shop's whole catalogue, as a rule. */
const REMEMBERED = 10_000;

/**
 * The name of an entry as it was at a position, or the first that it had; '' for one that the log has never heard of.
 * @throws UnavailableError
 */
export type NameAt = (kind: CatalogueKind, id: string, position: Position) => Promise<string>;

/** Looks entries up in their streams, each once as long as it is remembered. */
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

/** Entries of the catalogue at a position, from the log alone and in bounded memory. */
import { LRUCache } from 'lru-cache';
import { type CatalogueKind, type CatalogueKinds, catalogueStream } from '../../domain/catalogue.js';
import { type Entry, evolveEntry } from '../../domain/entry.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';

/** Number of streams in memory: as a rule, the whole catalogue's. */
const REMEMBERED = 10_000;

/** An entry at a position, or its first version; `undefined`: unknown. */
type EntryAt = <K extends CatalogueKind>(
  kind: K,
  id: string,
  position: Position,
) => Promise<CatalogueKinds[K] | undefined>;

export function catalogueEntries(events: Pick<EventStore, 'read'>): EntryAt {
  const known = new LRUCache<string, Promise<RecordedEvent[]>>({ max: REMEMBERED });
  return async <K extends CatalogueKind>(kind: K, id: string, position: Position) => {
    const stream = catalogueStream(kind, id);
    const read = known.get(stream) ?? events.read(stream);
    known.set(stream, read);
    let entry: Entry<CatalogueKinds[K]> = { status: 'none' };
    for (const event of await read)
      if (event.position <= position || entry.status === 'none') entry = evolveEntry(entry, event);
    return entry.status === 'none' ? undefined : entry.value;
  };
}

/** Name of a catalogue entry at a position; '' for an unknown entry. */
export type NameAt = (kind: CatalogueKind, id: string, position: Position) => Promise<string>;

export function catalogueNames(events: Pick<EventStore, 'read'>): NameAt {
  const entryAt = catalogueEntries(events);
  return async (kind, id, position) => (await entryAt(kind, id, position))?.name ?? '';
}

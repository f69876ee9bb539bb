/** Folds events into the documents of one projection, in memory. */
import type { RecordedEvent } from '../ports/eventStore.js';
import type { ReadStore, StoredDocument } from '../ports/readStore.js';
import { isQuarantined, quarantineDocument, quarantineOf } from './quarantine.js';
import type { Slices } from './slices.js';
import { remembered, type Unit } from './unit.js';

/** The most documents read at once. */
const READ_DOCUMENTS = 1_000;
/** After how many documents the clock is asked. */
const STEPS = 32;

const NOTHING: ReadonlyMap<string, StoredDocument> = new Map();

/** An event whose documents have to be known before it can be folded. */
interface Touch {
  readonly event: RecordedEvent;
  readonly ids: readonly string[];
}

/**
 * Folds what of `events` (in log order) the unit has not folded yet; each document is read at most once. What can't be folded is quarantined.
 * Whatever it does to `unit.dirty` may be stored at any time, also half-way; `unit.folded` is for the caller to advance.
 * @throws UnavailableError
 */
export async function foldEvents(unit: Unit, store: ReadStore, events: readonly RecordedEvent[], time: Slices): Promise<void> {
  let touches: Touch[] = [];
  let unknown = new Set<string>();
  for (const event of events) {
    if (!unit.types.has(event.type) || (unit.folded !== undefined && event.position <= unit.folded)) continue;
    const ids = documentIds(unit, event);
    // What begins a document needs nothing read, and ignores what earlier events, still waiting for their document, would make of it.
    if (unit.begins.has(event.type)) {
      await foldEvent(unit, event, ids, undefined, time);
      continue;
    }
    touches.push({ event, ids });
    for (const id of ids) if (remembered(unit, id) === undefined) unknown.add(id);
    if (unknown.size < READ_DOCUMENTS) continue;
    await foldTouches(unit, store, touches, unknown, time);
    touches = [];
    unknown = new Set();
  }
  await foldTouches(unit, store, touches, unknown, time);
}

function documentIds(unit: Unit, event: RecordedEvent): readonly string[] {
  try {
    return unit.projection.documentIds(event);
  } catch (error) {
    const quarantined = quarantineOf(event, undefined, error);
    unit.quarantined.push(quarantined);
    unit.unlisted.push(quarantined);
    return [];
  }
}

async function foldTouches(unit: Unit, store: ReadStore, touches: readonly Touch[], unknown: ReadonlySet<string>, time: Slices): Promise<void> {
  const read = unknown.size === 0 ? NOTHING : await readDocuments(unit, store, [...unknown]);
  for (const { event, ids } of touches) await foldEvent(unit, event, ids, read, time);
}

async function readDocuments(unit: Unit, store: ReadStore, ids: readonly string[]): Promise<Map<string, StoredDocument>> {
  const read = new Map<string, StoredDocument>();
  for (let from = 0; from < ids.length; from += READ_DOCUMENTS) {
    for (const document of await store.getMany(unit.collection, ids.slice(from, from + READ_DOCUMENTS))) {
      if (document !== undefined) read.set(document.id, document);
    }
  }
  return read;
}

/** Folds one event. `read`: the documents that memory did not know; `undefined`: the event ignores what was there. */
async function foldEvent(
  unit: Unit,
  event: RecordedEvent,
  ids: readonly string[],
  read: ReadonlyMap<string, StoredDocument> | undefined,
  time: Slices,
): Promise<void> {
  for (let index = 0; index < ids.length; index++) {
    if (index % STEPS === 0 && time.due()) await time.rest();
    const id = ids[index] as string;
    const before = read === undefined ? undefined : (remembered(unit, id) ?? read.get(id));
    if (before !== undefined && (before.position >= event.position || isQuarantined(before.body))) continue;
    unit.dirty.set(id, evolved(unit, before, event, id, index));
  }
}

function evolved(unit: Unit, before: StoredDocument | undefined, event: RecordedEvent, id: string, index: number): StoredDocument {
  try {
    return { id, position: event.position, body: unit.projection.evolve(before?.body, event, id, index) };
  } catch (error) {
    const quarantined = quarantineOf(event, id, error);
    unit.quarantined.push(quarantined);
    unit.unlisted.push(quarantined);
    return quarantineDocument(id, quarantined);
  }
}

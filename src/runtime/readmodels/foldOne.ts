import type { RecordedEvent } from '../../ports/eventStore.js';
import type { StoredDocument } from '../../ports/readStore.js';
import { type Projection, touchedBy } from './projection.js';
import { isQuarantined, isUnreadable, type Quarantined, quarantineDocument, quarantineOf } from './quarantine.js';

export type NoteQuarantine = (quarantined: Quarantined) => void;

/** Notes an event that names no valid documents. */
export function documentIdsOf(projection: Projection, event: RecordedEvent, note?: NoteQuarantine): readonly string[] {
  try {
    return touchedBy(projection, event);
  } catch (error) {
    note?.(quarantineOf(event, undefined, error));
    return [];
  }
}

/**
 * `undefined`: unchanged, since the event is folded already or the document is quarantined. A failed fold returns the
 * quarantine marker.
 * @param before `undefined`: no such document, or the event creates it
 */
export function foldOne(
  projection: Projection,
  before: StoredDocument | undefined,
  event: RecordedEvent,
  id: string,
  index: number,
  note?: NoteQuarantine,
): StoredDocument | undefined {
  if (before !== undefined && (before.position >= event.position || isQuarantined(before.body))) return undefined;
  try {
    if (before !== undefined && isUnreadable(before.body)) throw new Error(before.body.$unreadable);
    return { id, position: event.position, body: projection.evolve(before?.body, event, id, index) };
  } catch (error) {
    const quarantined = quarantineOf(event, id, error);
    note?.(quarantined);
    return quarantineDocument(id, quarantined);
  }
}

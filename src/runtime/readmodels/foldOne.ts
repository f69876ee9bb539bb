/** How one event changes one document: for the projector, verifications and repairs. */
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { StoredDocument } from '../../ports/readStore.js';
import { type Projection, touchedBy } from './projection.js';
import { isQuarantined, isUnreadable, type Quarantined, quarantineDocument, quarantineOf } from './quarantine.js';

export type NoteQuarantine = (quarantined: Quarantined) => void;

/** The documents that an event touches; none where it can't say which: that is noted. */
export function documentIdsOf(projection: Projection, event: RecordedEvent, note?: NoteQuarantine): readonly string[] {
  try {
    return touchedBy(projection, event);
  } catch (error) {
    note?.(quarantineOf(event, undefined, error));
    return [];
  }
}

/**
 * The document after one more event; `undefined`: it stays as it was, since the event is folded already or the document
 * is quarantined. A document that can't be folded becomes the marker of its quarantine. @param before `undefined`:
 * there is none, or the event creates it @param index its place among the documents of the event
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

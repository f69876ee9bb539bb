import type { RecordedEvent } from '../../ports/eventStore.js';
import type { Body, StoredDocument } from '../../ports/readStore.js';
import { contextOf, type Projection, touchedBy } from './projection.js';
import {
  isOutOfService,
  isQuarantined,
  isUnreadable,
  type Quarantined,
  quarantineDocument,
  quarantineOf,
} from './quarantine.js';

export type NoteQuarantine = (quarantined: Quarantined) => void;

/** Documents that one event touches, and those that its fold reads. */
export interface Touch {
  readonly event: RecordedEvent;
  readonly ids: readonly string[];
  readonly contextIds: readonly string[];
}

/** An event that names no valid documents is noted as quarantined, and touches none. */
export function touchOf(projection: Projection, event: RecordedEvent, note?: NoteQuarantine): Touch {
  try {
    return { event, ids: touchedBy(projection, event), contextIds: contextOf(projection, event) };
  } catch (error) {
    note?.(quarantineOf(event, undefined, error));
    return { event, ids: [], contextIds: [] };
  }
}

/**
 * Folds one event into one document. `undefined`: the document is unchanged, since the event is folded already or the
 * document is quarantined. A failed fold returns the quarantine marker.
 * @param before `undefined`: no such document, or the event creates it
 * @param context the documents of `contextIds(event)`
 */
export function foldOne(
  projection: Projection,
  before: StoredDocument | undefined,
  event: RecordedEvent,
  id: string,
  index: number,
  context: readonly (StoredDocument | undefined)[],
  note?: NoteQuarantine,
): StoredDocument | undefined {
  if (before !== undefined && (before.position >= event.position || isQuarantined(before.body))) return undefined;
  try {
    if (before !== undefined && isUnreadable(before.body)) throw new Error(before.body.$unreadable);
    const known = context.length === 0 ? undefined : context.map((one) => one && inService(one));
    return { id, position: event.position, body: projection.evolve(before?.body, event, id, index, known) };
  } catch (error) {
    const quarantined = quarantineOf(event, id, error);
    note?.(quarantined);
    return quarantineDocument(id, quarantined);
  }
}

/** Body of a document that a fold depends on. @throws Error if that document is out of service */
function inService({ id, body }: StoredDocument): Body {
  if (isOutOfService(body)) throw new Error(`document ${id}, which it rests on, is out of service`);
  return body;
}

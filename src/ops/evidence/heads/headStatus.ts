/** How the last signed head stands, from what is stored. */
import { RESTORED_STREAM } from '../../../domain/restored.js';
import { treeHeadStream, type TreeHeadSigned, TREE_TYPES } from '../../../domain/treeHeads.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import { lastEvent } from '../../../runtime/log/lastEvent.js';
import { cosignatureVerifier } from '../format/checkpoint.js';
import { keyName } from '../format/noteKeys.js';
import { unlessMalformed } from '../format/parsing.js';
import { parseNote } from '../format/signedNote.js';
import type { TileFolder } from '../tree/tileFolder.js';
import { headOf } from './signedHeads.js';

interface HeadStatus {
  /** Events of the last head, and its time in milliseconds since 1970; absent: nothing was signed yet. */
  readonly last?: { readonly size: number; readonly at: number };
  /**
   * Time of the first event that no head covers, or of the log's restore where that is later: the tree over a restored
   * log is made first. ISO 8601, UTC; absent: there is no such event but the tree's own.
   */
  readonly uncoveredSince?: string;
  /** Names of the witnesses' keys without a cosignature of the published head. */
  readonly uncosigned: readonly string[];
}

/** @param witnesses keys of the cosignatures, as text @throws UnavailableError, MalformedEvidenceError */
export async function headStatus(
  events: Pick<EventStore, 'logId' | 'read' | 'readAll'>,
  folder: Pick<TileFolder, 'head'>,
  witnesses: readonly string[],
): Promise<HeadStatus> {
  const event = await lastEvent(events, treeHeadStream(events.logId));
  const last = event === undefined ? undefined : headOf(event);
  const uncovered = await firstUncovered(events, event);
  const restored = await lastEvent(events, RESTORED_STREAM);
  const uncoveredSince = restored !== undefined && restored.at > (uncovered ?? restored.at) ? restored.at : uncovered;
  const note = witnesses.length === 0 ? undefined : await folder.head();
  return {
    ...(last === undefined ? {} : { last: { size: last.size, at: last.at } }),
    ...(uncoveredSince === undefined ? {} : { uncoveredSince }),
    uncosigned: note === undefined ? [] : uncosignedIn(note, witnesses),
  };
}

/**
 * Time of the first event that no head covers, but the tree's own.
 * @param last event of the log's last head
 * @throws UnavailableError
 */
export async function firstUncovered(
  events: Pick<EventStore, 'readAll'>,
  last: Pick<RecordedEvent, 'data'> | undefined,
): Promise<string | undefined> {
  const after = last === undefined ? await continuedHead(events) : (last.data as TreeHeadSigned['data']).position;
  for await (const batch of events.readAll(after, {})) {
    const first = batch.events.find(({ type }) => !TREE_TYPES.has(type));
    if (first !== undefined) return first.at;
  }
  return undefined;
}

/**
 * Position of the last head of the log that this one was made from: until its own first head, that one covers the
 * events. The position in that head is one of the other log.
 */
async function continuedHead(events: Pick<EventStore, 'readAll'>): Promise<Position | undefined> {
  let last: Position | undefined;
  for await (const batch of events.readAll(undefined, { types: ['TreeHeadSigned'] }))
    last = batch.events.at(-1)?.position ?? last;
  return last;
}

/** Names of keys without a line in the note; whether a line's signature is valid, a verification tells. */
export function uncosignedIn(note: string, witnesses: readonly string[]): string[] {
  // A published head that is unreadable has no signature: the keeper of the tree, and a verification, name it.
  const signed = new Set(unlessMalformed(() => parseNote(note))?.signatures.map(keyName));
  return witnesses
    .map((key) => cosignatureVerifier(key))
    .filter((key) => !signed.has(keyName(key)))
    .map(({ name }) => name);
}

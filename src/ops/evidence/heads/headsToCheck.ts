/** The signed heads that a log is held against, in the order of their sizes, a few at a time. */
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import { parseCheckpoint, type ParsedCheckpoint } from '../format/checkpoint.js';
import { MalformedEvidenceError, UnknownSignersError, UntrustedNoteError } from '../format/parsing.js';
import { openNote, parseNote } from '../format/signedNote.js';
import { LogAlteredError } from '../tree/logTree.js';
import type { TileFolder } from '../tree/tileFolder.js';
import type { VerifiersOf } from './signedHeads.js';

/** A head that was retained outside the log. */
export interface StoredHead {
  /** Description of the file that holds the head, or of the party that retained it. */
  readonly from: string;
  /** The head as a signed note. */
  readonly note: string;
}

export interface HeadToCheck extends ParsedCheckpoint {
  readonly from: string;
  /** Position of the head's event; absent for a head that was retained outside the log. */
  readonly position?: Position;
  /** Fault of the head itself; absent where it has none. */
  readonly fault?: string;
  /**
   * True: a known key signed it. False: none of the known keys did, and only a later head, which covers it, can vouch
   * for it. Absent: no key of its origin is known.
   */
  readonly verified?: boolean;
  /** The restore by which this log began without the last events of the head; absent where there was none. */
  readonly restored?: Restore;
}

/** A restore of the first `events` events of another log, which `event` records right behind them. */
export interface Restore {
  readonly events: number;
  readonly event: RecordedEvent;
}

/**
 * Parses a head, and verifies its signatures where a key of its origin is known. A head from before a change of
 * SEAL_KEY may have no signature of a key that is still known.
 */
export function headToCheck({ from, note }: StoredHead, verifiersOf: VerifiersOf): HeadToCheck {
  const head = parseCheckpoint(parseNote(note).body);
  const verifiers = verifiersOf(head.origin);
  try {
    if (verifiers.length === 0) return { ...head, from };
    openNote(note, verifiers);
    return { ...head, from, verified: true };
  } catch (error) {
    if (error instanceof UnknownSignersError) return { ...head, from, verified: false };
    if (error instanceof UntrustedNoteError) return { ...head, from, fault: error.message };
    throw error;
  }
}

/** The signed note in an event's data. @throws MalformedEvidenceError */
function noteIn(data: object | string): string {
  try {
    const { note } = (typeof data === 'string' ? JSON.parse(data) : data) as { readonly note?: unknown };
    return String(note);
  } catch (cause) {
    throw new MalformedEvidenceError('its event was altered: there is no JSON object', { cause });
  }
}

/** The heads in the log, in its order, also those of logs that it is a copy of. @throws UnavailableError */
export async function* headsInLog(
  stored: Pick<EventStore, 'readAll' | 'readTexts'>,
  verifiersOf: VerifiersOf,
  after?: Position,
): AsyncGenerator<HeadToCheck, void> {
  const filter = { types: ['TreeHeadSigned'] };
  for await (const { events } of stored.readTexts?.(after, filter) ?? stored.readAll(after, filter))
    for (const { data, at, position } of events) {
      const from = `the head of ${at} (position ${position})`;
      try {
        yield { ...headToCheck({ from, note: noteIn(data) }, verifiersOf), position };
      } catch (error) {
        if (!(error instanceof MalformedEvidenceError)) throw error;
        yield { origin: '', size: 0, root: Buffer.alloc(0), from, position, fault: error.message };
      }
    }
}

/** @throws LogAlteredError for a file that is not a signed head; the file system's errors */
export async function publishedHead(
  folder: Pick<TileFolder, 'head'>,
  verifiersOf: VerifiersOf,
): Promise<(HeadToCheck & StoredHead) | undefined> {
  const note = await folder.head();
  if (note === undefined) return undefined;
  const head = { from: 'the published head', note };
  try {
    return { ...head, ...headToCheck(head, verifiersOf) };
  } catch (cause) {
    if (!(cause instanceof MalformedEvidenceError)) throw cause;
    throw new LogAlteredError('the published head, the file checkpoint in SEAL_DIR, is not a signed head', { cause });
  }
}

/** Whether `head` is the published head, with or without cosignatures. */
export function isPublished(published: StoredHead | undefined, head: Pick<StoredHead, 'note'> | undefined): boolean {
  return published !== undefined && head !== undefined && parseNote(published.note).body === parseNote(head.note).body;
}

/** Whether the published head is `note`, with at least as many signatures. */
export async function isPublishedWhole(folder: Pick<TileFolder, 'head'>, note: string): Promise<boolean> {
  const published = await folder.head();
  if (published === undefined) return false;
  const [shown, required] = [parseNote(published), parseNote(note)];
  return shown.body === required.body && shown.signatures.length >= required.signatures.length;
}

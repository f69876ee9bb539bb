/** The signed heads that a log is held against, in the order of their sizes, a few at a time. */
import type { EventStore, Position } from '../../ports/eventStore.js';
import { MalformedEvidenceError, UntrustedNoteError } from '../../runtime/evidence/errors.js';
import type { ParsedCheckpoint } from '../../runtime/evidence/checkpoint.js';
import { parseCheckpoint } from '../../runtime/evidence/checkpoint.js';
import { openNote, parseNote } from '../../runtime/evidence/signedNote.js';
import type { VerifiersOf } from './headKeys.js';

/** A head that was kept outside the log. */
export interface KeptHead {
  /** In words: the file, or who kept it. */
  readonly from: string;
  /** A signed note. */
  readonly note: string;
}

export interface HeadToCheck extends ParsedCheckpoint {
  readonly from: string;
  /** Of its event; absent for one that was kept outside. */
  readonly position?: Position;
  /** What is wrong with the head itself; absent: nothing. */
  readonly fault?: string;
}

/** Of an origin without a known key no signature is checked. */
export function headToCheck({ from, note }: KeptHead, verifiersOf: VerifiersOf): HeadToCheck {
  const head = parseCheckpoint(parseNote(note).body);
  const verifiers = verifiersOf(head.origin);
  try {
    if (verifiers.length > 0) openNote(note, verifiers);
    return { ...head, from };
  } catch (error) {
    if (error instanceof UntrustedNoteError) return { ...head, from, fault: error.message };
    throw error;
  }
}

/** The heads in the log, in its order, also those of logs that it is a copy of. @throws UnavailableError */
export async function* headsInLog(
  stored: Pick<EventStore, 'readAll'>,
  verifiersOf: VerifiersOf,
): AsyncGenerator<HeadToCheck, void> {
  for await (const { events } of stored.readAll(undefined, { types: ['TreeHeadSigned'] }))
    for (const { data, at, position } of events) {
      const from = `the head of ${at}`;
      try {
        const { note } = data as { readonly note?: unknown };
        yield { ...headToCheck({ from, note: String(note) }, verifiersOf), position };
      } catch (error) {
        if (!(error instanceof MalformedEvidenceError)) throw error;
        yield { origin: '', size: 0, root: Buffer.alloc(0), extensions: [], from, position, fault: error.message };
      }
    }
}

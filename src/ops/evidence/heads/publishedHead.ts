/** The head that was published last, in SEAL_DIR. */
import { MalformedEvidenceError } from '../format/errors.js';
import { parseNote } from '../format/signedNote.js';
import { LogAlteredError } from '../tree/logAltered.js';
import type { TileFolder } from '../tree/tileFolder.js';
import type { VerifiersOf } from './headKeys.js';
import { type HeadToCheck, headToCheck, type KeptHead } from './headsToCheck.js';

/** @throws LogAlteredError for a file that is no signed head; the file system's errors */
export async function publishedHead(
  folder: Pick<TileFolder, 'head'>,
  verifiersOf: VerifiersOf,
): Promise<(HeadToCheck & KeptHead) | undefined> {
  const note = await folder.head();
  if (note === undefined) return undefined;
  const kept = { from: 'the published head', note };
  try {
    return { ...kept, ...headToCheck(kept, verifiersOf) };
  } catch (cause) {
    if (!(cause instanceof MalformedEvidenceError)) throw cause;
    throw new LogAlteredError('the published head, the file checkpoint in SEAL_DIR, is no signed head', { cause });
  }
}

/** Whether `head` is the published head, with or without cosignatures. */
export function isPublished(published: KeptHead | undefined, head: Pick<KeptHead, 'note'> | undefined): boolean {
  return published !== undefined && head !== undefined && parseNote(published.note).body === parseNote(head.note).body;
}

/** Whether the published head is `note`, with at least as many signatures. */
export async function isPublishedWhole(folder: Pick<TileFolder, 'head'>, note: string): Promise<boolean> {
  const published = await folder.head();
  if (published === undefined) return false;
  const [shown, wanted] = [parseNote(published), parseNote(note)];
  return shown.body === wanted.body && shown.signatures.length >= wanted.signatures.length;
}

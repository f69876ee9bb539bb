/**
 * What a witness answers (c2sp.org/tlog-witness), without I/O. It cosigns a checkpoint that continues the latest one it
 * has cosigned for the log, and no other: the caller keeps the answer's line before it sends the cosignature, and asks
 * for one log at a time.
 */
import { type AddCheckpoint, parseAddCheckpoint } from './addCheckpoint.js';
import { type ParsedCheckpoint, parseCheckpoint } from './checkpoint.js';
import { MalformedEvidenceError, UntrustedNoteError } from './errors.js';
import { EMPTY_ROOT, verifyConsistency } from './merkleTree.js';
import {
  formatSignature,
  type NoteSigner,
  type NoteVerifier,
  openNote,
  parseNote,
  signatures,
  withSignatures,
} from './signedNote.js';

/** What a witness keeps of a log. */
export interface WitnessedLog {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
  /** The latest checkpoint that it has cosigned, with the log's signatures and its own. */
  readonly checkpoint: string;
}

export interface WitnessView {
  /** The log's keys; `undefined`: the witness does not know the log. */
  verifiers(origin: string): readonly NoteVerifier[] | undefined;
  /** `undefined`: it has cosigned nothing of the log. */
  latest(origin: string): WitnessedLog | undefined;
  readonly cosigners: readonly NoteSigner[];
}

export type WitnessAnswer =
  | { readonly status: 200; readonly keep: WitnessedLog; readonly cosignatures: string }
  | { readonly status: 409; readonly size: number }
  | { readonly status: 400 | 403 | 404 | 422; readonly reason: string };

export function answerAddCheckpoint(body: string, view: WitnessView): WitnessAnswer {
  try {
    return answer(body, view);
  } catch (error) {
    if (error instanceof MalformedEvidenceError) return { status: 400, reason: error.message };
    if (error instanceof UntrustedNoteError) return { status: 403, reason: error.message };
    throw error;
  }
}

function answer(body: string, view: WitnessView): WitnessAnswer {
  const request = parseAddCheckpoint(body);
  const head = parseCheckpoint(parseNote(request.checkpoint).body);
  const verifiers = view.verifiers(head.origin);
  if (verifiers === undefined) return { status: 404, reason: 'this witness does not know the log' };
  const note = openNote(request.checkpoint, verifiers);
  if (request.oldSize > head.size) return { status: 400, reason: 'the old size exceeds that of the checkpoint' };
  const latest = view.latest(head.origin);
  const size = latest?.size ?? 0;
  if (request.oldSize !== size) return { status: 409, size };
  const wrong = inconsistency(request, head, latest);
  if (wrong !== undefined) return { status: 422, reason: wrong };
  const cosigned = signatures(note.body, view.cosigners);
  const checkpoint = withSignatures(`${note.body}\n`, [...note.signatures, ...cosigned]);
  return {
    status: 200,
    keep: { origin: head.origin, size: head.size, root: head.root, checkpoint },
    cosignatures: cosigned.map(formatSignature).join(''),
  };
}

function inconsistency(
  { oldSize, consistency }: AddCheckpoint,
  { size, root }: ParsedCheckpoint,
  latest: WitnessedLog | undefined,
): string | undefined {
  if (size === 0 && !root.equals(EMPTY_ROOT)) return 'the root is not that of an empty tree';
  if (oldSize === 0 && consistency.length > 0) return 'nothing is to be proved from size 0 on';
  const from = latest ?? { size: 0, root: EMPTY_ROOT };
  return verifyConsistency(consistency, from, { size, root })
    ? undefined
    : `this checkpoint does not continue the one of size ${oldSize} that this witness has cosigned`;
}

/**
 * What a witness answers (c2sp.org/tlog-witness), without I/O. It cosigns a checkpoint that continues the latest one it
 * has cosigned for the log, and no other: the caller keeps the answer's line before it sends the cosignature, and asks
 * for one log at a time.
 */
import { parseAddCheckpoint } from './addCheckpoint.js';
import { parseCheckpoint } from './checkpoint.js';
import { MalformedEvidenceError, UntrustedNoteError } from './errors.js';
import { EMPTY_ROOT, type TreeHead, verifyConsistency } from './merkleTree.js';
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
  /** The old size is not that of its latest checkpoint, or the tree of this size is another one. */
  | { readonly status: 409; readonly size: number }
  | { readonly status: 400 | 403 | 404 | 422; readonly reason: string };

export interface Witness {
  /** What a 200 keeps is durable once this has returned. */
  add(body: string): WitnessAnswer;
  /** @param originHash SHA-256 of the log's origin, in hex */
  latest(originHash: string): WitnessedLog | undefined;
}

/** Before the first checkpoint of a log. */
const NOTHING: TreeHead = { size: 0, root: EMPTY_ROOT };

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
  const latest = view.latest(head.origin) ?? NOTHING;
  const isFork = head.size === latest.size && !head.root.equals(latest.root);
  if (request.oldSize !== latest.size || isFork) return { status: 409, size: latest.size };
  if (!verifyConsistency(request.consistency, latest, head))
    return {
      status: 422,
      reason: `the proof does not lead from size ${latest.size}, which this witness has cosigned, to this checkpoint`,
    };
  const cosigned = signatures(note.body, view.cosigners);
  const checkpoint = withSignatures(`${note.body}\n`, [...note.signatures, ...cosigned]);
  return {
    status: 200,
    keep: { origin: head.origin, size: head.size, root: head.root, checkpoint },
    cosignatures: cosigned.map(formatSignature).join(''),
  };
}

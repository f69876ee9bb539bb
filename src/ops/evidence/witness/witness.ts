/**
 * The answers of a witness (c2sp.org/tlog-witness), without I/O. It cosigns only a checkpoint that continues the latest
 * one that it has cosigned for the log. The caller must store the answer's `keep` durably before it sends the
 * cosignature, and must handle requests for one log one at a time.
 */
import { parseAddCheckpoint } from './addCheckpoint.js';
import { parseCheckpoint } from '../format/checkpoint.js';
import { MalformedEvidenceError, UntrustedNoteError } from '../format/errors.js';
import { EMPTY_ROOT, type TreeHead, verifyConsistency } from '../format/merkleTree.js';
import {
  formatSignature,
  type NoteSigner,
  type NoteVerifier,
  openNote,
  parseNote,
  signatures,
  withSignatures,
} from '../format/signedNote.js';

/** The state of a log that a witness stores. */
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
  /** The stored state of a log; `undefined`: the witness has cosigned no checkpoint of it. */
  latest(origin: string): WitnessedLog | undefined;
  readonly cosigners: readonly NoteSigner[];
}

export type WitnessAnswer =
  | { readonly status: 200; readonly keep: WitnessedLog; readonly cosignatures: string }
  /** The request's old size differs from the latest cosigned size, or another tree of this size was cosigned. */
  | { readonly status: 409; readonly size: number }
  | { readonly status: 400 | 403 | 404 | 422; readonly reason: string };

export interface Witness {
  /** Answers a request. The state in `keep` of an answer with status 200 is durable once this returns. */
  add(body: string): WitnessAnswer;
  /** @param originHash SHA-256 of the log's origin, in hex */
  latest(originHash: string): WitnessedLog | undefined;
}

/** The tree head of a log of which no checkpoint was cosigned yet. */
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

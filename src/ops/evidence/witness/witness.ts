/**
 * A witness (c2sp.org/tlog-witness). It cosigns only a checkpoint that continues the latest one that it has cosigned
 * for the log, and stores that one before it sends the cosignature.
 */
import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { storedText, textOf } from '../../../lib/files/storedText.js';
import { replaceFile } from '../../../lib/files/replaceFile.js';
import { randomBytes, systemMs } from '../../../lib/world.js';
import { cosigner, parseAddCheckpoint, parseCheckpoint } from '../format/checkpoint.js';
import { EMPTY_ROOT, type TreeHead, verifyConsistency } from '../format/merkleTree.js';
import { COSIGNATURE_V1, formatSignerKey, formatVerifierKey, parseSignerKey } from '../format/noteKeys.js';
import { MalformedEvidenceError, UntrustedNoteError } from '../format/parsing.js';
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
  /** Answers a request's body. The state in `keep` of an answer with status 200 is durable once this returns. */
  add(body: Uint8Array): WitnessAnswer;
  /** @param originHash SHA-256 of the log's origin, in hex */
  latest(originHash: string): WitnessedLog | undefined;
}

interface WitnessIdentity {
  /** Name of the witness' key. */
  readonly name: string;
  /** What verifies its cosignatures: `name+hash+base64`. */
  readonly verifierKey: string;
  /**
   * Opens the witness of some logs. The caller holds a lock on `stateFile`.
   * @throws MalformedEvidenceError as `openWitnessBook`
   */
  open(stateFile: string, logs: readonly NoteVerifier[]): Witness;
}

/**
 * A witness by its key in a file. The key is made where the file is missing and a name is given.
 * @returns `undefined` where the file is missing and no name was given
 * @throws MalformedEvidenceError for a malformed key, or a name that no key may have; the file system's errors
 */
export function openWitness(keyFile: string, name: string | undefined): WitnessIdentity | undefined {
  const key =
    name === undefined
      ? textOf(keyFile)
      : storedText(keyFile, () => formatSignerKey(name, COSIGNATURE_V1, randomBytes(32)));
  if (key === undefined) return undefined;
  const signer = cosigner(key, () => Math.floor(systemMs() / 1_000));
  return {
    name: signer.name,
    verifierKey: formatVerifierKey(parseSignerKey(key).key),
    open(stateFile, logs) {
      const book = openWitnessBook(stateFile);
      return {
        latest: (originHash) => book.ofHash(originHash),
        add(body) {
          if (!isUtf8(body)) return { status: 400, reason: 'the request is no UTF-8' };
          const answer = answerAddCheckpoint(Buffer.from(body).toString(), {
            // The origin of a log is the name of its keys.
            verifiers(origin) {
              const known = logs.filter((verifier) => verifier.name === origin);
              return known.length === 0 ? undefined : known;
            },
            latest: (origin) => book.latest(origin),
            cosigners: [signer],
          });
          if (answer.status === 200) book.keep(answer.keep);
          return answer;
        },
      };
    },
  };
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

interface WitnessBook {
  latest(origin: string): WitnessedLog | undefined;
  /** @param originHash SHA-256 of the origin, in hex */
  ofHash(originHash: string): WitnessedLog | undefined;
  /**
   * Stores the latest head of a log; it is durable once the call has returned.
   * @throws the file system's errors; the log's former line is valid then
   */
  keep(log: WitnessedLog): void;
}

/**
 * Opens the file of a witness. Only one process may use it at a time: the caller holds a lock.
 * @throws MalformedEvidenceError for a file that is not as this wrote it: an empty start would lose what was cosigned
 */
function openWitnessBook(file: string): WitnessBook {
  let logs = read(textOf(file) ?? '');
  return {
    latest: (origin) => logs.get(origin),
    ofHash: (originHash) => [...logs.values()].find(({ origin }) => hash('sha256', origin) === originHash),
    keep(log) {
      const next = new Map(logs).set(log.origin, log);
      replaceFile(file, Array.from(next.values(), ({ checkpoint }) => `${JSON.stringify({ checkpoint })}\n`).join(''));
      logs = next;
    },
  };
}

function read(text: string): ReadonlyMap<string, WitnessedLog> {
  const logs = new Map<string, WitnessedLog>();
  const lines = text === '' ? [] : text.split('\n');
  for (const [at, line] of lines.entries()) {
    const log = logOf(line, at + 1);
    if (logs.has(log.origin)) throw new MalformedEvidenceError(`line ${at + 1} is a second one of ${log.origin}`);
    logs.set(log.origin, log);
  }
  return logs;
}

function logOf(line: string, number: number): WitnessedLog {
  try {
    const { checkpoint } = JSON.parse(line) as { readonly checkpoint: string };
    const { origin, size, root } = parseCheckpoint(parseNote(checkpoint).body);
    return { origin, size, root, checkpoint };
  } catch (cause) {
    throw new MalformedEvidenceError(`line ${number} is not as a witness writes it`, { cause });
  }
}

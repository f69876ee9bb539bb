/**
 * Checkpoints (c2sp.org/tlog-checkpoint): a log's origin, its number of leaves and their root. With them their
 * cosignatures by witnesses (c2sp.org/tlog-cosignature), and the request for these (c2sp.org/tlog-witness).
 */
import type { TreeHead } from './merkleTree.js';
import { COSIGNATURE_V1, ed25519Verifier, parseSignerKey, parseVerifierKey, SIGNATURE_BYTES } from './noteKeys.js';
import { fromDecimal, hashFromBase64, MalformedEvidenceError } from './parsing.js';
import type { NoteSignature, NoteSigner, NoteVerifier } from './signedNote.js';

export interface Checkpoint extends TreeHead {
  /** Names the log for ever: `host/log/{log id}`. */
  readonly origin: string;
}

export interface ParsedCheckpoint extends Checkpoint {
  readonly root: Buffer;
}

/** The checkpoint's text with its last newline: the body of a note. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  const text = `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
  parseCheckpoint(text);
  return text;
}

/** @throws MalformedEvidenceError also for a size over 2^53-1 */
export function parseCheckpoint(text: string): ParsedCheckpoint {
  const [origin, size, root, ...rest] = text.split('\n');
  if (origin === undefined || size === undefined || root === undefined || rest.at(-1) !== '')
    throw new MalformedEvidenceError('a checkpoint has at least three lines, and each ends with a newline');
  // Extension lines may follow the root; checkpoints of this service have none.
  if (origin === '' || rest.slice(0, -1).includes(''))
    throw new MalformedEvidenceError('a checkpoint has no empty lines');
  return {
    origin,
    size: fromDecimal(size, "a checkpoint's size"),
    root: hashFromBase64(root, "a checkpoint's root"),
  };
}

const TIME_BYTES = 8;
const LATEST = 253_402_300_799n;

/** Signs checkpoints with the time of the signature. @param now seconds since 1970 */
export function cosigner(signerKey: string, now: () => number): NoteSigner {
  const { key, sign } = parseSignerKey(signerKey);
  if (key.type !== COSIGNATURE_V1) throw new MalformedEvidenceError(`the key of ${key.name} makes no cosignatures`);
  return {
    name: key.name,
    keyId: key.keyId,
    sign(body) {
      const time = Buffer.alloc(TIME_BYTES);
      time.writeBigUInt64BE(BigInt(now()));
      return Buffer.concat([time, sign(signedText(time.readBigUInt64BE(), body))]);
    },
  };
}

/** A cosignature without a time, or with one after the year 9999, is not valid. */
export function cosignatureVerifier(verifierKey: string): NoteVerifier {
  const { name, keyId, type, publicKey } = parseVerifierKey(verifierKey);
  if (type !== COSIGNATURE_V1) throw new MalformedEvidenceError(`the key of ${name} is none of cosignatures`);
  const verify = ed25519Verifier(publicKey);
  return {
    name,
    keyId,
    verify(body, signature) {
      if (signature.length !== TIME_BYTES + SIGNATURE_BYTES) return false;
      const bytes = Buffer.from(signature);
      const time = bytes.readBigUInt64BE();
      return time > 0n && time <= LATEST && verify(signedText(time, body), bytes.subarray(TIME_BYTES));
    },
  };
}

/** The time of a valid cosignature, seconds since 1970. */
export const cosignedAt = ({ signature }: NoteSignature): number => Number(signature.readBigUInt64BE());

const signedText = (time: bigint, body: string): Buffer => Buffer.from(`cosignature/v1\ntime ${time}\n${body}`);

export interface AddCheckpoint {
  /** Size of the latest checkpoint that the witness has cosigned; 0: none. */
  readonly oldSize: number;
  /** The consistency proof from the old size to the checkpoint's size. */
  readonly consistency: readonly Uint8Array[];
  /** The checkpoint as a signed note. */
  readonly checkpoint: string;
}

const OLD = 'old ';
const MAX_HASHES = 63;

export function formatAddCheckpoint({ oldSize, consistency, checkpoint }: AddCheckpoint): string {
  const hashes = consistency.map((hash) => Buffer.from(hash).toString('base64'));
  return [`${OLD}${oldSize}`, ...hashes, '', checkpoint].join('\n');
}

/** Parses a request's body, but not the checkpoint in it. @throws MalformedEvidenceError */
export function parseAddCheckpoint(text: string): AddCheckpoint {
  const end = text.indexOf('\n\n');
  if (end < 0) throw new MalformedEvidenceError('an empty line stands before the checkpoint');
  const [first = '', ...hashes] = text.slice(0, end).split('\n');
  if (!first.startsWith(OLD)) throw new MalformedEvidenceError('the first line is "old" and a size');
  if (hashes.length > MAX_HASHES)
    throw new MalformedEvidenceError(`a consistency proof has more than ${MAX_HASHES} hashes`);
  return {
    oldSize: fromDecimal(first.slice(OLD.length), 'the old size'),
    consistency: hashes.map((hash) => hashFromBase64(hash, 'a hash of the consistency proof')),
    checkpoint: text.slice(end + 2),
  };
}

/** The body of a log's request to a witness for a cosignature (c2sp.org/tlog-witness, "add-checkpoint"). */
import { MalformedEvidenceError } from '../format/errors.js';
import { fromDecimal, hashFromBase64 } from '../format/strictText.js';

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

/** A proof that checks offline (c2sp.org/tlog-proof@v1): index, inclusion proof and checkpoint of one leaf. */
import { MalformedEvidenceError } from './errors.js';
import { parseNote } from './signedNote.js';
import { fromBase64, fromDecimal, hashFromBase64 } from './strictText.js';

export interface TlogProof {
  /** Extra data, which the proof does not authenticate. */
  readonly extra?: Uint8Array | undefined;
  readonly index: number;
  readonly inclusion: readonly Uint8Array[];
  /** The checkpoint as a signed note. */
  readonly checkpoint: string;
}

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';
const EXTRA = 'extra ';
const INDEX = 'index ';
/** Most hashes of an inclusion proof: sizes of trees are below 2^63. */
const MAX_HASHES = 63;

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

export function formatTlogProof({ extra, index, inclusion, checkpoint }: TlogProof): string {
  return [
    FIRST_LINE,
    ...(extra === undefined || extra.length === 0 ? [] : [EXTRA + base64(extra)]),
    INDEX + index,
    ...inclusion.map(base64),
    '',
    checkpoint,
  ].join('\n');
}

/**
 * Parses a proof and the form of its checkpoint; the proof and the checkpoint's signatures are still to be verified.
 * @throws MalformedEvidenceError
 */
export function parseTlogProof(text: string): TlogProof {
  const end = text.indexOf('\n\n');
  if (end < 0) throw new MalformedEvidenceError('a proof has an empty line before its checkpoint');
  const [first, ...lines] = text.slice(0, end).split('\n');
  if (first !== FIRST_LINE) throw new MalformedEvidenceError(`a proof starts with the line ${FIRST_LINE}`);
  const extra = lines[0]?.startsWith(EXTRA) === true ? lines.shift()?.slice(EXTRA.length) : undefined;
  const index = lines.shift();
  if (index?.startsWith(INDEX) !== true) throw new MalformedEvidenceError('a proof has a line with an index');
  if (lines.length > MAX_HASHES) throw new MalformedEvidenceError(`a proof has more than ${MAX_HASHES} hashes`);
  if (extra === '') throw new MalformedEvidenceError('a proof without extra data has no line for it');
  const checkpoint = text.slice(end + 2);
  parseNote(checkpoint);
  return {
    ...(extra === undefined ? {} : { extra: fromBase64(extra, "a proof's extra data") }),
    index: fromDecimal(index.slice(INDEX.length), "a proof's index"),
    inclusion: lines.map((line) => hashFromBase64(line, 'a hash of a proof')),
    checkpoint,
  };
}

/**
 * The bytes of a leaf, one an event (docs/evidence.md#leaves): a version, then seven fields, each after its length. A
 * leaf reveals its first five fields, and nothing of data and metadata, of which it has salted hashes.
 */
import { MalformedEvidenceError } from './errors.js';
import { HASH_BYTES } from './strictText.js';

const LEAF_VERSION = 1;

export interface Leaf {
  /** The event's id. */
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  /** The event's time, milliseconds since 1970, UTC. */
  readonly time: number;
  /** Salted digest of the event's data, as `metadata` is of its metadata (`fieldHashes.ts`). */
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

const LENGTH_BYTES = 2;
const NUMBER_BYTES = 8;
/** Entries of a bundle have a length of 16 bits (c2sp.org/tlog-tiles). */
const MAX_BYTES = 65_535;

/** @throws MalformedEvidenceError for what does not fit a leaf */
export function encodeLeaf(leaf: Leaf): Buffer {
  const texts = [leaf.id, leaf.stream, leaf.type].map((text) => {
    // All unpaired surrogates would be encoded as the same bytes.
    if (!text.isWellFormed()) throw new MalformedEvidenceError('id, stream and type of an event are UTF-8');
    return Buffer.byteLength(text);
  });
  const size = 1 + 7 * LENGTH_BYTES + texts.reduce((sum, length) => sum + length) + 2 * NUMBER_BYTES + 2 * HASH_BYTES;
  if (size > MAX_BYTES) throw new MalformedEvidenceError(`a leaf of ${size} bytes exceeds ${MAX_BYTES}`);
  const bytes = Buffer.allocUnsafe(size);
  let at = bytes.writeUInt8(LEAF_VERSION, 0);
  const text = (value: string, length: number): void => {
    at = bytes.writeUInt16BE(length, at);
    at += bytes.write(value, at);
  };
  const number = (value: number, what: string): void => {
    if (!Number.isSafeInteger(value) || value < 0)
      throw new MalformedEvidenceError(`${value} is no ${what} of an event`);
    at = bytes.writeUInt16BE(NUMBER_BYTES, at);
    at = bytes.writeUInt32BE(Math.floor(value / 2 ** 32), at);
    at = bytes.writeUInt32BE(value % 2 ** 32, at);
  };
  const hash = (value: Uint8Array): void => {
    if (value.length !== HASH_BYTES) throw new MalformedEvidenceError(`a digest has ${HASH_BYTES} bytes`);
    at = bytes.writeUInt16BE(HASH_BYTES, at);
    bytes.set(value, at);
    at += HASH_BYTES;
  };
  text(leaf.id, texts[0] as number);
  text(leaf.stream, texts[1] as number);
  number(leaf.revision, 'revision');
  text(leaf.type, texts[2] as number);
  number(leaf.time, 'time');
  hash(leaf.data);
  hash(leaf.metadata);
  return bytes;
}

/** The only leaf that has these bytes. @throws MalformedEvidenceError */
export function parseLeaf(bytes: Uint8Array): Leaf {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (all.length > MAX_BYTES) throw new MalformedEvidenceError(`a leaf of ${all.length} bytes exceeds ${MAX_BYTES}`);
  if (all[0] !== LEAF_VERSION) throw new MalformedEvidenceError(`no leaf of version ${LEAF_VERSION}`);
  let at = 1;
  const field = (what: string, length?: number): Buffer => {
    const from = at + LENGTH_BYTES;
    const found = from <= all.length ? all.readUInt16BE(at) : -1;
    at = from + found;
    if (found < 0 || at > all.length || (length !== undefined && found !== length))
      throw new MalformedEvidenceError(`a leaf ends in its ${what}, or that has another length`);
    return all.subarray(from, at);
  };
  const text = (what: string): string => {
    const found = field(what);
    const value = found.toString();
    if (!Buffer.from(value).equals(found)) throw new MalformedEvidenceError(`a leaf's ${what} is no UTF-8`);
    return value;
  };
  const number = (what: string): number => {
    const found = field(what, NUMBER_BYTES);
    const value = found.readUInt32BE(0) * 2 ** 32 + found.readUInt32BE(4);
    if (!Number.isSafeInteger(value)) throw new MalformedEvidenceError(`a leaf's ${what} exceeds 2^53-1`);
    return value;
  };
  const leaf: Leaf = {
    id: text('id'),
    stream: text('stream'),
    revision: number('revision'),
    type: text('type'),
    time: number('time'),
    data: field('data', HASH_BYTES),
    metadata: field('metadata', HASH_BYTES),
  };
  if (at !== all.length) throw new MalformedEvidenceError(`${all.length - at} bytes follow a leaf`);
  return leaf;
}

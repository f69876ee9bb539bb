/**
 * The bytes of a leaf, one an event (docs/evidence.md#leaves): a version, then seven fields, each after its length. A
 * leaf reveals its first five fields, and nothing of data and metadata, of which it has salted hashes.
 */
import { HASH_BYTES, MalformedEvidenceError } from './parsing.js';

const LEAF_VERSION = 1;

export interface Leaf {
  /** The event's id. */
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  /** The event's time, milliseconds since 1970, UTC. */
  readonly time: number;
  /** Salted digest of the event's data, as `metadata` is of its metadata (`eventLeaf.ts`). */
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

/** The form of a time, in which `0` stands for any digit. */
const FORM = '0000-00-00T00:00:00.000Z';
const DAY_LENGTH = 'yyyy-mm-dd'.length;
const [ZERO, NINE] = [0x30, 0x39];

/** The last parsed day: consecutive events are mostly of one day, and Node's own parser takes ten times as long. */
let day = '';
let dayStart = Number.NaN;

/** Milliseconds since 1970. @param at ISO 8601, UTC, milliseconds @throws MalformedEvidenceError for any other text */
export function timeOf(at: string): number {
  if (hasForm(at)) {
    if (!at.startsWith(day) || day === '')
      [day, dayStart] = [at.slice(0, DAY_LENGTH), startOf(at.slice(0, DAY_LENGTH))];
    const [h, m, s] = [two(at, 11), two(at, 14), two(at, 17)];
    const ms = digit(at, 20) * 100 + two(at, 21);
    if (h < 24 && m < 60 && s < 60 && dayStart >= 0) return dayStart + ((h * 60 + m) * 60 + s) * 1_000 + ms;
  }
  throw new MalformedEvidenceError(`${JSON.stringify(at.slice(0, 40))} is not a time as the service writes it`);
}

/** Whether a text has the form of a time. A regular expression takes five times as long. */
function hasForm(at: string): boolean {
  if (at.length !== FORM.length) return false;
  for (let index = 0; index < FORM.length; index++) {
    const [code, expected] = [at.charCodeAt(index), FORM.charCodeAt(index)];
    if (expected === ZERO ? code < ZERO || code > NINE : code !== expected) return false;
  }
  return true;
}

const digit = (at: string, index: number): number => at.charCodeAt(index) - ZERO;
const two = (at: string, index: number): number => digit(at, index) * 10 + digit(at, index + 1);

/** Start of a day in milliseconds since 1970; NaN for a day that no month has. */
function startOf(requested: string): number {
  const start = Date.parse(`${requested}T00:00:00.000Z`);
  return !Number.isNaN(start) && new Date(start).toISOString().startsWith(requested) ? start : Number.NaN;
}

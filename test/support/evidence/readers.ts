/** Readers of what others read, and the tiles that a tree must have: the service itself only writes these. */
import type { TlogProof } from '../../../src/ops/evidence/format/checkProof.js';
import type { Leaf } from '../../../src/ops/evidence/format/leaf.js';
import {
  fromDecimal,
  HASH_BYTES,
  hashFromBase64,
  MalformedEvidenceError,
} from '../../../src/ops/evidence/format/parsing.js';
import { parseNote } from '../../../src/ops/evidence/format/signedNote.js';
import { type HashTile, type Tile, TILE_WIDTH } from '../../../src/ops/evidence/format/tiles.js';

const LEAF_VERSION = 1;
const LENGTH_BYTES = 2;
const NUMBER_BYTES = 8;
const MAX_BYTES = 65_535;

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

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';
const INDEX = 'index ';
const MAX_HASHES = 63;

/**
 * Parses a proof and the form of its checkpoint; the proof and the checkpoint's signatures are still to be verified.
 * @throws MalformedEvidenceError
 */
export function parseTlogProof(text: string): TlogProof {
  const end = text.indexOf('\n\n');
  if (end < 0) throw new MalformedEvidenceError('a proof has an empty line before its checkpoint');
  const [first, ...lines] = text.slice(0, end).split('\n');
  if (first !== FIRST_LINE) throw new MalformedEvidenceError(`a proof starts with the line ${FIRST_LINE}`);
  const index = lines.shift();
  if (index?.startsWith(INDEX) !== true) throw new MalformedEvidenceError('a proof has a line with an index');
  if (lines.length > MAX_HASHES) throw new MalformedEvidenceError(`a proof has more than ${MAX_HASHES} hashes`);
  const checkpoint = text.slice(end + 2);
  parseNote(checkpoint);
  return {
    index: fromDecimal(index.slice(INDEX.length), "a proof's index"),
    inclusion: lines.map((line) => hashFromBase64(line, 'a hash of a proof')),
    checkpoint,
  };
}

/** The tiles, of all levels, that a tree gains or changes when it grows; partial ones with their width at size `to`. */
export function* tilesOfGrowth(from: number, to: number): Generator<HashTile, void> {
  for (let [level, was, is] = [0, from, to]; is > 0; level++) {
    yield* grown(level, was, is);
    [was, is] = [Math.floor(was / TILE_WIDTH), Math.floor(is / TILE_WIDTH)];
  }
}

/** The bundles of entries that the growth writes. */
export function* bundlesOfGrowth(from: number, to: number): Generator<Tile, void> {
  yield* grown('entries', from, to);
}

function* grown<L extends Tile['level']>(level: L, was: number, is: number): Generator<Tile & { level: L }, void> {
  if (is <= was) return;
  for (let index = Math.floor(was / TILE_WIDTH); index * TILE_WIDTH < is; index++)
    yield { level, index, width: Math.min(TILE_WIDTH, is - index * TILE_WIDTH) };
}

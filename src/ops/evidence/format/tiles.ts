/**
 * The tiles of a tree (c2sp.org/tlog-tiles): each holds 256 hashes of neighbouring nodes, and a level of tiles covers
 * eight levels of the tree. Bundles of the log's entries have the indexes and widths of the tiles of level 0.
 */
import { MalformedEvidenceError } from './errors.js';
import { hashPerfect } from './merkleTree.js';
import { fromDecimal, HASH_BYTES } from './strictText.js';
import type { HashReader, TreeNode } from './treeProofs.js';

const TILE_HEIGHT = 8;
export const TILE_WIDTH = 256;
const MAX_LEVEL = 63;

export interface Tile {
  /** Level of the tile; tiles of level 0 hold the leaves' hashes. */
  readonly level: number | 'entries';
  readonly index: number;
  /** Number of hashes or entries in the tile: 256 in a full one, at least 1. */
  readonly width: number;
}

export interface HashTile extends Tile {
  readonly level: number;
}

/** The relative path of a tile, for example `tile/0/x001/x234/067.p/8`. */
export function tilePath({ level, index, width }: Tile): string {
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/\d{3}/g) as string[];
  const last = groups.pop() as string;
  const folders = groups.map((group) => `x${group}/`).join('');
  return `tile/${level}/${folders}${last}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

/** @throws MalformedEvidenceError also for any other path of a tile than the one of `tilePath` */
export function parseTilePath(path: string): Tile {
  const found = /^tile\/(entries|\d{1,2})\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/(\d{1,3}))?$/.exec(path);
  if (found === null) throw new MalformedEvidenceError('a tile is named as tile/0/x001/234 or tile/0/x001/234.p/8');
  const [, level, index, width] = found as unknown as [string, string, string, string | undefined];
  const digits = index.replaceAll(/\D/g, '').replace(/^0+(?=\d)/, '');
  const tile: Tile = {
    level: level === 'entries' ? level : fromDecimal(level, "a tile's level"),
    index: fromDecimal(digits, "a tile's index"),
    width: width === undefined ? TILE_WIDTH : fromDecimal(width, "a tile's width"),
  };
  if (tile.level !== 'entries' && tile.level > MAX_LEVEL)
    throw new MalformedEvidenceError(`a tile's level is ${MAX_LEVEL} at most`);
  if (width !== undefined && (tile.width < 1 || tile.width >= TILE_WIDTH))
    throw new MalformedEvidenceError("a partial tile's width is 1 to 255");
  if (tilePath(tile) !== path)
    throw new MalformedEvidenceError("a tile's index has groups of three digits, none for 0");
  return tile;
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

/** The width of a tile in a tree of this size; 0: the tree has no such tile. */
export function tileWidthAt(size: number, level: number, index: number): number {
  const hashes = Math.floor(size / TILE_WIDTH ** level);
  return Math.max(0, Math.min(TILE_WIDTH, hashes - index * TILE_WIDTH));
}

/** Reads a tile's hashes, concatenated. */
export type TileReader = (tile: HashTile) => Promise<Uint8Array>;

/**
 * Reads nodes from the tiles of a tree of this size, each tile once a call. Hashes in tiles are not checked, so proofs
 * made of them must be verified.
 * @throws MalformedEvidenceError for a tile of another length; RangeError for a node that the tree lacks
 */
export function tileHashReader(readTile: TileReader, size: number): HashReader {
  return async (nodes) => {
    const places = nodes.map((node) => placeOf(node, size));
    const tiles = new Map<string, Promise<Uint8Array>>();
    for (const { tile } of places) {
      const path = tilePath(tile);
      if (!tiles.has(path)) tiles.set(path, wholeTile(readTile, tile));
    }
    const read = new Map(await Promise.all(Array.from(tiles, async ([path, tile]) => [path, await tile] as const)));
    return places.map(({ tile, from, to }) =>
      hashPerfect((read.get(tilePath(tile)) as Uint8Array).subarray(from * HASH_BYTES, to * HASH_BYTES)),
    );
  };
}

async function wholeTile(readTile: TileReader, tile: HashTile): Promise<Uint8Array> {
  const hashes = await readTile(tile);
  if (hashes.length === tile.width * HASH_BYTES) return hashes;
  throw new MalformedEvidenceError(`${tilePath(tile)} has ${hashes.length} bytes, not ${tile.width * HASH_BYTES}`);
}

function placeOf({ height, index }: TreeNode, size: number): { tile: HashTile; from: number; to: number } {
  const level = Math.floor(height / TILE_HEIGHT);
  const hashes = 2 ** (height % TILE_HEIGHT);
  const first = index * hashes;
  const tile = Math.floor(first / TILE_WIDTH);
  const from = first - tile * TILE_WIDTH;
  const width = tileWidthAt(size, level, tile);
  if (from + hashes > width) throw new RangeError(`a tree of size ${size} has no node ${index} of height ${height}`);
  return { tile: { level, index: tile, width }, from, to: from + hashes };
}

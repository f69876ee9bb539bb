/**
 * The tiles of a tree (c2sp.org/tlog-tiles): each holds 256 hashes of neighbouring nodes, and a level of tiles covers
 * eight levels of the tree. Bundles of the log's entries have the indexes and widths of the tiles of level 0.
 */
import { EMPTY_ROOT, hashChildren, hashPerfect, type HashReader, rootAt, type TreeNode } from './merkleTree.js';
import { fromDecimal, HASH_BYTES, MalformedEvidenceError, noneIfMalformed, unlessMalformed } from './parsing.js';

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

/** The tile at a path; `undefined`: it is the path of no tile. */
export function tileAt(path: string): Tile | undefined {
  return unlessMalformed(() => parseTilePath(path));
}

/** The width of a tile in a tree of this size; 0: the tree has no such tile. */
export function tileWidthAt(size: number, level: number, index: number): number {
  const hashes = Math.floor(size / TILE_WIDTH ** level);
  return Math.max(0, Math.min(TILE_WIDTH, hashes - index * TILE_WIDTH));
}

/** Reads a tile's hashes, concatenated. */
type TileReader = (tile: HashTile) => Promise<Uint8Array>;

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

/**
 * Root of the tree of this size, from the tiles at its right edge; `undefined` where one is missing or truncated.
 * @param readTile `undefined`: the tile is missing
 */
export async function rootOfTiles(
  readTile: (tile: HashTile) => Promise<Uint8Array | undefined>,
  size: number,
): Promise<Buffer | undefined> {
  return rootAt(
    tileHashReader(async (tile) => (await readTile(tile)) ?? Buffer.alloc(0), size),
    size,
  ).catch(noneIfMalformed);
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

/** Called with each full tile, lowest level first, before `append` returns. The callee may keep the buffer. */
type OnTile = (tile: HashTile, hashes: Buffer) => void;

/** The right edge from which a tree is continued: its size and its `partialTiles`, in any order. */
export interface TreeEdge {
  readonly size: number;
  readonly tiles: readonly { readonly tile: HashTile; readonly hashes: Uint8Array }[];
}

/**
 * A tree to which leaves are appended. Only its right edge is in memory, one partial tile a level: at most 8 KiB a
 * level, whatever its size.
 */
export class TreeBuilder {
  readonly #onTile: OnTile;
  /** The tile of each level that is not yet full, with its hashes. */
  readonly #edge: { index: number; width: number; hashes: Buffer }[] = [];
  #size = 0;

  /** @throws RangeError where `edge` lacks a partial tile of its size, or has one of another length */
  constructor(onTile: OnTile = () => undefined, edge?: TreeEdge) {
    this.#onTile = onTile;
    if (edge === undefined) return;
    this.#size = edge.size;
    for (let [level, hashes] = [0, edge.size]; hashes > 0; level++, hashes = Math.floor(hashes / TILE_WIDTH))
      this.#edge.push(edgeTile(edge, level, Math.floor(hashes / TILE_WIDTH)));
  }

  get size(): number {
    return this.#size;
  }

  append(leafHash: Uint8Array): void {
    this.#add(0, leafHash);
    this.#size += 1;
  }

  #add(level: number, hash: Uint8Array): void {
    const tile = (this.#edge[level] ??= { index: 0, width: 0, hashes: Buffer.alloc(TILE_WIDTH * HASH_BYTES) });
    tile.hashes.set(hash, tile.width * HASH_BYTES);
    tile.width += 1;
    if (tile.width < TILE_WIDTH) return;
    const { index, hashes } = tile;
    this.#edge[level] = { index: index + 1, width: 0, hashes: Buffer.alloc(TILE_WIDTH * HASH_BYTES) };
    this.#onTile({ level, index, width: TILE_WIDTH }, hashes);
    this.#add(level + 1, hashPerfect(hashes));
  }

  /** Computes the root; each call takes about 255 hashes a level. */
  root(): Buffer {
    let root: Buffer | undefined;
    for (const { width, hashes } of this.#edge)
      for (let [left, nodes] = [width, 1]; left > 0; nodes *= 2) {
        if (left % (2 * nodes) === 0) continue;
        left -= nodes;
        const perfect = hashPerfect(hashes.subarray(left * HASH_BYTES, (left + nodes) * HASH_BYTES));
        root = root === undefined ? perfect : hashChildren(perfect, root);
      }
    return root ?? Buffer.from(EMPTY_ROOT);
  }

  /** The partial tiles of this size, copied, lowest level first; levels whose tiles are all full have none. */
  partialTiles(): { readonly tile: HashTile; readonly hashes: Buffer }[] {
    return this.#edge.flatMap(({ index, width, hashes }, level) =>
      width === 0
        ? []
        : [{ tile: { level, index, width }, hashes: Buffer.from(hashes.subarray(0, width * HASH_BYTES)) }],
    );
  }
}

function edgeTile(
  { size, tiles }: TreeEdge,
  level: number,
  index: number,
): { index: number; width: number; hashes: Buffer } {
  const width = tileWidthAt(size, level, index);
  const hashes = Buffer.alloc(TILE_WIDTH * HASH_BYTES);
  if (width === 0) return { index, width, hashes };
  const found = tiles.find(({ tile }) => tile.level === level && tile.index === index && tile.width === width);
  if (found?.hashes.length !== width * HASH_BYTES)
    throw new RangeError(`a tree of size ${size} is continued with tile ${index} of level ${level}, ${width} wide`);
  hashes.set(found.hashes);
  return { index, width, hashes };
}

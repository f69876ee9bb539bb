import { EMPTY_ROOT, hashChildren, hashPerfect } from './merkleTree.js';
import { HASH_BYTES } from './strictText.js';
import { type HashTile, TILE_WIDTH, tileWidthAt } from './tiles.js';

/** Called with each full tile, lowest level first, before `append` returns. The callee may keep the buffer. */
export type OnTile = (tile: HashTile, hashes: Buffer) => void;

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

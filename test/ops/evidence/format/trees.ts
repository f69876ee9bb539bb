import {
  EMPTY_ROOT,
  hashChildren,
  hashLeaf,
  type HashReader,
  type TreeNode,
} from '../../../../src/ops/evidence/format/merkleTree.js';
import { tileHashReader, tilePath, TreeBuilder } from '../../../../src/ops/evidence/format/tiles.js';

export const leafHashes = (count: number): Buffer[] =>
  Array.from({ length: count }, (_, at) => hashLeaf(Buffer.from(`leaf ${at}`)));

/** RFC 9162, section 2.1.1, as it is defined. */
export function simpleRoot(leaves: readonly Buffer[]): Buffer {
  if (leaves.length <= 1) return leaves[0] ?? Buffer.from(EMPTY_ROOT);
  let left = 1;
  while (left * 2 < leaves.length) left *= 2;
  return hashChildren(simpleRoot(leaves.slice(0, left)), simpleRoot(leaves.slice(left)));
}

export interface TiledTree {
  /** Every tile that was ever partial or full, by its path. */
  readonly tiles: ReadonlyMap<string, Buffer>;
  readAt(size: number): HashReader;
}

/** A tree with the tiles of each of its sizes. */
export function tiledTree(leaves: readonly Buffer[]): TiledTree {
  const tiles = new Map<string, Buffer>();
  const tree = new TreeBuilder((tile, hashes) => void tiles.set(tilePath(tile), hashes));
  for (const leaf of leaves) {
    tree.append(leaf);
    for (const { tile, hashes } of tree.partialTiles()) tiles.set(tilePath(tile), hashes);
  }
  return {
    tiles,
    readAt: (size) => tileHashReader(async (tile) => tiles.get(tilePath(tile)) ?? Buffer.alloc(0), size),
  };
}

/** A `tiledTree` that makes no node twice, for tests of all sizes. */
export function rememberedTree(leaves: readonly Buffer[]): Pick<TiledTree, 'readAt'> {
  const tree = tiledTree(leaves);
  const known = new Map<string, Uint8Array>();
  return {
    readAt: (size) => async (nodes) => {
      const name = ({ height, index }: TreeNode): string => `${height}/${index}`;
      const wanted = nodes.filter((node) => !known.has(name(node)));
      for (const [at, hash] of (await tree.readAt(size)(wanted)).entries())
        known.set(name(wanted[at] as TreeNode), hash);
      return nodes.map((node) => known.get(name(node)) as Uint8Array);
    },
  };
}

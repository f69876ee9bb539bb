import { HASH_BYTES } from '../format/strictText.js';
import { TILE_WIDTH } from '../format/tiles.js';
import type { TileFolder } from '../tree/tileFolder.js';

/** Hashes of leaves as tiles hold them, in order. */
export interface KeptLeaves {
  /**
   * Hash of the leaf at `index`, for ascending indexes; `undefined` where no tile has it.
   * @throws the file system's errors
   */
  at(index: number): Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

/** @param size number of leaves in the tree whose tiles these are */
export function keptLeaves(folder: Pick<TileFolder, 'read'>, size: number): KeptLeaves {
  let tile: { readonly index: number; readonly hashes: Buffer | undefined } | undefined;
  const hashAt = (hashes: Buffer | undefined, at: number): Uint8Array | undefined =>
    hashes?.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES);

  /**
   * The next full tile, which is read while the current one is compared. Full tiles may exist before a head covers
   * them.
   */
  let ahead: { readonly index: number; readonly read: Promise<Buffer | undefined> } | undefined;
  async function full(index: number): Promise<Buffer | undefined> {
    const found = ahead?.index === index ? ahead.read : folder.read({ level: 0, index, width: TILE_WIDTH });
    const next = folder.read({ level: 0, index: index + 1, width: TILE_WIDTH });
    // The next tile may never be requested, so its failure must not count as an unhandled rejection.
    next.catch(() => undefined);
    ahead = { index: index + 1, read: next };
    return found;
  }

  async function read(index: number, at: number): Promise<Uint8Array | undefined> {
    const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH);
    const hashes = (await full(index)) ?? (width > 0 ? await folder.read({ level: 0, index, width }) : undefined);
    tile = { index, hashes };
    return at * HASH_BYTES < (hashes?.length ?? 0) ? hashAt(hashes, at) : undefined;
  }

  return {
    at(index) {
      const [number, at] = [Math.floor(index / TILE_WIDTH), index % TILE_WIDTH];
      if (tile?.index !== number) return read(number, at);
      return at * HASH_BYTES < (tile.hashes?.length ?? 0) ? hashAt(tile.hashes, at) : undefined;
    },
  };
}

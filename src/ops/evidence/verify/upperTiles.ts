/**
 * Compares what SEAL_DIR stores above and beside the leaves' hashes with a log: the tiles of higher levels, and the
 * positions of its events. Proofs and bundles of leaves rest on both.
 */
import type { Position } from '../../../ports/eventStore.js';
import type { TreeHead } from '../format/merkleTree.js';
import { type HashTile, rootOfTiles, TILE_WIDTH } from '../format/tiles.js';
import type { TileFolder } from '../tree/tileFolder.js';

export class UpperTiles {
  readonly #folder: Pick<TileFolder, 'lastPosition' | 'read'>;
  readonly #tiles: { readonly tile: HashTile; readonly hashes: Buffer }[] = [];
  readonly #ends: { readonly index: number; readonly position: Position }[] = [];
  /** Least number of events within which something differs. */
  #differing = Number.POSITIVE_INFINITY;

  constructor(folder: Pick<TileFolder, 'lastPosition' | 'read'>) {
    this.#folder = folder;
  }

  get differs(): boolean {
    return Number.isFinite(this.#differing);
  }

  /** Takes a tile of the log's tree that has become full. */
  takeTile(tile: HashTile, hashes: Buffer): void {
    if (tile.level > 0) this.#tiles.push({ tile, hashes });
  }

  /** Takes the position of the log's event with this number, from 1. */
  takePosition(number: number, position: Position): void {
    if (number % TILE_WIDTH === 0) this.#ends.push({ index: number / TILE_WIDTH - 1, position });
  }

  /** Compares what was taken since the last call. What the folder lacks does not differ. @throws the file system's errors */
  async settle(): Promise<void> {
    for (const { tile, hashes } of this.#tiles.splice(0))
      if ((await this.#folder.read(tile))?.equals(hashes) === false)
        this.#note((tile.index + 1) * TILE_WIDTH ** (tile.level + 1));
    for (const { index, position } of this.#ends.splice(0))
      if (((await this.#folder.lastPosition(index)) ?? position) !== position) this.#note((index + 1) * TILE_WIDTH);
  }

  #note(events: number): void {
    this.#differing = Math.min(this.#differing, events);
  }

  /**
   * Whether the folder is wrong, and not the log.
   * @param agreed number of events of which the log is what was signed
   * @param published the head of the partial tiles
   */
  async areSpoilt(agreed: number, published: TreeHead | undefined): Promise<boolean> {
    await this.settle();
    if (this.#differing <= agreed) return true;
    if (published === undefined || published.size > agreed) return false;
    return (await rootOfTiles(this.#folder.read, published.size))?.equals(published.root) === false;
  }
}

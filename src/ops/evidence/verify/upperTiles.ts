/**
 * Compares what SEAL_DIR stores above and beside the leaves' hashes with a log: the tiles of higher levels, and the
 * positions of its events. Proofs and bundles of leaves rest on both.
 */
import type { Position } from '../../../ports/eventStore.js';
import type { TreeHead } from '../format/merkleTree.js';
import { type HashTile, rootOfTiles, TILE_WIDTH } from '../format/tiles.js';
import type { TileFolder } from '../tree/tileFolder.js';

const ENDS_AT_ONCE = 256;

export class UpperTiles {
  readonly #folder: Pick<TileFolder, 'lastPositions' | 'read'>;
  readonly #tiles: { readonly tile: HashTile; readonly hashes: Buffer }[] = [];
  /** Positions of the last events of full tiles of leaves, from the one at `#firstEnd` on. */
  #ends: Position[] = [];
  #firstEnd = 0;
  /** Least number of events within which something differs. */
  #differing = Number.POSITIVE_INFINITY;

  constructor(folder: Pick<TileFolder, 'lastPositions' | 'read'>) {
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
    if (number % TILE_WIDTH !== 0) return;
    if (this.#ends.length === 0) this.#firstEnd = number / TILE_WIDTH - 1;
    this.#ends.push(position);
  }

  /** Whether enough was taken for a comparison, each of which opens a file. */
  get due(): boolean {
    return this.#ends.length >= ENDS_AT_ONCE;
  }

  /**
   * Compares what was taken since the last call. What the folder lacks does not differ.
   * @throws the file system's errors
   */
  async settle(): Promise<void> {
    for (const { tile, hashes } of this.#tiles.splice(0))
      if ((await this.#folder.read(tile))?.equals(hashes) === false)
        this.#note((tile.index + 1) * TILE_WIDTH ** (tile.level + 1));
    const [ends, first] = [this.#ends, this.#firstEnd];
    this.#ends = [];
    if (ends.length === 0) return;
    const stored = await this.#folder.lastPositions(first, ends.length);
    const differing = stored.findIndex((position, at) => position !== ends[at]);
    if (differing >= 0) this.#note((first + differing + 1) * TILE_WIDTH);
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

/** Compares the leaves of a log with those that tiles hold, up to a window behind the first that differs. */
import { HASH_BYTES } from '../format/parsing.js';
import { TILE_WIDTH } from '../format/tiles.js';
import type { TileFolder } from '../tree/tileFolder.js';
import { type Change, type EventLocation, type PlacedEvent, locationOf } from './verification.js';

export interface Differing extends Change {
  /** Number of the event in the log's order, from 1. */
  readonly number: number;
  /** Event that has this number now; null where the log has ended. */
  readonly event: EventLocation | null;
  readonly before: EventLocation | null;
}

export class TileComparison {
  readonly #tiles: StoredLeaves;
  #first: Omit<Differing, keyof Change> | undefined;
  readonly #now: Uint8Array[] = [];
  readonly #then: Uint8Array[] = [];

  constructor(tiles: StoredLeaves) {
    this.#tiles = tiles;
  }

  /** Whether a leaf has differed. */
  get differs(): boolean {
    return this.#first !== undefined;
  }

  /**
   * Compares the leaf of the next event.
   * @param number the event's number in the log's order, from 1
   */
  compare(leaf: Uint8Array, number: number, event: PlacedEvent, before: PlacedEvent | null): void | Promise<void> {
    if (this.#now.length === WINDOW) return undefined;
    const stored = this.#tiles.at(number - 1);
    if (stored instanceof Promise) return stored.then((one) => this.#take(leaf, one, number, event, before));
    return this.#take(leaf, stored, number, event, before);
  }

  #take(
    leaf: Uint8Array,
    stored: Uint8Array | undefined,
    number: number,
    event: PlacedEvent,
    before: PlacedEvent | null,
  ): void {
    if (this.#first === undefined) {
      if (stored === undefined || Buffer.compare(leaf, stored) === 0) return;
      this.#first = {
        number,
        event: locationOf(event, number),
        before: before === null ? null : locationOf(before, number - 1),
      };
    }
    this.#now.push(leaf);
    if (stored !== undefined) this.#then.push(Buffer.from(stored));
  }

  /**
   * Ends the comparison at the end of the log.
   * @param last the last event of the log
   */
  async finish(last: EventLocation | null): Promise<Differing | undefined> {
    for (let index = last?.number ?? 0; this.#then.length < WINDOW; index++) {
      if (this.#now.length === WINDOW) break;
      const stored = await this.#tiles.at(index);
      if (stored === undefined) break;
      this.#first ??= { number: index + 1, event: null, before: last };
      this.#then.push(Buffer.from(stored));
    }
    return this.#first === undefined ? undefined : { ...this.#first, ...changeBetween(this.#now, this.#then) };
  }
}

/** Number of leaves that are compared, from the first that differs on. */
const WINDOW = 1_024;

/**
 * Classifies the difference between a log and the leaves that were retained of it.
 * @param now leaves of the log as it is, from the first that differs on: `WINDOW` of them, or up to the log's end
 * @param then leaves of the log as it was, from the same index on; at least one
 */
function changeBetween(now: readonly Uint8Array[], then: readonly Uint8Array[]): Change {
  // No two events have the same leaf.
  const same = (a: number, b: number): boolean => {
    const [one, other] = [now[a], then[b]];
    return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0;
  };
  if (now.length === 0) return { change: 'cut off', count: then.length };
  const most = Math.max(now.length, then.length);
  const first = (holds: (by: number) => boolean): number | undefined => {
    for (let by = 1; by < most; by++) if (holds(by)) return by;
    return undefined;
  };
  const removed = first((by) => same(0, by));
  if (removed !== undefined) return { change: same(removed, 0) ? 'exchanged' : 'removed', count: removed };
  const inserted = first((by) => same(by, 0));
  if (inserted !== undefined) return { change: 'inserted', count: inserted };
  return { change: 'altered', count: first((by) => same(by, by)) ?? Math.min(now.length, then.length) };
}

/** Hashes of leaves as tiles hold them, in order. */
interface StoredLeaves {
  /**
   * Hash of the leaf at `index`, for ascending indexes; `undefined` where no tile has it.
   * @throws the file system's errors
   */
  at(index: number): Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

/** @param size number of leaves in the tree whose tiles these are */
export function storedLeaves(folder: Pick<TileFolder, 'read'>, size: number): StoredLeaves {
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

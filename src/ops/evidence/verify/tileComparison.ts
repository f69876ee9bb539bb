/** Compares the leaves of a log with those that tiles hold, up to a window behind the first that differs. */
import { changeBetween, type Change, WINDOW } from './difference.js';
import type { KeptLeaves } from './keptLeaves.js';
import { type EventPlace, type PlacedEvent, placeOf } from './verification.js';

export interface Differing extends Change {
  /** Number of the event in the log's order, from 1. */
  readonly number: number;
  /** Event that has this number now; null where the log has ended. */
  readonly event: EventPlace | null;
  readonly before: EventPlace | null;
}

export class TileComparison {
  readonly #tiles: KeptLeaves;
  #first: Omit<Differing, keyof Change> | undefined;
  readonly #now: Uint8Array[] = [];
  readonly #then: Uint8Array[] = [];

  constructor(tiles: KeptLeaves) {
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
    const kept = this.#tiles.at(number - 1);
    if (kept instanceof Promise) return kept.then((one) => this.#take(leaf, one, number, event, before));
    return this.#take(leaf, kept, number, event, before);
  }

  #take(
    leaf: Uint8Array,
    kept: Uint8Array | undefined,
    number: number,
    event: PlacedEvent,
    before: PlacedEvent | null,
  ): void {
    if (this.#first === undefined) {
      if (kept === undefined || Buffer.compare(leaf, kept) === 0) return;
      this.#first = {
        number,
        event: placeOf(event, number),
        before: before === null ? null : placeOf(before, number - 1),
      };
    }
    this.#now.push(leaf);
    if (kept !== undefined) this.#then.push(Buffer.from(kept));
  }

  /**
   * Ends the comparison at the end of the log.
   * @param last the last event of the log
   */
  async finish(last: EventPlace | null): Promise<Differing | undefined> {
    for (let index = last?.number ?? 0; this.#then.length < WINDOW; index++) {
      if (this.#now.length === WINDOW) break;
      const kept = await this.#tiles.at(index);
      if (kept === undefined) break;
      this.#first ??= { number: index + 1, event: null, before: last };
      this.#then.push(Buffer.from(kept));
    }
    return this.#first === undefined ? undefined : { ...this.#first, ...changeBetween(this.#now, this.#then) };
  }
}

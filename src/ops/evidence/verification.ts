/** What a verification of a log comes to. */
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import type { Change } from './difference.js';

export type PlacedEvent = Pick<RecordedEvent, 'stream' | 'revision' | 'type' | 'id' | 'at' | 'position'>;

export interface EventPlace extends PlacedEvent {
  /** In the log's order, from 1. */
  readonly number: number;
}

/** @param number in the log's order, from 1 */
export function placeOf({ stream, revision, type, id, at, position }: PlacedEvent, number: number): EventPlace {
  return { number, stream, revision, type, id, at, position };
}

export interface FirstDifference {
  /** `unknown`: no tile tells. `start missing`: the event `TreeStarted`, without which no leaf can be computed. */
  readonly change: Change['change'] | 'unknown' | 'start missing';
  /** See `Change`; of `unknown`, among how many events it lies. */
  readonly count: number;
  readonly number: number;
  /** What stands there now; null: nothing, or unknown. */
  readonly event: EventPlace | null;
  /** null: it is the log's first, or unknown. */
  readonly before: EventPlace | null;
  /** False: no signed head covers it, the tile alone says so. */
  readonly signed: boolean;
}

export interface WrongHead {
  readonly from: string;
  readonly size: number;
  readonly why: string;
}

/** Events are missing before `event`. */
export interface Gap {
  readonly after: Position | null;
  readonly event: EventPlace;
}

/** An event that is not the next one of its stream: some before it are missing, or stand elsewhere. */
export interface StreamGap {
  readonly event: EventPlace;
}

/** Has no number in the log's order. */
export interface Stray {
  readonly event: PlacedEvent;
}

/** The first ones; `found` counts all. */
export interface Findings<T> {
  readonly found: number;
  readonly first: readonly T[];
}

export interface Verification {
  readonly agrees: boolean;
  readonly events: number;
  /** So many of these were read by an earlier call alone. */
  readonly continued_from: number;
  readonly position: Position | null;
  /** Of the whole log as it is, base64. */
  readonly root: string;
  readonly heads: number;
  /** That the log agrees with, and a known key signed; all are none where no key is known. */
  readonly verified_heads: number;
  /** That the log agrees with, and none of the known keys signed, as before a change of the key. */
  readonly unverified_heads: number;
  /** Of the last head that the log agrees with. */
  readonly agreed_size: number;
  readonly difference: FirstDifference | null;
  readonly wrong_heads: Findings<WrongHead>;
  /** Of positions, where the engine's have none. */
  readonly gaps: Findings<Gap>;
  /** Of revisions. */
  readonly stream_gaps: Findings<StreamGap>;
  /** Events that were inserted where the engine has no position: only this verification reads them. */
  readonly strays: Findings<Stray>;
  /** Tiles are not those that were signed. */
  readonly spoilt_tiles: boolean;
}

/** Of each kind of finding. */
export const NAMED = 10;

export class FindingsList<T> implements Findings<T> {
  readonly first: T[] = [];
  found = 0;

  add(one: T): void {
    this.found += 1;
    if (this.first.length < NAMED) this.first.push(one);
  }

  findings(): Findings<T> {
    return { found: this.found, first: this.first };
  }

  addAll({ found, first }: Findings<T>): void {
    for (const one of first) this.add(one);
    this.found += found - first.length;
  }
}

/** Result of a verification of a log. */
import { shownStream } from '../../../domain/streamName.js';
import { MASK } from '../../../lib/mask.js';
import type { Position, RecordedEvent } from '../../../ports/eventStore.js';
import type { OtherSignedLog } from '../heads/otherLogs.js';

export type PlacedEvent = Pick<RecordedEvent, 'stream' | 'revision' | 'type' | 'id' | 'at' | 'position'>;

export interface EventLocation extends PlacedEvent {
  /** Number of the event in the log's order, from 1. */
  readonly number: number;
}

/**
 * An event for the verification's reader: keyed hashes in the name of its stream are masked.
 * @param number the event's number in the log's order, from 1
 */
export function locationOf({ stream, revision, type, id, at, position }: PlacedEvent, number: number): EventLocation {
  return { number, stream: shownStream(stream, MASK), revision, type, id, at, position };
}

export interface Change {
  /** Kind of the change. `altered` includes the case that no later event is as it was. */
  readonly change: 'altered' | 'removed' | 'inserted' | 'exchanged' | 'cut off';
  /** Number of changed events; for `exchanged`, the distance between the two events. */
  readonly count: number;
}

export interface FirstDifference {
  /**
   * Kind of the difference. `unknown`: no tile tells it. `start missing`: the event `TreeStarted` is missing, without
   * which no leaf can be computed.
   */
  readonly change: Change['change'] | 'unknown' | 'start missing';
  /** Number of events, as in `Change`; for `unknown`, the number of events among which the difference lies. */
  readonly count: number;
  readonly number: number;
  /** Event that has this number now; null where there is none, or it is unknown. */
  readonly event: EventLocation | null;
  /** Event before the difference; null where the difference is at the log's start, or unknown. */
  readonly before: EventLocation | null;
  /** False where no signed head covers the difference, and only a tile shows it. */
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
  readonly event: EventLocation;
}

/**
 * An event that is not the next one of its stream: earlier events of the stream are missing, or are elsewhere in the
 * log.
 */
export interface StreamGap {
  readonly event: EventLocation;
}

/** An inserted event, which has no number in the log's order. */
export interface Unsequenced {
  readonly event: PlacedEvent;
}

/** The first findings of a kind; `found` counts all. */
export interface Findings<T> {
  readonly found: number;
  readonly first: readonly T[];
}

export interface Verification {
  readonly agrees: boolean;
  readonly events: number;
  /** Number of these events that only an earlier call read. */
  readonly continued_from: number;
  readonly position: Position | null;
  /** Root of the tree over the whole log as it is, in base64. */
  readonly root: string;
  readonly heads: number;
  /** Number of heads that the log agrees with and a known key signed; 0 where no key is known. */
  readonly verified_heads: number;
  /** Number of heads that the log agrees with and none of the known keys signed, as before a change of the key. */
  readonly unverified_heads: number;
  /** Size of the last head that the log agrees with. */
  readonly agreed_size: number;
  readonly difference: FirstDifference | null;
  readonly wrong_heads: Findings<WrongHead>;
  /** Gaps in positions, for engines whose positions have none. */
  readonly gaps: Findings<Gap>;
  /** Gaps in the revisions of streams. */
  readonly stream_gaps: Findings<StreamGap>;
  /** Events that were inserted where the engine has no position: only this verification reads them. */
  readonly unsequenced: Findings<Unsequenced>;
  /** Whether stored tiles, or the positions stored with them, are not those that were signed. */
  readonly spoilt_tiles: boolean;
}

/** A verification with all that is known of the log's heads. */
export interface LogVerification extends Verification {
  /** True only where a signature vouches for the log: heads without a verified signature may be forged. */
  readonly agrees: boolean;
  /** Time when the earlier call was interrupted that this one continues; null: this call has read the whole log. */
  readonly continued_at: string | null;
  /** Logs whose heads SEAL_DIR holds, and which this log does not continue. */
  readonly other_logs: readonly OtherSignedLog[];
}

/** Most findings of each kind that are listed. */
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

/** What is open, as those who do it see it. */
import type { ParkedName } from '../../domain/parked.js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import type { Intent } from '../managers.js';
import type { LateMoneyWork } from '../dispute/manager.js';
import type { NotificationWork } from '../notification/manager.js';
import type { PurchaseWork } from '../purchase/manager.js';
import type { RefundWork } from '../refund/manager.js';
import type { Retelling } from '../notification/resends.js';
import type { Cause } from './cause.js';

/** A purchase that was retried and is not open again yet. */
export interface Reopening {
  /** The event that retries it. */
  readonly cause: Cause;
  readonly step: string;
}

/** The open work. */
export interface OpenWork {
  /** Takes one event in, in log order. @returns what it asks for. */
  apply(event: RecordedEvent): readonly Intent[];
  /** How far the feed has been looked at. */
  lookedAt(position: Position): void;
  /** What to do for everything that is open, for who takes it up anew. */
  resume(): Iterable<Intent>;
  purchase(transactionId: string): PurchaseWork | undefined;
  notification(giftId: string): NotificationWork | undefined;
  refund(refundId: string): RefundWork | undefined;
  /** The stream says that this refund is over: of one that was retried after its end no further event tells so. */
  refundDone(refundId: string): void;
  /**
   * A refund that names the gift was asked for and has not decided yet whether it cancels it: nobody is to be told of
   * it now.
   */
  beingRefunded(giftId: string): boolean;
  lateMoney(transactionId: string): LateMoneyWork | undefined;
  /** The stream says that this step of late money is done. */
  lateMoneyDone(transactionId: string, key: string): void;
  /** A gift whose receiver is to be told otherwise than for the first time. */
  retelling(giftId: string): Retelling | undefined;
  /** Nothing is left to tell of a gift, as its streams stood when its retelling was of this generation. */
  retold(giftId: string, generation: number): void;
  /** A purchase that waits for `reopen`. */
  reopening(transactionId: string): Reopening | undefined;
  /**
   * Its history is about to be read: from now on its events are kept. @returns the position up to which the history is
   * wanted.
   */
  beginReopen(transactionId: string): Position | undefined;
  /** Opens it again from its history. @returns what to do for it, as it stands. */
  reopen(transactionId: string, history: readonly RecordedEvent[]): readonly Intent[];
  /** How often what is being retried has been parked in a row. */
  timesParked(name: ParkedName, entity: string): number;
  /** The highest position with nothing unfinished at or below it; `undefined` at the log's beginning. */
  checkpoint(): Position | undefined;
  /** How much is open: purchases, refunds, transactions with late money, and gifts to be told of again. */
  readonly size: number;
  /** How far the feed has been looked at; `undefined` at the log's beginning. */
  readonly position: Position | undefined;
  /** The time of the event that opened what has been open for longest: ISO 8601; `undefined` where nothing is open. */
  readonly oldestAt: string | undefined;
}

/**
 * All that is open, folded from the feed: the state of all process managers. Purely in memory; it holds only what has something left to do,
 * so it stays small however long the log is.
 */
import type { GiftCancelled, GiftIssued } from '../domain/gift.js';
import type { NotificationEvent, NotificationUndelivered } from '../domain/notification.js';
import type { WorkParked } from '../domain/parked.js';
import type { LateMoneyEvent } from '../domain/lateMoney.js';
import type { PurchaseEvent } from '../domain/purchase.js';
import type { RefundEvent } from '../domain/refund.js';
import type { Position, RecordedEvent } from '../ports/eventStore.js';
import { type NotificationIntent, type NotificationWork, reactToNotification, resumeNotification } from './notification.js';
import { type PurchaseIntent, type PurchaseTrigger, type PurchaseWork, reactToPurchase, resumePurchase } from './purchase.js';
import { LATE_MONEY_STEPS, type LateMoneyIntent, type LateMoneyReaction, type LateMoneyWork, overLateMoney, reactToLateMoney, resumeLateMoney } from './lateMoney.js';
import { reactToRefund, type RefundIntent, type RefundWork } from './refund.js';
import { seenOf } from './seen.js';

/** The event types that it folds. */
export const FEED_TYPES = [
  'GiftsPurchased',
  'ChargeStarted',
  'PaymentCharged',
  'PaymentDeclined',
  'RefundRequested',
  'RefundStarted',
  'GiftsRefunded',
  'RefundRefused',
  'NothingRefunded',
  'GiftIssued',
  'GiftCancelled',
  'NotificationStarted',
  'NotificationSent',
  'NotificationFailed',
  'WorkParked',
  'PaymentAuthenticationRequired',
  'PaymentAuthenticationFailed',
  'RefundedAtProvider',
  'ProviderRefundSettled',
  'DisputeOpened',
  'DisputeClosed',
  'DisputeSettled',
] as const satisfies readonly FeedEvent['type'][];

/** The events it folds. */
type FeedEvent = PurchaseEvent | GiftIssued | GiftCancelled | Exclude<NotificationEvent, NotificationUndelivered> | WorkParked;

/** What is to be done next. */
export type Intent = PurchaseIntent | NotificationIntent | RefundIntent | LateMoneyIntent;

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
  lateMoney(transactionId: string): LateMoneyWork | undefined;
  /** The stream says that this step of late money is done. */
  lateMoneyDone(transactionId: string, key: string): void;
  /** The highest position with nothing unfinished at or below it; `undefined` at the log's beginning. */
  checkpoint(): Position | undefined;
  /** How many purchases, refunds and transactions with late money are open. */
  readonly size: number;
  /** How far the feed has been looked at; `undefined` at the log's beginning. */
  readonly position: Position | undefined;
  /** The time of the first event of the purchase, refund or late money that has been open for longest: ISO 8601; `undefined` where none is open. */
  readonly oldestAt: string | undefined;
}

/** Open work, and the position that the feed stood at before its first event. */
interface Entry<W> {
  readonly before: Position | undefined;
  /** The time of its first event. */
  readonly at: string;
  work: W;
}

/** The lower of two positions; `undefined` is the log's beginning. */
const earlier = (one: Position | undefined, other: Position | undefined): Position | undefined => {
  if (one === undefined || other === undefined) return undefined;
  return one < other ? one : other;
};

const after = (stream: string, prefix: string): string => stream.slice(prefix.length);

/** Nothing open; the feed begins after `from`. */
export function openWork(from: Position | undefined): OpenWork {
  // In the order in which they were opened: the first is the one that holds the checkpoint back.
  const purchases = new Map<string, Entry<PurchaseWork>>();
  const refunds = new Map<string, Entry<RefundWork>>();
  const late = new Map<string, Entry<LateMoneyWork>>();
  const notifications = new Map<string, NotificationWork>();
  let position = from;

  const keep = <W>(entries: Map<string, Entry<W>>, id: string, work: W | undefined, at: string): void => {
    const entry = entries.get(id);
    if (work === undefined) entries.delete(id);
    else if (entry === undefined) entries.set(id, { before: position, at, work });
    else entry.work = work;
  };

  const move = (transactionId: string, event: RecordedEvent): readonly Intent[] => {
    const { work, intents } = reactToPurchase(purchases.get(transactionId)?.work, event as unknown as PurchaseTrigger, seenOf(event));
    keep(purchases, transactionId, work, event.at);
    return intents;
  };

  const moveLate = (transactionId: string, event: RecordedEvent): readonly Intent[] => {
    const trigger = event as unknown as LateMoneyEvent | WorkParked;
    const { work, intents }: LateMoneyReaction = reactToLateMoney(late.get(transactionId)?.work, trigger, transactionId, seenOf(event));
    keep(late, transactionId, work, event.at);
    return intents;
  };

  const moveRefund = (refundId: string, transactionId: string, event: RecordedEvent): readonly Intent[] => {
    const { work, intents } = reactToRefund(refunds.get(refundId)?.work, event as unknown as RefundEvent | WorkParked, refundId, transactionId, seenOf(event));
    keep(refunds, refundId, work, event.at);
    return intents;
  };

  /** The telling of one receiver has ended: its purchase counts it. */
  const end = (giftId: string, event: RecordedEvent): readonly Intent[] => {
    const work = notifications.get(giftId);
    if (work === undefined) return [];
    notifications.delete(giftId);
    return move(work.transactionId, event);
  };

  const parked = ({ entity, transaction_id, step }: WorkParked['data'], event: RecordedEvent): readonly Intent[] => {
    if (step === 'refund') return moveRefund(entity, transaction_id, event);
    if (LATE_MONEY_STEPS.has(step)) return moveLate(transaction_id, event);
    if (entity !== transaction_id) return end(entity, event);
    // With the purchase goes the telling of its receivers: it can't be done without it.
    for (const [giftId, work] of notifications) if (work.transactionId === transaction_id) notifications.delete(giftId);
    return move(transaction_id, event);
  };

  const react = (event: RecordedEvent): readonly Intent[] => {
    const known = event as unknown as FeedEvent;
    switch (known.type) {
      case 'GiftsPurchased':
      case 'ChargeStarted':
      case 'PaymentAuthenticationRequired':
      case 'PaymentAuthenticationFailed':
      case 'PaymentCharged':
      case 'PaymentDeclined':
        return move(after(event.stream, 'transaction-'), event);
      case 'RefundRequested':
      case 'RefundStarted':
      case 'GiftsRefunded':
      case 'RefundRefused':
      case 'NothingRefunded':
        return moveRefund(known.data.refund_id, after(event.stream, 'transaction-'), event);
      case 'GiftCancelled': {
        const giftId = after(event.stream, 'gift-');
        const work = notifications.get(giftId);
        if (work !== undefined) notifications.set(giftId, { ...work, cancelled: true });
        return [];
      }
      case 'GiftIssued': {
        if (!purchases.has(known.data.transaction_id)) return [];
        const giftId = after(event.stream, 'gift-');
        const { work, intents } = reactToNotification(undefined, known, giftId, seenOf(event));
        if (work !== undefined) notifications.set(giftId, work);
        move(known.data.transaction_id, event);
        return intents;
      }
      case 'NotificationStarted': {
        const giftId = after(event.stream, 'notification-');
        const { work } = reactToNotification(notifications.get(giftId), known, giftId, seenOf(event));
        if (work !== undefined) notifications.set(giftId, work);
        return [];
      }
      case 'NotificationSent':
      case 'NotificationFailed':
        return end(after(event.stream, 'notification-'), event);
      case 'WorkParked':
        return parked(known.data, event);
      case 'RefundedAtProvider':
      case 'ProviderRefundSettled':
      case 'DisputeOpened':
      case 'DisputeClosed':
      case 'DisputeSettled':
        return moveLate(after(event.stream, 'transaction-'), event);
      default:
        return known satisfies never, [];
    }
  };

  const oldestOfEach = (): readonly Entry<unknown>[] => [purchases, refunds, late].flatMap((entries: Map<string, Entry<unknown>>) => entries.values().next().value ?? []);

  return {
    apply(event) {
      const intents = react(event);
      position = event.position;
      return intents;
    },
    lookedAt(at) {
      position = at;
    },
    *resume() {
      for (const { work } of purchases.values()) yield* resumePurchase(work);
      for (const [giftId, work] of notifications) yield* resumeNotification(work, giftId);
      for (const refundId of refunds.keys()) yield { do: 'refund', refundId };
      for (const [transactionId, { work }] of late) yield* resumeLateMoney(work, transactionId);
    },
    purchase: (transactionId) => purchases.get(transactionId)?.work,
    notification: (giftId) => notifications.get(giftId),
    refund: (refundId) => refunds.get(refundId)?.work,
    lateMoney: (transactionId) => late.get(transactionId)?.work,
    lateMoneyDone(transactionId, key) {
      const entry = late.get(transactionId);
      if (entry !== undefined) keep(late, transactionId, overLateMoney(entry.work, key), entry.at);
    },
    checkpoint() {
      const oldest = oldestOfEach();
      return oldest.length === 0 ? position : oldest.map(({ before }) => before).reduce(earlier);
    },
    get size() {
      return purchases.size + refunds.size + late.size;
    },
    get position() {
      return position;
    },
    get oldestAt() {
      const oldest = oldestOfEach().map(({ at }) => at);
      return oldest.length === 0 ? undefined : oldest.reduce((one, other) => (one < other ? one : other));
    },
  };
}

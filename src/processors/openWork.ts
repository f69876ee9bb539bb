/**
 * All that is open, folded from the feed: the state of both process managers. Purely in memory; it holds only what has something left to do,
 * so it stays small however long the log is.
 */
import type { GiftCancelled, GiftIssued } from '../domain/gift.js';
import type { NotificationEvent } from '../domain/notification.js';
import type { WorkParked } from '../domain/parked.js';
import type { PurchaseEvent } from '../domain/purchase.js';
import type { RefundEvent } from '../domain/refund.js';
import type { Position, RecordedEvent } from '../ports/eventStore.js';
import { type NotificationIntent, type NotificationWork, reactToNotification, resumeNotification } from './notification.js';
import { type PurchaseIntent, type PurchaseTrigger, type PurchaseWork, reactToPurchase, resumePurchase } from './purchase.js';
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
] as const satisfies readonly FeedEvent['type'][];

/** The events it folds. */
type FeedEvent = PurchaseEvent | GiftIssued | GiftCancelled | NotificationEvent | WorkParked;

/** What is to be done next. */
export type Intent = PurchaseIntent | NotificationIntent | RefundIntent;

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
  /** The highest position with nothing unfinished at or below it; `undefined` at the log's beginning. */
  checkpoint(): Position | undefined;
  /** How many purchases and refunds are open. */
  readonly size: number;
  /** How far the feed has been looked at; `undefined` at the log's beginning. */
  readonly position: Position | undefined;
  /** The time of the first event of the purchase or refund that has been open for longest: ISO 8601; `undefined` where none is open. */
  readonly oldestAt: string | undefined;
}

/** An open purchase or refund, and the position that the feed stood at before its first event. */
interface Entry<W> {
  readonly before: Position | undefined;
  /** The time of its first event. */
  readonly at: string;
  work: W;
}

const after = (stream: string, prefix: string): string => stream.slice(prefix.length);

/** Nothing open; the feed begins after `from`. */
export function openWork(from: Position | undefined): OpenWork {
  // In the order in which they were opened: the first is the one that holds the checkpoint back.
  const purchases = new Map<string, Entry<PurchaseWork>>();
  const refunds = new Map<string, Entry<RefundWork>>();
  const notifications = new Map<string, NotificationWork>();
  let position = from;

  const move = (transactionId: string, event: RecordedEvent): readonly Intent[] => {
    const entry = purchases.get(transactionId);
    const { work, intents } = reactToPurchase(entry?.work, event as unknown as PurchaseTrigger, seenOf(event));
    if (work === undefined) purchases.delete(transactionId);
    else if (entry === undefined) purchases.set(transactionId, { before: position, at: event.at, work });
    else entry.work = work;
    return intents;
  };

  const moveRefund = (refundId: string, transactionId: string, event: RecordedEvent): readonly Intent[] => {
    const entry = refunds.get(refundId);
    const { work, intents } = reactToRefund(entry?.work, event as unknown as RefundEvent | WorkParked, refundId, transactionId, seenOf(event));
    if (work === undefined) refunds.delete(refundId);
    else if (entry === undefined) refunds.set(refundId, { before: position, at: event.at, work });
    else entry.work = work;
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
      default:
        return known satisfies never, [];
    }
  };

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
    },
    purchase: (transactionId) => purchases.get(transactionId)?.work,
    notification: (giftId) => notifications.get(giftId),
    refund: (refundId) => refunds.get(refundId)?.work,
    checkpoint() {
      const [purchase] = purchases.values();
      const [refund] = refunds.values();
      if (purchase === undefined) return refund === undefined ? position : refund.before;
      if (refund === undefined) return purchase.before;
      // `undefined` is the log's beginning.
      if (purchase.before === undefined || refund.before === undefined) return undefined;
      return purchase.before < refund.before ? purchase.before : refund.before;
    },
    get size() {
      return purchases.size + refunds.size;
    },
    get position() {
      return position;
    },
    get oldestAt() {
      const [purchase] = purchases.values();
      const [refund] = refunds.values();
      if (purchase === undefined || refund === undefined) return purchase?.at ?? refund?.at;
      return purchase.at < refund.at ? purchase.at : refund.at;
    },
  };
}

/**
 * All that is open, folded from the feed: the state of both process managers. Purely in memory; it holds only what has something left to do,
 * so it stays small however long the log is.
 */
import type { GiftIssued } from '../domain/gift.js';
import type { NotificationEvent } from '../domain/notification.js';
import type { WorkParked } from '../domain/parked.js';
import type { PurchaseEvent } from '../domain/purchase.js';
import type { Position, RecordedEvent } from '../ports/eventStore.js';
import { type NotificationIntent, type NotificationWork, reactToNotification, resumeNotification } from './notification.js';
import { type PurchaseIntent, type PurchaseTrigger, type PurchaseWork, reactToPurchase, resumePurchase } from './purchase.js';
import { seenOf } from './seen.js';

/** The event types that it folds. */
export const FEED_TYPES = [
  'GiftsPurchased',
  'ChargeStarted',
  'PaymentCharged',
  'PaymentDeclined',
  'GiftIssued',
  'NotificationStarted',
  'NotificationSent',
  'NotificationFailed',
  'WorkParked',
] as const satisfies readonly FeedEvent['type'][];

/** The events it folds. */
type FeedEvent = PurchaseEvent | GiftIssued | NotificationEvent | WorkParked;

/** What is to be done next. */
export type Intent = PurchaseIntent | NotificationIntent;

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
  /** The highest position with nothing unfinished at or below it; `undefined` at the log's beginning. */
  checkpoint(): Position | undefined;
  /** How many purchases are open. */
  readonly size: number;
}

/** An open purchase, and the position that the feed stood at before its first event. */
interface Entry {
  readonly before: Position | undefined;
  work: PurchaseWork;
}

const after = (stream: string, prefix: string): string => stream.slice(prefix.length);

/** Nothing open; the feed begins after `from`. */
export function openWork(from: Position | undefined): OpenWork {
  // In the order in which they were opened: the first is the one that holds the checkpoint back.
  const purchases = new Map<string, Entry>();
  const notifications = new Map<string, NotificationWork>();
  let position = from;

  const move = (transactionId: string, event: RecordedEvent): readonly Intent[] => {
    const entry = purchases.get(transactionId);
    const { work, intents } = reactToPurchase(entry?.work, event as unknown as PurchaseTrigger, seenOf(event));
    if (work === undefined) purchases.delete(transactionId);
    else if (entry === undefined) purchases.set(transactionId, { before: position, work });
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

  const parked = ({ entity, transaction_id }: WorkParked['data'], event: RecordedEvent): readonly Intent[] => {
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
    },
    purchase: (transactionId) => purchases.get(transactionId)?.work,
    notification: (giftId) => notifications.get(giftId),
    checkpoint() {
      const [oldest] = purchases.values();
      return oldest === undefined ? position : oldest.before;
    },
    get size() {
      return purchases.size;
    },
  };
}

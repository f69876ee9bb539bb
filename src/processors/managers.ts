/** What the process managers follow, and what it may ask of them. */
import type { GiftCancelled, GiftIssued, GiftReassigned } from '../domain/gift.js';
import type { NotificationEvent } from '../domain/notification.js';
import type { WorkParked, WorkRetried } from '../domain/parked.js';
import type { PurchaseEvent } from '../domain/purchase.js';
import type { LateMoneyIntent } from './dispute/manager.js';
import type { NotificationIntent } from './notification/manager.js';
import type { PurchaseIntent } from './purchase/manager.js';
import type { RefundIntent } from './refund/manager.js';
import type { RetellIntent } from './notification/resends.js';

/** The event types of the feed: one that is missing here, so that nobody would ever hear of it, does not compile. */
export const FEED_TYPES = Object.keys({
  GiftsPurchased: true,
  ChargeStarted: true,
  PaymentCharged: true,
  PaymentDeclined: true,
  RefundRequested: true,
  RefundStarted: true,
  GiftsRefunded: true,
  RefundRefused: true,
  RefundFailed: true,
  NothingRefunded: true,
  GiftIssued: true,
  GiftCancelled: true,
  GiftReassigned: true,
  NotificationStarted: true,
  NotificationSent: true,
  NotificationFailed: true,
  NotificationRequested: true,
  WorkParked: true,
  WorkRetried: true,
  PaymentAuthenticationRequired: true,
  PaymentAuthenticationFailed: true,
  RefundedAtProvider: true,
  ProviderRefundSettled: true,
  DisputeOpened: true,
  DisputeClosed: true,
  DisputeSettled: true,
} satisfies Readonly<Record<FeedEvent['type'], true>>) as readonly FeedEvent['type'][];

/**
 * The events of the feed. What a provider could not deliver asks for nothing: support sees it, and may have the
 * receiver told again.
 */
export type FeedEvent =
  | PurchaseEvent
  | GiftIssued
  | GiftCancelled
  | GiftReassigned
  | Exclude<NotificationEvent, { type: 'NotificationUndelivered' }>
  | WorkParked
  | WorkRetried;

/** A parked purchase was retried: what became of it meanwhile is to be read, then it is open again. */
export interface ReopenIntent {
  readonly do: 'reopen';
  readonly transactionId: string;
}

/** What is to be done next. */
export type Intent = PurchaseIntent | NotificationIntent | RefundIntent | LateMoneyIntent | RetellIntent | ReopenIntent;

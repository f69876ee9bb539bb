/** What the process managers follow, and what it may ask of them. */
import type { GiftCancelled, GiftIssued, GiftReassigned } from '../domain/gift.js';
import type { NotificationEvent } from '../domain/notification.js';
import type { WorkParked, WorkRetried } from '../domain/parked.js';
import type { PurchaseEvent } from '../domain/purchase.js';
import type { LateMoneyIntent } from './lateMoney.js';
import type { NotificationIntent } from './notification.js';
import type { PurchaseIntent } from './purchase.js';
import type { RefundIntent } from './refund.js';
import type { RetellIntent } from './retellings.js';

/** The event types of the feed. */
export const FEED_TYPES = [
  'GiftsPurchased',
  'ChargeStarted',
  'PaymentCharged',
  'PaymentDeclined',
  'RefundRequested',
  'RefundStarted',
  'GiftsRefunded',
  'RefundRefused',
  'RefundFailed',
  'NothingRefunded',
  'GiftIssued',
  'GiftCancelled',
  'GiftReassigned',
  'NotificationStarted',
  'NotificationSent',
  'NotificationFailed',
  'NotificationRequested',
  'WorkParked',
  'WorkRetried',
  'PaymentAuthenticationRequired',
  'PaymentAuthenticationFailed',
  'RefundedAtProvider',
  'ProviderRefundSettled',
  'DisputeOpened',
  'DisputeClosed',
  'DisputeSettled',
] as const satisfies readonly FeedEvent['type'][];

/** The events of the feed. What a provider could not deliver asks for nothing: support sees it, and may have the receiver told again. */
export type FeedEvent = PurchaseEvent | GiftIssued | GiftCancelled | GiftReassigned | Exclude<NotificationEvent, { type: 'NotificationUndelivered' }> | WorkParked | WorkRetried;

/** A parked purchase was retried: what became of it meanwhile is to be read, then it is open again. */
export interface ReopenIntent {
  readonly do: 'reopen';
  readonly transactionId: string;
}

/** What is to be done next. */
export type Intent = PurchaseIntent | NotificationIntent | RefundIntent | LateMoneyIntent | RetellIntent | ReopenIntent;

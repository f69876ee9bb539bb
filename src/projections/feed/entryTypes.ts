/** Names of the log's events in the event feed (docs/api/events.md#event-types). */
import type { GiftEvent } from '../../domain/gift/events.js';
import type { NotificationSent, ReminderSent } from '../../domain/notification.js';
import type { PurchaseEvent } from '../../domain/purchase/events.js';

type Shown<E extends { readonly type: string }, Hidden extends E['type']> = Exclude<E, { readonly type: Hidden }>;

/** Events of a purchase in the feed: without steps before an outcome, and without events that only support acts on. */
type ShownOfPurchase = Shown<
  PurchaseEvent,
  | 'ChargeStarted'
  | 'PaymentAuthenticationFailed'
  | 'RefundRequested'
  | 'RefundStarted'
  | 'RefundRefused'
  | 'NothingRefunded'
  | 'ProviderRefundSettled'
  | 'DisputeOpened'
  | 'DisputeClosed'
  | 'DisputeSettled'
  | 'SendStarted'
  | 'SendFinished'
>;

/**
 * Events of a gift in the feed. A redemption that will never happen concerns only the caller who cancelled it, and a
 * replacement that was declined only support.
 */
type ShownOfGift = Shown<GiftEvent, 'RedemptionVoided' | 'ReplacementDeclined' | 'ReminderDue'>;

export type FedEvent = ShownOfPurchase | ShownOfGift | NotificationSent | ReminderSent;

/** An event type that is neither here nor among the hidden ones does not compile. */
export const ENTRY_TYPES = {
  GiftsPurchased: 'transaction.created',
  PaymentAuthenticationRequired: 'transaction.authentication_required',
  PaymentCharged: 'transaction.charged',
  PaymentDeclined: 'transaction.declined',
  GiftsRefunded: 'transaction.refunded',
  RefundedAtProvider: 'transaction.refunded',
  RefundFailed: 'transaction.refund_failed',
  SendRescheduled: 'transaction.rescheduled',
  GiftIssued: 'gift.issued',
  GiftReleased: 'gift.released',
  GiftClaimed: 'gift.claimed',
  GiftRedeemed: 'gift.redeemed',
  GiftUnredeemed: 'gift.unredeemed',
  VoucherAssigned: 'gift.voucher_assigned',
  GiftCancelled: 'gift.cancelled',
  GiftBlocked: 'gift.blocked',
  GiftUnblocked: 'gift.unblocked',
  GiftReassigned: 'gift.reassigned',
  GiftReplaced: 'gift.replaced',
  GiftExtended: 'gift.extended',
  GiftExpiring: 'gift.expiring',
  GiftExpired: 'gift.expired',
  NotificationSent: 'gift.notified',
  ReminderSent: 'gift.reminded',
} as const satisfies Record<FedEvent['type'], string>;

export type EntryType = (typeof ENTRY_TYPES)[FedEvent['type']];

export const ALL_ENTRY_TYPES: readonly EntryType[] = [...new Set(Object.values(ENTRY_TYPES))];

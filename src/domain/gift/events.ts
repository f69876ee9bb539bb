/** A gift's events, from its issue on. Stream `gift-{id}`. */
import type { DomainEvent } from '../decider.js';

export const giftStream = (id: string): string => `gift-${id}`;

/** Receiver of a gift; without any field the gift is shared by URL. */
export interface Receiver {
  readonly user_id?: string;
  readonly phone_id?: string;
}

/** If false, the gift is its sender's until a user claims it. */
export const isSomebody = ({ user_id, phone_id }: Receiver): boolean => user_id !== undefined || phone_id !== undefined;

/** Kinds of receivers, as support and webhooks are told them. `nobody`: the first user to claim the gift. */
export const RECEIVER_KINDS = ['user', 'phone number', 'nobody'] as const;
export type ReceiverKind = (typeof RECEIVER_KINDS)[number];

export function receiverKind({ user_id, phone_id }: Receiver): ReceiverKind {
  if (user_id !== undefined) return 'user';
  return phone_id === undefined ? 'nobody' : 'phone number';
}

/**
 * The gift is paid for. `value` is pence, `expires_on` the last valid day (UTC), `index` its position in the purchase.
 * Secret: `receiver.phone_id`. `scheduled`: the receiver must not learn of the gift before `GiftReleased`.
 * `replacement`: the gift was issued at no charge in place of another one.
 */
export type GiftIssued = DomainEvent<
  'GiftIssued',
  {
    readonly transaction_id: string;
    readonly index: number;
    readonly message_id: string;
    readonly product_id: string;
    readonly brand_id: string;
    readonly value: number;
    readonly sender_id: string;
    readonly receiver: Receiver;
    readonly purchased_at: string;
    readonly expires_on: string;
    readonly scheduled?: true;
    readonly replacement?: true;
  }
>;

/**
 * The time of a scheduled gift has come: its receiver is notified, and finds it
 * (docs/api/purchases.md#scheduled-sending).
 */
export type GiftReleased = DomainEvent<'GiftReleased', { readonly transaction_id: string }>;

export type GiftClaimed = DomainEvent<'GiftClaimed', { readonly user_id: string }>;

/**
 * `merchant_id` decides who may unredeem (docs/api/gifts.md#who-unredeems): the location's merchant if the gift was
 * valid for it, else null.
 */
export type GiftRedeemed = DomainEvent<
  'GiftRedeemed',
  {
    readonly redemption_id: string;
    readonly location_id: string;
    readonly location_merchant_id: string;
    readonly merchant_id: string | null;
    readonly brand_id: string;
    readonly product_id: string;
    readonly value: number;
  }
>;

/**
 * `location_id`, `location_merchant_id`, `merchant_id`: those of the redemption; older events lack the second.
 * `by_support` and `reason`: support reversed it; absent where a merchant's user did.
 */
export type GiftUnredeemed = DomainEvent<
  'GiftUnredeemed',
  {
    readonly redemption_id: string;
    readonly location_id: string;
    readonly location_merchant_id?: string;
    readonly merchant_id: string | null;
    readonly by_support?: true;
    readonly reason?: string;
  }
>;

/**
 * A command that had not redeemed the gift never will (docs/api/gifts.md#cancel-a-redemption). `redemption_id`: the
 * command part of its redemption id.
 */
export type RedemptionVoided = DomainEvent<'RedemptionVoided', { readonly redemption_id: string }>;

/** The gift's only voucher. Secret: `code`, `pin`. `expires_at` is ISO 8601 UTC. */
export type VoucherAssigned = DomainEvent<
  'VoucherAssigned',
  {
    readonly voucher_id: string;
    readonly code: string;
    readonly pin: string | null;
    readonly segment_id: string;
    readonly expires_at: string;
  }
>;

/** `refund_id`: id of the refund that returns the price. */
export type GiftCancelled = DomainEvent<'GiftCancelled', { readonly reason: string; readonly refund_id?: string }>;

/**
 * `cause` is `support`, `support:{id}` for a ticket, or `dispute:{id}`. `ticket`: support's ticket; empty once erased.
 */
export interface Block {
  readonly cause: string;
  readonly reason: string;
  readonly ticket?: string;
}

/** The gift can't be redeemed, claimed or vouchered while any cause blocks it. */
export type GiftBlocked = DomainEvent<'GiftBlocked', Block>;

export type GiftUnblocked = DomainEvent<'GiftUnblocked', Block & { readonly transaction_id: string }>;

/** Support gave the gift another receiver, for `reason`. Secret: `receiver.phone_id`. */
export type GiftReassigned = DomainEvent<
  'GiftReassigned',
  {
    readonly transaction_id: string;
    readonly receiver: Receiver;
    readonly reason: string;
  }
>;

/** A gift, and the purchase that it is of. */
export interface GiftOfPurchase {
  readonly gift_id: string;
  readonly transaction_id: string;
}

/**
 * Support gave another gift in place of this one, for `reason` (docs/support.md#replaced-gifts). The gift can't be used
 * any more; a redemption before stays.
 */
export type GiftReplaced = DomainEvent<
  'GiftReplaced',
  { readonly replaced_by: GiftOfPurchase; readonly reason: string }
>;

/**
 * The purchase of a replacement is declined for `code`: the gift is never given up for it. Appended before the decline,
 * so that a command which gives the gift up is decided after it or before it, never beside it.
 */
export type ReplacementDeclined = DomainEvent<
  'ReplacementDeclined',
  { readonly replaced_by: GiftOfPurchase; readonly code: string }
>;

/** The last valid day became `expires_on`. Both dates are UTC. `voucher_expires_at`: null without a voucher. */
export type GiftExtended = DomainEvent<
  'GiftExtended',
  { readonly expires_on: string; readonly voucher_expires_at: string | null; readonly reason: string }
>;

/** The last valid day `expires_on` (UTC) is near. Appended once for each such day. */
export type GiftExpiring = DomainEvent<'GiftExpiring', { readonly expires_on: string }>;

/** The last valid day (UTC) is over, and the gift was not redeemed. Appended once for each such day. */
export type GiftExpired = DomainEvent<'GiftExpired', { readonly expires_on: string }>;

/**
 * The gift's holder is to be reminded, `days` before the last valid day `expires_on` (UTC), and not after `until` (ISO
 * 8601, UTC).
 */
export type ReminderDue = DomainEvent<
  'ReminderDue',
  {
    readonly transaction_id: string;
    readonly days: number;
    readonly expires_on: string;
    readonly until: string;
  }
>;

export type GiftEvent =
  | GiftIssued
  | GiftReleased
  | GiftClaimed
  | GiftRedeemed
  | GiftUnredeemed
  | RedemptionVoided
  | VoucherAssigned
  | GiftCancelled
  | GiftBlocked
  | GiftUnblocked
  | GiftReassigned
  | GiftReplaced
  | ReplacementDeclined
  | GiftExtended
  | GiftExpiring
  | GiftExpired
  | ReminderDue;

/** What happens to one gift, from its issue on. Stream `gift-{id}`. */
import type { DomainEvent } from '../decider.js';

export const giftStream = (id: string): string => `gift-${id}`;

/** Who a gift was sent to; empty: it is shared by URL. A phone number stands here as its HMAC only. */
export interface Receiver {
  readonly user_id?: string;
  readonly phone_hash?: string;
}

/** Whether it names anybody; else the gift is its sender's until somebody claims it. */
export const isSomebody = ({ user_id, phone_hash }: Receiver): boolean =>
  user_id !== undefined || phone_hash !== undefined;

/**
 * The gift is paid for. `value` is pence, `expires_on` the last valid day (UTC), `index` its place in the purchase.
 * Secret: `receiver.phone_hash`.
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
  }
>;

/** A user made a gift without a receiver their own. */
export type GiftClaimed = DomainEvent<'GiftClaimed', { readonly user_id: string }>;

/**
 * Redeemed at a location. `location_merchant_id` is the location's merchant; `merchant_id` is the same where the gift
 * was valid for it, else null: it decides who may unredeem (docs/decisions.md#who-unredeems).
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

/** The latest redemption was reversed. */
export type GiftUnredeemed = DomainEvent<'GiftUnredeemed', { readonly redemption_id: string }>;

/** The gift's one voucher. Secret: `code`, `pin`. `expires_at` is ISO 8601 UTC. The segment is as it was then. */
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

/** The gift can no longer be used; `reason` says why. `refund_id`: for the refund that gives its price back. */
export type GiftCancelled = DomainEvent<'GiftCancelled', { readonly reason: string; readonly refund_id?: string }>;

/** Why a gift is blocked or freed. `cause` names what asks for it: `support`, `support:{ticket}`, `dispute:{id}`. */
export interface Block {
  readonly cause: string;
  readonly reason: string;
}

/** Not to be redeemed, claimed or vouchered until no cause blocks it. */
export type GiftBlocked = DomainEvent<'GiftBlocked', Block>;

/** This cause blocks the gift no longer; others may. */
export type GiftUnblocked = DomainEvent<'GiftUnblocked', Block>;

/**
 * The gift is another receiver's; the former one may not redeem it any more. Secret: `receiver.phone_hash`. Personal:
 * `phone_number` (E.164; null for a user). `reason` is support's.
 */
export type GiftReassigned = DomainEvent<
  'GiftReassigned',
  {
    readonly transaction_id: string;
    readonly receiver: Receiver;
    readonly phone_number: string | null;
    readonly reason: string;
  }
>;

/**
 * Valid for longer. `expires_on`: the new last day (UTC); `voucher_expires_at`: when its voucher expires now (ISO 8601
 * UTC), null where it has none.
 */
export type GiftExtended = DomainEvent<
  'GiftExtended',
  { readonly expires_on: string; readonly voucher_expires_at: string | null; readonly reason: string }
>;

export type GiftEvent =
  | GiftIssued
  | GiftClaimed
  | GiftRedeemed
  | GiftUnredeemed
  | VoucherAssigned
  | GiftCancelled
  | GiftBlocked
  | GiftUnblocked
  | GiftReassigned
  | GiftExtended;

/** One gift's life, from its issue on. Stream `gift-{id}`. */
import { copyWith } from './copyWith.js';
import type { Aggregate, DomainEvent, Happened } from './decider.js';
import { Refusal } from './refusal.js';

export const giftStream = (id: string): string => `gift-${id}`;

// Events

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

// State

/** A redemption as decisions need it. */
export interface RedemptionState {
  readonly id: string;
  readonly redeemed: boolean;
  readonly merchant_id: string | null;
}

export interface IssuedGift {
  readonly status: 'issued' | 'redeemed' | 'cancelled';
  /** As it was issued, with its receiver and its last valid day as they are now. */
  readonly issued: GiftIssued['data'];
  /** When its present receiver got it: ISO 8601; absent: when it was bought. */
  readonly receiverSince?: string;
  readonly claimedBy?: string;
  /** In order of time; only the last one counts. */
  readonly redemptions: readonly RedemptionState[];
  readonly voucher?: VoucherAssigned['data'] & { readonly assignedAt: string };
  /** The causes that block it, in order of time; absent or empty: it is not blocked. */
  readonly blockedBy?: readonly string[];
  /** The refund that cancelled it. */
  readonly refundId?: string;
}

export type Gift = { readonly status: 'none' } | IssuedGift;

export const giftAggregate: Aggregate<Gift, GiftEvent> = {
  initial: { status: 'none' },
  evolve(state: Gift, event: Happened<GiftEvent>): Gift {
    if (event.type === 'GiftIssued') return { status: 'issued', issued: event.data, redemptions: [] };
    if (state.status === 'none') return state;
    switch (event.type) {
      case 'GiftClaimed':
        return copyWith(state, { claimedBy: event.data.user_id });
      case 'GiftRedeemed': {
        const redemption = { id: event.data.redemption_id, redeemed: true, merchant_id: event.data.merchant_id };
        return { ...state, status: 'redeemed', redemptions: [...state.redemptions, redemption] };
      }
      case 'GiftUnredeemed': {
        const redemptions = state.redemptions.map((redemption) =>
          redemption.id === event.data.redemption_id ? { ...redemption, redeemed: false } : redemption,
        );
        return { ...state, status: 'issued', redemptions };
      }
      case 'VoucherAssigned':
        return copyWith(state, { voucher: copyWith(event.data, { assignedAt: event.at }) });
      case 'GiftCancelled':
        return copyWith(state, {
          status: 'cancelled',
          ...(event.data.refund_id === undefined ? {} : { refundId: event.data.refund_id }),
        });
      case 'GiftBlocked':
        return copyWith(state, { blockedBy: [...(state.blockedBy ?? []), event.data.cause] });
      case 'GiftUnblocked':
        return { ...state, blockedBy: (state.blockedBy ?? []).filter((cause) => cause !== event.data.cause) };
      case 'GiftReassigned': {
        const { claimedBy: _, ...kept } = state;
        return copyWith(kept, { issued: { ...state.issued, receiver: event.data.receiver }, receiverSince: event.at });
      }
      case 'GiftExtended': {
        const { expires_on, voucher_expires_at } = event.data;
        const extended: IssuedGift = { ...state, issued: { ...state.issued, expires_on } };
        return state.voucher === undefined || voucher_expires_at === null
          ? extended
          : { ...extended, voucher: { ...state.voucher, expires_at: voucher_expires_at } };
      }
      default:
        return (event satisfies never, state);
    }
  },
};

// Decisions

/** How the payment of a gift stands; an issued gift is `charged`. */
export type PaymentState = 'pending' | 'charged' | 'declined';

/** The caller, as decisions need them. */
export interface GiftCaller {
  readonly user_id: string;
  /** Absent for customers. `valid`: by today's catalogue the gift is valid for the merchant. */
  readonly merchant?: { readonly id: string; readonly valid: boolean; readonly permissions: readonly string[] };
}

/** What decisions about a gift need from outside its stream. */
export interface GiftFacts {
  /** ISO 8601, UTC. */
  readonly now: string;
  readonly payment: PaymentState;
  readonly caller: GiftCaller;
  /** The present owner of the phone number that the gift was sent to. */
  readonly phoneOwner?: string;
}

/** What says whose a gift is. */
export interface OwnedGift {
  readonly issued: Pick<GiftIssued['data'], 'receiver' | 'sender_id'>;
  readonly claimedBy?: string | undefined;
}

/**
 * The gift's owner (docs/decisions.md#gift-owner): its receiver, else the user who claimed it, else its sender;
 * `undefined` while nobody has the phone number.
 */
export function ownerOf(gift: OwnedGift, phoneOwner: string | undefined): string | undefined {
  const { receiver, sender_id } = gift.issued;
  if (receiver.user_id !== undefined) return receiver.user_id;
  if (receiver.phone_hash !== undefined) return phoneOwner;
  return gift.claimedBy ?? sender_id;
}

/** True after the last valid day, in UTC. */
export function isExpired(expiresOn: string, now: string): boolean {
  return now.slice(0, 10) > expiresOn;
}

/** Whether the caller owns the gift or may redeem it for a merchant (docs/contract.md#permissions). */
export function mayRedeem(gift: OwnedGift, facts: Pick<GiftFacts, 'caller' | 'phoneOwner'>): boolean {
  const { caller, phoneOwner } = facts;
  return mayRedeemForMerchant(caller) || ownerOf(gift, phoneOwner) === caller.user_id;
}

/**
 * Whether the caller may redeem the gift whoever owns it, at the merchant's own locations
 * (docs/contract.md#permissions).
 */
export function mayRedeemForMerchant({ merchant }: GiftCaller): boolean {
  return merchant?.valid === true && merchant.permissions.includes('redeem');
}

/** Redeems. @throws Refusal `cannot_redeem`, `invalid_location`, or the state's. */
export function redeem(
  gift: IssuedGift,
  facts: GiftFacts & {
    /** `undefined`: there is no such location. `valid`: the gift is valid for the location's merchant. */
    readonly location: { readonly id: string; readonly merchant_id: string; readonly valid: boolean } | undefined;
    readonly redemptionId: string;
  },
): GiftRedeemed[] {
  const { location, caller } = facts;
  if (!mayRedeem(gift, facts)) throw new Refusal('cannot_redeem');
  const asOwner = ownerOf(gift, facts.phoneOwner) === caller.user_id;
  if (location === undefined || (!asOwner && location.merchant_id !== caller.merchant?.id))
    throw new Refusal('invalid_location');
  refuseUnlessUsable(gift, facts);
  const { brand_id, product_id, value } = gift.issued;
  return [
    {
      type: 'GiftRedeemed',
      data: {
        redemption_id: facts.redemptionId,
        location_id: location.id,
        location_merchant_id: location.merchant_id,
        merchant_id: location.valid ? location.merchant_id : null,
        brand_id,
        product_id,
        value,
      },
    },
  ];
}

/** The redemption that `latest` or an id names. */
function redemptionNamed(gift: IssuedGift, redemptionId: string): RedemptionState | undefined {
  return redemptionId === 'latest' ? gift.redemptions.at(-1) : gift.redemptions.find((one) => one.id === redemptionId);
}

/**
 * Whether the caller may reverse the redemption named, or any where there is none such
 * (docs/decisions.md#who-unredeems).
 */
export function mayUnredeem(gift: IssuedGift, caller: GiftCaller, redemptionId: string): boolean {
  const { merchant } = caller;
  const redemption = redemptionNamed(gift, redemptionId);
  if (merchant === undefined || !merchant.permissions.includes('unredeem')) return false;
  if (redemption !== undefined)
    return redemption.merchant_id === null ? merchant.valid : redemption.merchant_id === merchant.id;
  return merchant.valid || gift.redemptions.some((one) => one.merchant_id === merchant.id);
}

/**
 * Reverses a redemption, `latest` or one by id. @throws Refusal `cannot_unredeem`; `gift_not_found` (`latest` where
 * there is none); `redemption_not_found`; `gift_not_redeemed`
 */
export function unredeem(gift: IssuedGift, facts: GiftFacts & { readonly redemptionId: string }): GiftUnredeemed[] {
  const redemption = redemptionNamed(gift, facts.redemptionId);
  if (!mayUnredeem(gift, facts.caller, facts.redemptionId)) throw new Refusal('cannot_unredeem');
  if (redemption === undefined)
    throw new Refusal(facts.redemptionId === 'latest' ? 'gift_not_found' : 'redemption_not_found');
  if (!redemption.redeemed) throw new Refusal('gift_not_redeemed');
  return [{ type: 'GiftUnredeemed', data: { redemption_id: redemption.id } }];
}

/**
 * Makes the caller the owner of a gift without a receiver; again: no event.
 * @throws Refusal `cannot_claim`, `gift_already_claimed`, or the state's
 */
export function claim(gift: IssuedGift, facts: GiftFacts): GiftClaimed[] {
  const { receiver } = gift.issued;
  if (isSomebody(receiver)) throw new Refusal('cannot_claim');
  if (gift.claimedBy === facts.caller.user_id) return [];
  if (gift.claimedBy !== undefined) throw new Refusal('gift_already_claimed');
  refuseUnlessUsable(gift, facts);
  return [{ type: 'GiftClaimed', data: { user_id: facts.caller.user_id } }];
}

/** Refuses a new voucher where caller or state do not allow one. @throws Refusal */
export function refuseNewVoucher(gift: IssuedGift, facts: GiftFacts): void {
  if (!mayRedeem(gift, facts)) throw new Refusal('cannot_redeem');
  refuseUnlessUsable(gift, facts);
}

/** Gives the gift its voucher; a gift that has one keeps it: no event. @throws Refusal */
export function assignVoucher(gift: IssuedGift, facts: GiftFacts, voucher: VoucherAssigned['data']): VoucherAssigned[] {
  if (gift.voucher !== undefined) return [];
  refuseNewVoucher(gift, facts);
  return [{ type: 'VoucherAssigned', data: voucher }];
}

/** Cancels a gift that is neither redeemed nor cancelled: no event otherwise. */
export function cancel(gift: IssuedGift, why: GiftCancelled['data']): GiftCancelled[] {
  return gift.status === 'issued' ? [{ type: 'GiftCancelled', data: why }] : [];
}

/**
 * Refuses a gift that can't be used, in this order (docs/decisions.md#order-of-checks,
 * docs/decisions.md#pending-gifts); last what passes: blocked.
 * @throws Refusal `gift_not_paid`, `gift_cancelled`, `gift_already_redeemed`, `gift_expired`, `gift_blocked`
 */
export function refuseUnlessUsable(gift: IssuedGift, facts: Pick<GiftFacts, 'now' | 'payment'>): void {
  if (facts.payment === 'pending') throw new Refusal('gift_not_paid');
  if (facts.payment === 'declined' || gift.status === 'cancelled') throw new Refusal('gift_cancelled');
  if (gift.status === 'redeemed') throw new Refusal('gift_already_redeemed');
  if (isExpired(gift.issued.expires_on, facts.now)) throw new Refusal('gift_expired');
  if (gift.blockedBy !== undefined && gift.blockedBy.length > 0) throw new Refusal('gift_blocked');
}

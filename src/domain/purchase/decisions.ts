import { type GiftIssued, isSomebody, type Receiver } from '../gift/events.js';
import { deriveGiftIds, type GiftIds, giftIdsIn } from '../giftIds.js';
import {
  giftsInRefunds,
  refundedMoney,
  type NothingRefunded,
  type RefundRequested,
  type RefundStarted,
  type SkippedGifts,
} from './refund.js';
import { Refusal } from '../refusal.js';
import type {
  ChargeStarted,
  GiftsPurchased,
  PaymentAuthenticationFailed,
  PaymentAuthenticationRequired,
  PaymentCharged,
  PaymentDeclined,
  PurchaseReceiver,
} from './events.js';
import { type ChargeBy, type MadePurchase, type Purchase, reversalsOf } from './state.js';

/** Requests the charge once; `kind` and `prepaid` are those of the payment method at present. */
export function startCharge(state: Purchase, { kind, prepaid }: ChargeBy): ChargeStarted[] {
  if (state.status !== 'pending' || state.chargeStartedAt !== undefined) return [];
  return [
    {
      type: 'ChargeStarted',
      data: { amount: state.purchase.total, payment_reference: state.purchase.payment_reference, kind, prepaid },
    },
  ];
}

export function settleCharge(
  state: Purchase,
  outcome: PaymentCharged | PaymentDeclined,
): (PaymentCharged | PaymentDeclined)[] {
  return state.status === 'pending' ? [outcome] : [];
}

/** Stripe's limits for pounds, in pence (https://docs.stripe.com/currencies#minimum-and-maximum-charge-amounts). */
const CARD_LIMITS = { least: 30, most: 99_999_999 } as const;

/** The card limit that `amount` (pence) breaks; 0 breaks none, since it is never charged. Wallets have no limits. */
export function brokenCardLimit(amount: number): 'amount_too_small' | 'amount_too_large' | undefined {
  if (amount === 0) return undefined;
  return amount < CARD_LIMITS.least ? 'amount_too_small' : amount > CARD_LIMITS.most ? 'amount_too_large' : undefined;
}

export const AUTHENTICATION_MS = 15 * 60_000;

export function requireAuthentication(
  state: Purchase,
  required: PaymentAuthenticationRequired['data'],
): PaymentAuthenticationRequired[] {
  return state.status === 'pending' && state.authentication === undefined
    ? [{ type: 'PaymentAuthenticationRequired', data: required }]
    : [];
}

/** Records the failure only while the payment waits for its buyer. */
export function failAuthentication(
  state: Purchase,
  failed: PaymentAuthenticationFailed['data'],
): PaymentAuthenticationFailed[] {
  if (
    state.status !== 'pending' ||
    state.authentication?.payment_id !== failed.payment_id ||
    state.authentication.failed !== undefined
  )
    return [];
  return [{ type: 'PaymentAuthenticationFailed', data: failed }];
}

/** Receiver for a gift's issue, which must not hold the phone number. */
export function receiverOf(receiver: PurchaseReceiver | undefined): Receiver {
  if (receiver?.user_id !== undefined) return { user_id: receiver.user_id };
  if (receiver?.phone_id !== undefined) return { phone_id: receiver.phone_id };
  return {};
}

export function issueGift(
  purchase: GiftsPurchased['data'],
  purchasedAt: string,
  index: number,
  own: Pick<GiftIds, 'message_id'>,
): GiftIssued {
  const receiver = receiverOf(purchase.receivers[index]);
  return {
    type: 'GiftIssued',
    data: {
      transaction_id: purchase.transaction_id,
      index,
      message_id: own.message_id,
      product_id: purchase.product_id,
      brand_id: purchase.brand_id,
      value: purchase.sale_price,
      sender_id: purchase.buyer_id,
      receiver,
      purchased_at: purchasedAt,
      expires_on: purchase.expires_on,
      ...(purchase.send_at === undefined || !isSomebody(receiver) ? {} : { scheduled: true }),
      ...(purchase.replaces === undefined ? {} : { replacement: true }),
    },
  };
}

/** Issues of a purchase's gifts, in the order of its receivers. */
export function* issueGifts(
  purchase: GiftsPurchased['data'],
  purchasedAt: string,
): Generator<{ giftId: string; event: GiftIssued }, void, undefined> {
  const { seed, receivers } = purchase;
  const idsAt = giftIdsIn(seed, receivers.length);
  for (let index = 0; index < receivers.length; index++) {
    const own = idsAt(index);
    yield { giftId: own.gift_id, event: issueGift(purchase, purchasedAt, index, own) };
  }
}

/**
 * Without `gift_ids` the refund is for all gifts that belong to no refund yet.
 * @throws Refusal `gift_is_replacement`, `transaction_pending`, `gift_not_in_transaction`, `gift_already_refunded`,
 * `nothing_to_refund` (also for a declined purchase)
 */
export function requestRefund(
  state: MadePurchase,
  requested: Omit<RefundRequested['data'], 'gift_ids'> & { readonly gift_ids?: readonly string[] },
): RefundRequested[] {
  if (state.refunds.has(requested.refund_id)) return [];
  if (state.purchase.replaces !== undefined) throw new Refusal('gift_is_replacement');
  if (state.status === 'pending') throw new Refusal('transaction_pending');
  if (state.status === 'declined') throw new Refusal('nothing_to_refund');
  const own = deriveGiftIds(state.purchase.seed, state.purchase.receivers.length).map(({ gift_id }) => gift_id);
  const held = giftsInRefunds(state.refunds);
  if (requested.gift_ids !== undefined) {
    const known = new Set(own);
    const other = requested.gift_ids.findIndex((id) => !known.has(id));
    if (other >= 0) throw new Refusal('gift_not_in_transaction', `gift_ids[${other}]`);
    if (requested.gift_ids.some((id) => held.has(id))) throw new Refusal('gift_already_refunded');
  }
  const gift_ids =
    requested.gift_ids === undefined ? own.filter((id) => !held.has(id)) : [...new Set(requested.gift_ids)];
  if (gift_ids.length === 0) throw new Refusal('nothing_to_refund');
  const { refund_id, voided, reason } = requested;
  return [{ type: 'RefundRequested', data: { refund_id, gift_ids, voided, reason } }];
}

export function startRefund(
  state: Purchase,
  refundId: string,
  cancelled: readonly string[],
  kept: SkippedGifts,
): (RefundStarted | NothingRefunded)[] {
  if (state.status === 'none' || state.charge === undefined || state.refunds.get(refundId)?.status !== 'requested')
    return [];
  if (cancelled.length === 0) return [{ type: 'NothingRefunded', data: { refund_id: refundId, kept } }];
  const { provider, charge_id } = state.charge;
  const amount = state.purchase.sale_price * cancelled.length;
  return [
    {
      type: 'RefundStarted',
      data: {
        refund_id: refundId,
        attempt: 1,
        gift_ids: cancelled,
        kept,
        amount,
        provider,
        charge_id,
        payment_reference: state.purchase.payment_reference,
      },
    },
  ];
}

/** Pence of the charge that are left after our refunds and external ones. */
export function leftOfCharge(state: Purchase): number {
  if (state.status === 'none' || state.charge === undefined) return 0;
  return state.charge.amount - refundedMoney(state.refunds, state.charge.charge_id) - reversalsOf(state).refunded.total;
}

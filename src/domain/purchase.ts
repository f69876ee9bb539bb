/** A purchase and its payment. Stream `transaction-{id}`. */
import type { PaymentMethod } from './account.js';
import { copyWith } from './copyWith.js';
import type { Aggregate, DomainEvent, Happened } from './decider.js';
import { deriveGiftIds, giftIdsIn, type GiftIds } from './giftIds.js';
import type { GiftIssued, Receiver } from './gift.js';
import { evolveReversals, type Reversals, type ReversalEvent, NO_REVERSALS } from './disputes.js';
import {
  evolveOutside,
  evolveRefunds,
  givenBack,
  giftsInRefunds,
  type SkippedGifts,
  type RefundEvent,
  type RefundRequested,
  type Refunds,
  type RefundStarted,
  type NothingRefunded,
} from './refund.js';
import { Refusal } from './refusal.js';

export const transactionStream = (id: string): string => `transaction-${id}`;

// Events

/** A receiver: a phone number (E.164, personal; with its HMAC), a user, or neither (shared by URL). */
export interface PurchaseReceiver {
  readonly phone_number?: string;
  readonly phone_hash?: string;
  readonly user_id?: string;
}

/**
 * All gifts of one purchase. Secret: `seed` (32 random bytes, hexadecimal, from which ids come),
 * `receivers[].phone_hash`. Personal: `receivers[].phone_number`, `message`. `sale_price` and `total` are pence;
 * `expires_on` is the last valid day (UTC).
 */
export type GiftsPurchased = DomainEvent<
  'GiftsPurchased',
  {
    readonly transaction_id: string;
    readonly seed: string;
    readonly buyer_id: string;
    readonly product_id: string;
    readonly brand_id: string;
    readonly product_name: string;
    readonly sale_price: number;
    readonly total: number;
    readonly payment_reference: string;
    readonly expires_on: string;
    readonly message: string;
    readonly receivers: readonly PurchaseReceiver[];
  }
>;

/**
 * The charge is about to be asked for, by the process that wrote this. `at` of the first one is when the provider's
 * idempotency key started to count. `kind` and `prepaid` are the payment method's at that time: the same provider is
 * asked again, whatever an import makes of the method.
 */
export type ChargeStarted = DomainEvent<
  'ChargeStarted',
  {
    readonly amount: number;
    readonly payment_reference: string;
    readonly kind: PaymentMethod['kind'];
    readonly prepaid: boolean;
  }
>;

/** The provider took the money. `charge_id` is the provider's. */
export type PaymentCharged = DomainEvent<
  'PaymentCharged',
  {
    readonly amount: number;
    readonly provider: string;
    readonly charge_id: string;
  }
>;

/** The provider refused for good; every gift of the purchase is cancelled. `code` is the provider's decline code. */
export type PaymentDeclined = DomainEvent<
  'PaymentDeclined',
  {
    readonly provider: string;
    readonly code: string;
  }
>;

/**
 * The provider takes the money only once the buyer has authenticated. `payment_id` is the provider's name of the
 * payment, `action` its word for what the buyer has to do; after `until` (ISO 8601, UTC) payment and gifts are
 * cancelled. The secret for it is asked of the provider whenever it is shown, and never stored.
 */
export type PaymentAuthenticationRequired = DomainEvent<
  'PaymentAuthenticationRequired',
  {
    readonly provider: string;
    readonly payment_id: string;
    readonly action: string;
    readonly until: string;
  }
>;

/** Authentication failed, or the card was refused after it: the payment is to be cancelled. `code` is the provider's. */
export type PaymentAuthenticationFailed = DomainEvent<
  'PaymentAuthenticationFailed',
  {
    readonly provider: string;
    readonly payment_id: string;
    readonly code: string;
  }
>;

export type PurchaseEvent =
  | GiftsPurchased
  | ChargeStarted
  | PaymentAuthenticationRequired
  | PaymentAuthenticationFailed
  | PaymentCharged
  | PaymentDeclined
  | RefundEvent
  | ReversalEvent;

// State

/** A payment that waits for its buyer. `required`: since when; `failed`: the provider's code, once it has failed. */
export type Authentication = PaymentAuthenticationRequired['data'] & {
  readonly required: string;
  readonly failed?: string;
};

/** What says who takes the money. */
export type ChargeBy = Pick<PaymentMethod, 'kind' | 'prepaid'>;

export type Purchase =
  | { readonly status: 'none' }
  | {
      readonly status: 'pending' | 'charged' | 'declined';
      readonly purchase: GiftsPurchased['data'];
      readonly purchasedAt: string;
      /** When the charge was first asked for. */
      readonly chargeStartedAt?: string;
      /** The payment method's kind as it was then. Absent: not asked for yet. */
      readonly chargeBy?: ChargeBy;
      /** What the provider took. */
      readonly charge?: PaymentCharged['data'];
      readonly refunds: Refunds;
      /** Where the buyer had to authenticate. */
      readonly authentication?: Authentication;
      /** Absent: nothing came late. */
      readonly reversals?: Reversals;
    };

export type MadePurchase = Exclude<Purchase, { status: 'none' }>;

export const purchaseAggregate: Aggregate<Purchase, PurchaseEvent> = {
  initial: { status: 'none' },
  evolve(state: Purchase, event: Happened<PurchaseEvent>): Purchase {
    if (event.type === 'GiftsPurchased')
      return { status: 'pending', purchase: event.data, purchasedAt: event.at, refunds: new Map() };
    if (state.status === 'none') return state;
    switch (event.type) {
      case 'ChargeStarted':
        return state.chargeStartedAt === undefined
          ? copyWith(state, {
              chargeStartedAt: event.at,
              chargeBy: { kind: event.data.kind, prepaid: event.data.prepaid },
            })
          : state;
      case 'PaymentAuthenticationRequired':
        return copyWith(state, { authentication: copyWith(event.data, { required: event.at }) });
      case 'PaymentAuthenticationFailed':
        return state.authentication === undefined
          ? state
          : { ...state, authentication: { ...state.authentication, failed: event.data.code } };
      case 'PaymentCharged':
        return copyWith(state, { status: 'charged', charge: event.data });
      case 'PaymentDeclined':
        return copyWith(state, { status: 'declined' });
      case 'RefundRequested':
      case 'RefundStarted':
      case 'GiftsRefunded':
      case 'RefundRefused':
      case 'RefundFailed':
      case 'NothingRefunded':
        return { ...state, refunds: evolveRefunds(state.refunds, event) };
      case 'RefundedAtProvider':
        return {
          ...state,
          refunds: evolveOutside(state.refunds, event.data.charge_id),
          reversals: evolveReversals(reversalsOf(state), event),
        };
      case 'ProviderRefundSettled':
      case 'DisputeOpened':
      case 'DisputeClosed':
      case 'DisputeSettled':
        return { ...state, reversals: evolveReversals(reversalsOf(state), event) };
      default:
        return (event satisfies never, state);
    }
  },
};

/** What came late for a purchase. */
export const reversalsOf = ({ reversals }: Pick<MadePurchase, 'reversals'>): Reversals => reversals ?? NO_REVERSALS;

// Decisions

/** Starts the charge of a payment method that is such now: no event when it has been started or settled. */
export function startCharge(state: Purchase, { kind, prepaid }: ChargeBy): ChargeStarted[] {
  if (state.status !== 'pending' || state.chargeStartedAt !== undefined) return [];
  return [
    {
      type: 'ChargeStarted',
      data: { amount: state.purchase.total, payment_reference: state.purchase.payment_reference, kind, prepaid },
    },
  ];
}

/** Records the provider's answer, once. */
export function settleCharge(
  state: Purchase,
  outcome: PaymentCharged | PaymentDeclined,
): (PaymentCharged | PaymentDeclined)[] {
  return state.status === 'pending' ? [outcome] : [];
}

/**
 * What a card can be charged with at once, pence: Stripe's limits for pounds
 * (https://docs.stripe.com/currencies#minimum-and-maximum-charge-amounts).
 */
export const CARD_LIMITS = { least: 30, most: 99_999_999 } as const;

/** Which limit an amount (pence) breaks; 0 is never charged, and so breaks none. Wallets have none. */
export function brokenCardLimit(amount: number): 'amount_too_small' | 'amount_too_large' | undefined {
  if (amount === 0) return undefined;
  return amount < CARD_LIMITS.least ? 'amount_too_small' : amount > CARD_LIMITS.most ? 'amount_too_large' : undefined;
}

/** How long a buyer has to authenticate, milliseconds. */
export const AUTHENTICATION_MS = 15 * 60_000;

/** The buyer has to authenticate: recorded once, while the charge is open. */
export function requireAuthentication(
  state: Purchase,
  required: PaymentAuthenticationRequired['data'],
): PaymentAuthenticationRequired[] {
  return state.status === 'pending' && state.authentication === undefined
    ? [{ type: 'PaymentAuthenticationRequired', data: required }]
    : [];
}

/** The buyer failed to: recorded once, and only of a payment that waits for its buyer. */
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

/** The receiver as a gift's stream has it: never a phone number. */
export function receiverOf(receiver: PurchaseReceiver | undefined): Receiver {
  if (receiver?.user_id !== undefined) return { user_id: receiver.user_id };
  if (receiver?.phone_hash !== undefined) return { phone_hash: receiver.phone_hash };
  return {};
}

/** The event that issues one gift of a purchase: always the same. `own`: the gift's ids. */
export function issueGift(
  purchase: GiftsPurchased['data'],
  purchasedAt: string,
  index: number,
  own: Pick<GiftIds, 'message_id'>,
): GiftIssued {
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
      receiver: receiverOf(purchase.receivers[index]),
      purchased_at: purchasedAt,
      expires_on: purchase.expires_on,
    },
  };
}

/** The events that issue the gifts of a purchase, with each gift's id, in their order. */
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
 * Asks for a refund of some gifts of a purchase, or of all that belong to no refund yet; again: no event.
 * @throws Refusal `transaction_pending`, `gift_not_in_transaction`, `gift_already_refunded`, `nothing_to_refund` (also
 * of a declined purchase)
 */
export function requestRefund(
  state: MadePurchase,
  asked: Omit<RefundRequested['data'], 'gift_ids'> & { readonly gift_ids?: readonly string[] },
): RefundRequested[] {
  if (state.refunds.has(asked.refund_id)) return [];
  if (state.status === 'pending') throw new Refusal('transaction_pending');
  if (state.status === 'declined') throw new Refusal('nothing_to_refund');
  const own = deriveGiftIds(state.purchase.seed, state.purchase.receivers.length).map(({ gift_id }) => gift_id);
  const held = giftsInRefunds(state.refunds);
  if (asked.gift_ids !== undefined) {
    const known = new Set(own);
    if (asked.gift_ids.some((id) => !known.has(id))) throw new Refusal('gift_not_in_transaction');
    if (asked.gift_ids.some((id) => held.has(id))) throw new Refusal('gift_already_refunded');
  }
  const gift_ids = asked.gift_ids === undefined ? own.filter((id) => !held.has(id)) : [...new Set(asked.gift_ids)];
  if (gift_ids.length === 0) throw new Refusal('nothing_to_refund');
  const { refund_id, voided, reason } = asked;
  return [{ type: 'RefundRequested', data: { refund_id, gift_ids, voided, reason } }];
}

/** Starts a refund of exactly what the cancelled gifts cost: no event when it has been started already. */
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

/** What of the charge has not been refunded, pence. */
export function leftOfCharge(state: Purchase): number {
  if (state.status === 'none' || state.charge === undefined) return 0;
  return state.charge.amount - givenBack(state.refunds, state.charge.charge_id) - reversalsOf(state).refunded.total;
}

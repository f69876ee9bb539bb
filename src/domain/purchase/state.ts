/** A purchase as its events leave it, with its refunds and reversals. */
import type { PaymentMethod } from '../account.js';
import { copyWith } from '../copyWith.js';
import type { Aggregate, Happened } from '../decider.js';
import { evolveReversals, NO_REVERSALS, type Reversals } from '../disputes.js';
import { evolveOutside, evolveRefunds, type Refunds } from '../refund.js';
import type { GiftsPurchased, PaymentAuthenticationRequired, PaymentCharged, PurchaseEvent } from './events.js';

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

import type { PaymentMethod } from '../account.js';
import { copyWith } from '../../lib/copyWith.js';
import type { Aggregate, Happened } from '../decider.js';
import { evolveReversals, NO_REVERSALS, type Reversals } from './disputes.js';
import { evolveOutside, evolveRefunds, type Refunds } from './refund.js';
import { evolveSending, type Sending } from './sending.js';
import type { GiftsPurchased, PaymentAuthenticationRequired, PaymentCharged, PurchaseEvent } from './events.js';

/** `required`: time since which it is required (ISO 8601); `failed`: the provider's code, once it failed. */
export type Authentication = PaymentAuthenticationRequired['data'] & {
  readonly required: string;
  readonly failed?: string;
};

/** Fields of the payment method that determine which provider charges. */
export type ChargeBy = Pick<PaymentMethod, 'kind' | 'prepaid'>;

export type Purchase =
  | { readonly status: 'none' }
  | {
      readonly status: 'pending' | 'charged' | 'declined';
      readonly purchase: GiftsPurchased['data'];
      readonly purchasedAt: string;
      /** Time of the first request for the charge. */
      readonly chargeStartedAt?: string;
      /** Fields of the payment method at that time; absent: the charge is not requested yet. */
      readonly chargeBy?: ChargeBy;
      readonly charge?: PaymentCharged['data'];
      readonly refunds: Refunds;
      readonly authentication?: Authentication;
      readonly reversals?: Reversals;
      /** State of scheduled sending; absent: receivers are notified at once. */
      readonly sending?: Sending;
    };

export type MadePurchase = Exclude<Purchase, { status: 'none' }>;

export const purchaseAggregate: Aggregate<Purchase, PurchaseEvent> = {
  initial: { status: 'none' },
  evolve(state: Purchase, event: Happened<PurchaseEvent>): Purchase {
    if (event.type === 'GiftsPurchased')
      return {
        status: 'pending',
        purchase: event.data,
        purchasedAt: event.at,
        refunds: new Map(),
        ...(event.data.send_at === undefined
          ? {}
          : { sending: { status: 'scheduled', sendAt: event.data.send_at } as const }),
      };
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
      case 'SendRescheduled':
      case 'SendStarted':
      case 'SendFinished':
        return { ...state, sending: evolveSending(state.sending, event) };
      default:
        return (event satisfies never, state);
    }
  },
};

export const reversalsOf = ({ reversals }: Pick<MadePurchase, 'reversals'>): Reversals => reversals ?? NO_REVERSALS;

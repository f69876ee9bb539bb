/** What became of a purchase's money (docs/api/purchases.md#transaction-status). Money is pence. */
import type { Happened } from '../decider.js';
import type { Dispute, DisputeClosed, DisputeOpened, RefundedAtProvider } from './disputes.js';
import type { PaymentState } from '../gift/decisions.js';
import type { GiftsRefunded, RefundFailed } from './refund.js';

export const TRANSACTION_STATUSES = [
  'pending',
  'charged',
  'declined',
  'disputed',
  'partially_refunded',
  'refunded',
] as const;

export type TransactionStatus = (typeof TRANSACTION_STATUSES)[number];

export type RefundedMoneyEvent = GiftsRefunded | RefundFailed | RefundedAtProvider | DisputeOpened | DisputeClosed;

/** Refunds and disputes of a purchase as plain JSON, as the read model `reversals` stores them. */
export interface RefundedMoney {
  /** Refunds that the provider accepted, by the refund's id. */
  readonly refunds: Readonly<Record<string, { readonly amount: number; readonly gifts: number }>>;
  /** Sum of the external refunds, which we did not request. */
  readonly external: number;
  /** Statuses of the disputes, by their ids. */
  readonly disputes: Readonly<Record<string, Dispute['status']>>;
}

const NOTHING: RefundedMoney = { refunds: {}, external: 0, disputes: {} };

export function evolveRefundedMoney(
  before: RefundedMoney | undefined,
  event: Happened<RefundedMoneyEvent>,
): RefundedMoney {
  const state = before ?? NOTHING;
  switch (event.type) {
    case 'GiftsRefunded': {
      const { refund_id, amount, gift_ids } = event.data;
      // A refund without gifts is of a charge that bought nothing, alongside the purchase's own charge.
      return gift_ids.length === 0
        ? state
        : { ...state, refunds: { ...state.refunds, [refund_id]: { amount, gifts: gift_ids.length } } };
    }
    case 'RefundFailed': {
      const { [event.data.refund_id]: _, ...refunds } = state.refunds;
      return { ...state, refunds };
    }
    case 'RefundedAtProvider':
      return { ...state, external: event.data.total };
    case 'DisputeOpened':
      return { ...state, disputes: { ...state.disputes, [event.data.dispute_id]: 'open' } };
    case 'DisputeClosed':
      return { ...state, disputes: { ...state.disputes, [event.data.dispute_id]: event.data.outcome } };
    default:
      return (event satisfies never, state);
  }
}

/** @param bought `total`: pence; `count`: number of its gifts */
export function transactionStatus(
  { payment, total, count }: { readonly payment: PaymentState; readonly total: number; readonly count: number },
  refundedMoney: RefundedMoney | undefined,
): TransactionStatus {
  if (payment !== 'charged' || refundedMoney === undefined) return payment;
  const refunds = Object.values(refundedMoney.refunds);
  const amount = refunds.reduce((sum, refund) => sum + refund.amount, refundedMoney.external);
  const gifts = refunds.reduce((sum, refund) => sum + refund.gifts, 0);
  if (total === 0 ? gifts >= count : amount >= total) return 'refunded';
  if (Object.values(refundedMoney.disputes).some((status) => status !== 'won')) return 'disputed';
  return amount > 0 || gifts > 0 ? 'partially_refunded' : 'charged';
}

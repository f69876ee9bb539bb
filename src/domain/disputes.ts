/**
 * Reversals: disputes, and external refunds, which are made at the provider and not by us. Events of the transaction's
 * stream, each once, however often and in whatever order the provider reports it. Money is pence.
 */
import type { DomainEvent } from './decider.js';

// Events

/** An external refund. `total`: all external refunds so far; `amount`: how much more that is than was known. */
export type RefundedAtProvider = DomainEvent<
  'RefundedAtProvider',
  {
    readonly provider: string;
    readonly charge_id: string;
    readonly amount: number;
    readonly total: number;
  }
>;

/**
 * Gifts are cancelled for external refunds. `total`: of the refunds that this answers; `cancelled`: gifts so far,
 * `vouchered` of them with a code that is out; `difference`: what no unredeemed gift makes up for. Where a person must
 * see to that, the work is parked as well.
 */
export type ProviderRefundSettled = DomainEvent<
  'ProviderRefundSettled',
  {
    readonly total: number;
    readonly cancelled: number;
    readonly vouchered: number;
    readonly difference: number;
  }
>;

/** The buyer's bank claims the money, or inquires about it. `reason` is the provider's. The gifts are blocked. */
export type DisputeOpened = DomainEvent<
  'DisputeOpened',
  {
    readonly provider: string;
    readonly dispute_id: string;
    readonly amount: number;
    readonly reason: string;
  }
>;

/** The dispute is over. `won`: the money stays, also where an inquiry came to nothing. */
export type DisputeClosed = DomainEvent<
  'DisputeClosed',
  { readonly provider: string; readonly dispute_id: string; readonly outcome: 'won' | 'lost' }
>;

/** Every gift is blocked by the dispute, or freed of it. `gifts`: how many it blocks now. */
export type DisputeSettled = DomainEvent<
  'DisputeSettled',
  { readonly dispute_id: string; readonly blocked: boolean; readonly gifts: number }
>;

/** Whether a person must see to it: gifts did not make up for the money, or codes of cancelled ones are out. */
export const fallsShort = ({ difference, vouchered }: ProviderRefundSettled['data']): boolean =>
  difference > 0 || vouchered > 0;

export type ReversalEvent = RefundedAtProvider | ProviderRefundSettled | DisputeOpened | DisputeClosed | DisputeSettled;

// State

/** A dispute. `settled`: its gifts are blocked or freed, as far as is known. */
export interface Dispute {
  readonly dispute_id: string;
  readonly reason: string;
  readonly status: 'open' | 'won' | 'lost';
  readonly settled: boolean;
}

/** Whether the buyer's bank has the money or may take it: then we refund nothing. */
export const isDisputed = ({ disputes }: Reversals): boolean => disputes.some(({ status }) => status !== 'won');

/** The reversals of a transaction. */
export interface Reversals {
  readonly disputes: readonly Dispute[];
  /** External refunds, and what of them the gifts have been settled for. */
  readonly refunded: { readonly total: number; readonly settled: number };
}

export const NO_REVERSALS: Reversals = { disputes: [], refunded: { total: 0, settled: 0 } };

export function evolveReversals(state: Reversals, event: ReversalEvent): Reversals {
  switch (event.type) {
    case 'RefundedAtProvider':
      return { ...state, refunded: { ...state.refunded, total: event.data.total } };
    case 'ProviderRefundSettled':
      return { ...state, refunded: { ...state.refunded, settled: event.data.total } };
    case 'DisputeOpened': {
      const { dispute_id, reason } = event.data;
      return { ...state, disputes: [...state.disputes, { dispute_id, reason, status: 'open', settled: false }] };
    }
    case 'DisputeClosed': {
      const { dispute_id, outcome } = event.data;
      const known = disputeOf(state, dispute_id);
      // A lost one leaves its gifts blocked, as they are.
      const closed: Dispute = {
        dispute_id,
        reason: known?.reason ?? '',
        status: outcome,
        settled: outcome === 'lost' && (known?.settled ?? false),
      };
      return { ...state, disputes: [...state.disputes.filter((one) => one !== known), closed] };
    }
    case 'DisputeSettled':
      return {
        ...state,
        disputes: state.disputes.map((one) =>
          one.dispute_id === event.data.dispute_id ? { ...one, settled: true } : one,
        ),
      };
    default:
      return (event satisfies never, state);
  }
}

function disputeOf(state: Reversals, disputeId: string): Dispute | undefined {
  return state.disputes.find(({ dispute_id }) => dispute_id === disputeId);
}

// Decisions

/**
 * The provider reports how much of a charge has been refunded in all; `ours`: what we have asked it to. No event where
 * the rest is known, or less: messages come in any order.
 */
export function noteProviderRefund(
  state: Reversals,
  { provider, charge_id, total, ours }: { provider: string; charge_id: string; total: number; ours: number },
): RefundedAtProvider[] {
  const outside = total - ours;
  const amount = outside - state.refunded.total;
  return amount > 0 ? [{ type: 'RefundedAtProvider', data: { provider, charge_id, amount, total: outside } }] : [];
}

/** The gifts answer external refunds: no event where they did before. */
export function settleProviderRefund(
  state: Reversals,
  settled: ProviderRefundSettled['data'],
): ProviderRefundSettled[] {
  return settled.total > state.refunded.settled ? [{ type: 'ProviderRefundSettled', data: settled }] : [];
}

/** A dispute is opened: recorded once, and not after its end. */
export function openDispute(state: Reversals, dispute: DisputeOpened['data']): DisputeOpened[] {
  return disputeOf(state, dispute.dispute_id) === undefined ? [{ type: 'DisputeOpened', data: dispute }] : [];
}

/**
 * A dispute is closed: recorded once, also where its opening is not recorded yet. A lost one may still be won, on
 * appeal; a won one stays so, since messages come late.
 */
export function closeDispute(state: Reversals, dispute: DisputeClosed['data']): DisputeClosed[] {
  const known = disputeOf(state, dispute.dispute_id);
  const news = known === undefined || known.status === 'open' || (known.status === 'lost' && dispute.outcome === 'won');
  return news ? [{ type: 'DisputeClosed', data: dispute }] : [];
}

/** Its gifts are blocked or freed: no event where that was recorded. */
export function settleDispute(
  state: Reversals,
  { dispute_id, blocked, gifts }: DisputeSettled['data'],
): DisputeSettled[] {
  const dispute = disputeOf(state, dispute_id);
  return dispute === undefined || dispute.settled
    ? []
    : [{ type: 'DisputeSettled', data: { dispute_id, blocked, gifts } }];
}

/** One step about a reversal. `key` is the same for the same step. */
export type ReversalStep = { readonly key: string } & (
  | { readonly step: 'settle dispute'; readonly dispute: Dispute }
  | { readonly step: 'settle provider refund'; readonly total: number }
);

export const disputeKey = (disputeId: string): string => `dispute:${disputeId}`;
/** The key of the step of external refunds: one for each purchase. */
export const PROVIDER_REFUND_KEY = 'provider-refund';

export function reversalSteps({ disputes, refunded }: Reversals): readonly ReversalStep[] {
  return [
    ...disputes
      .filter((one) => !one.settled)
      .map((dispute) => ({ key: disputeKey(dispute.dispute_id), step: 'settle dispute', dispute }) as const),
    ...(refunded.total > refunded.settled
      ? [{ key: PROVIDER_REFUND_KEY, step: 'settle provider refund', total: refunded.total } as const]
      : []),
  ];
}

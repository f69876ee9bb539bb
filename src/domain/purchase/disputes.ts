/**
 * Disputes and external refunds (made at the provider, not by us), as events of the transaction's stream. Provider
 * events about them come in any order, and repeatedly. Money is pence.
 */
import type { DomainEvent } from '../decider.js';

// Events

/** `total`: all external refunds so far; `amount`: the part of it that is new. */
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
 * Gifts were cancelled for external refunds of `total`. `cancelled`: number of gifts cancelled so far; `vouchered`:
 * number of those whose code is out; `difference`: refunded money without an unredeemed gift to cancel.
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

/** The buyer's bank claims the money, or inquires about it. `reason` is the provider's code. */
export type DisputeOpened = DomainEvent<
  'DisputeOpened',
  {
    readonly provider: string;
    readonly dispute_id: string;
    readonly amount: number;
    readonly reason: string;
  }
>;

/** `won`: the money stays with us; also the outcome of an inquiry without a claim. */
export type DisputeClosed = DomainEvent<
  'DisputeClosed',
  { readonly provider: string; readonly dispute_id: string; readonly outcome: 'won' | 'lost' }
>;

/** The dispute's gifts are blocked or unblocked. `gifts`: number of gifts that the dispute blocks now. */
type DisputeSettled = DomainEvent<
  'DisputeSettled',
  { readonly dispute_id: string; readonly blocked: boolean; readonly gifts: number }
>;

export type ReversalEvent = RefundedAtProvider | ProviderRefundSettled | DisputeOpened | DisputeClosed | DisputeSettled;

// State

/** `settled`: the gifts are blocked or unblocked, as the status requires. */
export interface Dispute {
  readonly dispute_id: string;
  readonly reason: string;
  readonly status: 'open' | 'won' | 'lost';
  readonly settled: boolean;
}

/** True while the buyer's bank has the money of the purchase or may take it. */
export const isDisputed = ({ disputes }: Reversals): boolean => disputes.some(({ status }) => status !== 'won');

export interface Reversals {
  readonly disputes: readonly Dispute[];
  /** `settled`: the part of `total` that gifts were cancelled for. */
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

/** True where a person must act: the gifts did not cover the money, or codes of cancelled gifts are out. */
export const fallsShort = ({ difference, vouchered }: ProviderRefundSettled['data']): boolean =>
  difference > 0 || vouchered > 0;

/** `total`: sum of all refunds of the charge; `ours`: sum of those that we requested. */
export function noteProviderRefund(
  state: Reversals,
  { provider, charge_id, total, ours }: { provider: string; charge_id: string; total: number; ours: number },
): RefundedAtProvider[] {
  const outside = total - ours;
  const amount = outside - state.refunded.total;
  return amount > 0 ? [{ type: 'RefundedAtProvider', data: { provider, charge_id, amount, total: outside } }] : [];
}

export function settleProviderRefund(
  state: Reversals,
  settled: ProviderRefundSettled['data'],
): ProviderRefundSettled[] {
  return settled.total > state.refunded.settled ? [{ type: 'ProviderRefundSettled', data: settled }] : [];
}

/** No event for a dispute that is known, not even after its end. */
export function openDispute(state: Reversals, dispute: DisputeOpened['data']): DisputeOpened[] {
  return disputeOf(state, dispute.dispute_id) === undefined ? [{ type: 'DisputeOpened', data: dispute }] : [];
}

/**
 * Records the end of a dispute even before its opening is recorded. A lost dispute may still be won on appeal; a won
 * one stays won.
 */
export function closeDispute(state: Reversals, dispute: DisputeClosed['data']): DisputeClosed[] {
  const known = disputeOf(state, dispute.dispute_id);
  const changes =
    known === undefined || known.status === 'open' || (known.status === 'lost' && dispute.outcome === 'won');
  return changes ? [{ type: 'DisputeClosed', data: dispute }] : [];
}

export function settleDispute(
  state: Reversals,
  { dispute_id, blocked, gifts }: DisputeSettled['data'],
): DisputeSettled[] {
  const dispute = disputeOf(state, dispute_id);
  return dispute === undefined || dispute.settled
    ? []
    : [{ type: 'DisputeSettled', data: { dispute_id, blocked, gifts } }];
}

/** A step that a process manager has to take; steps with the same `key` are the same step. */
export type ReversalStep = { readonly key: string } & (
  | { readonly step: 'settle dispute'; readonly dispute: Dispute }
  | { readonly step: 'settle provider refund'; readonly total: number }
);

export const disputeKey = (disputeId: string): string => `dispute:${disputeId}`;
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

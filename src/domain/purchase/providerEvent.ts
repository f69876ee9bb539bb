/** Provider events about a transaction, which may be repeated, late or reordered. */
import { closeDispute, noteProviderRefund, openDispute } from './disputes.js';
import type { PurchaseEvent } from './events.js';
import { reversalsOf, type MadePurchase } from './state.js';
import { failAuthentication, settleCharge } from './decisions.js';
import { failRefund, refundedMoney, lateChargeRefundId, refundLateCharge } from './refund.js';

/** Money is pence; `charge_id`, `dispute_id` and `refund_ref` are the provider's ids. */
export type ProviderEvent = { readonly provider: string } & (
  | { readonly kind: 'succeeded'; readonly charge_id: string; readonly amount: number }
  | { readonly kind: 'failed'; readonly charge_id: string; readonly code: string }
  /**
   * `total`: sum of all refunds of this charge. `others`: external ones, read at the provider where `unsureCharge`
   * requires it.
   */
  | { readonly kind: 'refunded'; readonly charge_id: string; readonly total: number; readonly others?: number }
  /** Failure of a refund of ours that the provider had accepted. `others`: as for `refunded`. */
  | {
      readonly kind: 'refund failed';
      readonly refund_id: string;
      readonly attempt: number;
      readonly refund_ref: string;
      readonly code: string;
      readonly others?: number;
    }
  | {
      readonly kind: 'dispute opened';
      readonly charge_id: string;
      readonly dispute_id: string;
      readonly amount: number;
      readonly reason: string;
    }
  | {
      readonly kind: 'dispute closed';
      readonly charge_id: string;
      readonly dispute_id: string;
      readonly amount: number;
      readonly reason: string;
      readonly outcome: 'won' | 'lost';
    }
);

export function decideProviderEvent(state: MadePurchase, providerEvent: ProviderEvent): PurchaseEvent[] {
  const money = reversalsOf(state);
  const { provider } = providerEvent;
  switch (providerEvent.kind) {
    case 'succeeded':
      return succeeded(state, providerEvent);
    case 'failed':
      return failAuthentication(state, { provider, payment_id: providerEvent.charge_id, code: providerEvent.code });
    case 'refunded': {
      const { charge_id, total, others } = providerEvent;
      if (state.status === 'declined' || boughtNothing(state, charge_id)) return [];
      return noteProviderRefund(money, {
        provider,
        charge_id,
        total,
        ours: others === undefined ? refundedMoney(state.refunds, charge_id) : total - others,
      });
    }
    case 'refund failed': {
      const { others } = providerEvent;
      const charge_id = unsureCharge(state, providerEvent);
      // Before the failure was reported, an external refund may have been mistaken for this one.
      return [
        ...failed(state, providerEvent),
        ...(charge_id === undefined || others === undefined
          ? []
          : noteProviderRefund(money, { provider, charge_id, total: others, ours: 0 })),
      ];
    }
    case 'dispute opened': {
      const { charge_id, dispute_id, amount, reason } = providerEvent;
      if (boughtNothing(state, charge_id)) return [];
      return openDispute(money, { provider, dispute_id, amount, reason });
    }
    case 'dispute closed': {
      const { charge_id, dispute_id, amount, reason, outcome } = providerEvent;
      if (boughtNothing(state, charge_id) && !money.disputes.some((one) => one.dispute_id === dispute_id)) return [];
      return [
        ...openDispute(money, { provider, dispute_id, amount, reason }),
        ...closeDispute(money, { provider, dispute_id, outcome }),
      ];
    }
    default:
      return providerEvent satisfies never;
  }
}

/**
 * The charge whose external refunds must be read at the provider. A reported total may include a refund of ours that
 * was refused or failed since. An external refund may have been mistaken for a failed one of ours.
 */
export function unsureCharge(state: MadePurchase, providerEvent: ProviderEvent): string | undefined {
  if (providerEvent.kind === 'refund failed') {
    const refund = state.refunds.get(providerEvent.refund_id);
    return refund !== undefined &&
      'started' in refund &&
      !boughtNothing(state, refund.started.charge_id) &&
      failed(state, providerEvent).length > 0
      ? refund.started.charge_id
      : undefined;
  }
  if (providerEvent.kind !== 'refunded' || boughtNothing(state, providerEvent.charge_id)) return undefined;
  const { charge_id, total } = providerEvent;
  const doubtful = [...state.refunds.values()].some(
    (refund) =>
      'started' in refund &&
      refund.started.charge_id === charge_id &&
      (refund.status === 'refused' || refund.started.attempt > 1),
  );
  return doubtful && total > refundedMoney(state.refunds, charge_id) + reversalsOf(state).refunded.total
    ? charge_id
    : undefined;
}

function failed(
  { refunds }: MadePurchase,
  { provider, refund_id, attempt, refund_ref, code }: Extract<ProviderEvent, { kind: 'refund failed' }>,
): PurchaseEvent[] {
  return failRefund(refunds.get(refund_id), { attempt, provider, refund_ref, code });
}

/** True for a charge other than the purchase's own: it is refunded whole, and no gift depends on it. */
function boughtNothing({ charge, refunds }: MadePurchase, chargeId: string): boolean {
  return (charge !== undefined && charge.charge_id !== chargeId) || refunds.has(lateChargeRefundId(chargeId));
}

/**
 * A charge after a decline, and a second charge, are refunded at once. A charge of another amount is left to the charge
 * step.
 */
function succeeded(
  state: MadePurchase,
  { provider, charge_id, amount }: Extract<ProviderEvent, { kind: 'succeeded' }>,
): PurchaseEvent[] {
  switch (state.status) {
    case 'pending':
      return amount === state.purchase.total
        ? settleCharge(state, { type: 'PaymentCharged', data: { amount, provider, charge_id } })
        : [];
    case 'charged':
      if (state.charge?.charge_id === charge_id) return [];
      return refundLateCharge(state.refunds, {
        provider,
        charge_id,
        amount,
        payment_reference: state.purchase.payment_reference,
        cause: 'charged a second time',
      });
    case 'declined':
      return refundLateCharge(state.refunds, {
        provider,
        charge_id,
        amount,
        payment_reference: state.purchase.payment_reference,
        cause: 'charged after the purchase was declined',
      });
    default:
      return state.status satisfies never;
  }
}

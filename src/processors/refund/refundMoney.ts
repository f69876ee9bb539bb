/** Refunds money once per attempt, however often it is requested. */
import { NO_REFUND } from '../../commands/paymentAction.js';
import {
  PAYMENT_REQUESTS,
  type RefundLookupReply,
  type RefundReply,
  type RefundRequest,
} from '../../messages/payments.js';
import { askWorker, type Reason, type StepDeps } from '../runner/index.js';
import type { WalletPayments } from '../purchase/walletPayments.js';

export interface RefundMoneyDeps extends Pick<StepDeps, 'bus' | 'now' | 'mayAct'> {
  readonly wallets: WalletPayments;
  readonly retryPolicy: Pick<StepDeps['retryPolicy'], 'answerMs' | 'askAgainMs'>;
}

/**
 * The refund is requested of a card's provider under the attempt's key for 20 h from `started_at`; later it is only
 * looked up. `never`: it was certainly not made, so a new attempt is safe. `by hand`: it was not made, but money was
 * refunded at the provider since, perhaps in its place. @param fresh whether this attempt was never requested before
 * @throws Error to be retried
 */
export async function refundMoney(
  deps: RefundMoneyDeps,
  request: RefundRequest,
  fresh: boolean,
  reason: Reason,
): Promise<RefundReply | { readonly outcome: 'never' } | { readonly outcome: 'by hand' }> {
  const { provider, refund_id, transaction_id, amount, payment_reference, started_at } = request;
  const given = (refund_ref: string): RefundReply => ({ outcome: 'refunded', provider, refund_ref, simulated: false });
  if (amount === 0) return given(`free-${refund_id}`);
  // The provider of the charge decides, since the payment method may have been changed.
  if (provider === 'invoice') return given(`invoice-${refund_id}`);
  deps.mayAct();
  if (provider === 'wallet') {
    const decided = await deps.wallets.refund(payment_reference, transaction_id, amount, refund_id, reason);
    return decided === 'credited'
      ? given(`wallet-${refund_id}`)
      : { outcome: 'refused', provider, code: 'more_than_was_debited', simulated: false };
  }
  const late = deps.now() - Date.parse(started_at) >= deps.retryPolicy.askAgainMs;
  if (late || !fresh) {
    const found = await lookUp(deps, request);
    if (found.outcome !== 'never') return found;
    if ((found.others ?? 0) > 0) return { outcome: 'by hand' };
    if (late) return found;
  }
  return askWorker(deps, PAYMENT_REQUESTS.refund, request);
}

/**
 * Whether money of the charge was refunded since a refused attempt, perhaps in its place. @throws Error to be retried
 */
export async function wasMadeConcurrently(deps: RefundMoneyDeps, request: RefundRequest): Promise<boolean> {
  if (!hasLedger(request)) return false;
  // The provider may list the refused attempt itself; under the next attempt's number it counts among the others.
  const found = await lookUp(deps, { ...request, attempt: request.attempt + 1 });
  return found.outcome === 'refunded' || (found.outcome === 'never' && (found.others ?? 0) > 0);
}

/** Sum of the charge's external refunds, of all time, in pence. @throws Error to be retried */
export async function refundedByOthers(deps: RefundMoneyDeps, request: RefundRequest): Promise<number> {
  if (!hasLedger(request)) return 0;
  const found = await lookUp(deps, { ...request, ...NO_REFUND });
  return found.outcome === 'never' ? (found.others ?? 0) : 0;
}

const hasLedger = ({ provider }: RefundRequest): boolean => provider !== 'wallet' && provider !== 'invoice';

async function lookUp(
  deps: RefundMoneyDeps,
  { refund_id, attempt, provider, charge_id, started_at }: RefundRequest,
): Promise<RefundLookupReply> {
  return askWorker(deps, PAYMENT_REQUESTS.lookUpRefund, { refund_id, attempt, provider, charge_id, started_at });
}

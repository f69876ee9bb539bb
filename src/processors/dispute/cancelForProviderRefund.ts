import type { IssuedGift } from '../../domain/gift/state.js';
import { cancel } from '../../domain/gift/decisions.js';
import { PROVIDER_REFUND_KEY, type ProviderRefundSettled } from '../../domain/purchase/disputes.js';
import type { MadePurchase } from '../../domain/purchase/state.js';
import { madeByHand } from '../../domain/purchase/refund.js';
import { inParallel } from '../../lib/async/inParallel.js';
import { purchaseOf } from './replacements.js';
import { AT_ONCE, changeGift, type GiftChangeDeps, type VisitedGift, visitGifts } from '../purchase/giftChanges.js';
import type { Cause } from '../runner/index.js';

/** Gifts cancelled with this cause count as done, so a repeat of the step cancels no more. */
const CAUSE = { reason: 'refunded at the provider', refund_id: PROVIDER_REFUND_KEY };

/**
 * Cancels as many unredeemed gifts as the external refunds had paid for. First come gifts of refunds that the provider
 * refused: they are cancelled already, and the refund was made by hand. Then gifts without a voucher code, the last of
 * the purchase first. A replacement counts in place of its gift.
 * @param total all external refunds, pence
 * @throws UnavailableError; ConflictError
 */
export async function cancelForProviderRefund(
  deps: GiftChangeDeps,
  purchase: MadePurchase,
  requested: Cause,
  total: number,
): Promise<ProviderRefundSettled['data']> {
  if (purchase.status === 'declined') return { total, cancelled: 0, vouchered: 0, difference: 0 };
  const price = purchase.purchase.sale_price;
  const required = price > 0 ? Math.floor(total / price) : 0;
  const candidates: VisitedGift[] = [];
  let cancelled = 0;
  let vouchered = 0;
  const count = ({ voucher }: IssuedGift): void => {
    cancelled++;
    if (voucher !== undefined) vouchered++;
  };
  let byHand = 0;
  const visit = async (found: VisitedGift): Promise<void> => {
    const { refundId, status, replacedBy } = found.gift;
    if (replacedBy !== undefined) await visitGifts(deps, await purchaseOf(deps, replacedBy), visit);
    else if (refundId === CAUSE.refund_id) count(found.gift);
    else if (refundId !== undefined && madeByHand(purchase.refunds.get(refundId))) byHand++;
    else if (status === 'issued') candidates.push(found);
  };
  await visitGifts(deps, purchase, visit);
  cancelled += Math.min(byHand, Math.max(0, required - cancelled));
  candidates.sort(
    (one, other) =>
      Number(one.gift.voucher !== undefined) - Number(other.gift.voucher !== undefined) ||
      other.gift.issued.index - one.gift.issued.index,
  );

  const reason = { commandId: `provider-refund-${purchase.purchase.transaction_id}`, cause: requested };
  // A gift that is redeemed concurrently is replaced by the next one.
  for (let from = 0; cancelled < required && from < candidates.length;) {
    const next = candidates.slice(from, from + required - cancelled);
    from += next.length;
    await inParallel(next, AT_ONCE, async (found) => {
      const { before, changed } = await changeGift(deps, found, reason, (gift) => cancel(gift, CAUSE));
      if (changed) count(before);
    });
  }
  return { total, cancelled, vouchered, difference: Math.max(0, total - cancelled * price) };
}

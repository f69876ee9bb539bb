import type { RefundStatus } from '../../commands/refundGifts.js';
import type { SkippedGifts, SkipReason } from '../../domain/purchase/refund.js';

/** A refund as support sees it. Money is pence. */
export interface RefundView extends Omit<RefundStatus, 'giftIds' | 'ref'> {
  readonly transaction_id: string;
  readonly gift_ids: readonly string[];
  readonly provider_ref: string | null;
}

export function refundView(transaction_id: string, { giftIds, ref, ...refund }: RefundStatus): RefundView {
  return { transaction_id, ...refund, gift_ids: giftIds, provider_ref: ref };
}

/** Why a refund gave nothing back; `undefined`: it did, or may still do. */
export function whyNotRefunded({
  status,
  provider,
  code,
  kept,
}: Pick<RefundStatus, 'status' | 'provider' | 'code' | 'kept'>): string | undefined {
  if (status === 'refused')
    return `${provider} refuses: ${code}; the gifts are cancelled and the refund is parked (gift parked list)`;
  return status === 'nothing' ? `nothing was refunded: ${whyNoneCancelled(kept)}` : undefined;
}

const SKIPPED: Readonly<Record<SkipReason, string>> = {
  redeemed: 'redeemed',
  code_out: 'with a voucher: say voided once its code is worthless',
  disputed: 'with a disputed payment',
  cancelled: 'cancelled before',
};

/** Why no gift of a refund could be cancelled, with the number of gifts of each cause. */
export function whyNoneCancelled(skipped: SkippedGifts): string {
  const causes = Object.entries(skipped).map(([why, ids]) => `${ids.length} ${SKIPPED[why as SkipReason]}`);
  return `no gift could be cancelled${causes.length === 0 ? '' : ` (${causes.join(', ')})`}`;
}

/** Whether a refund has ended, successfully or not. */
export const hasEnded = ({ status }: Pick<RefundStatus, 'status'>): boolean =>
  status !== 'requested' && status !== 'started';

import type { RefundStatus } from '../../commands/refundGifts.js';

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
}: Pick<RefundStatus, 'status' | 'provider' | 'code'>): string | undefined {
  if (status === 'refused')
    return `${provider} refuses: ${code}; the gifts are cancelled and the refund is parked (gift parked list)`;
  return status === 'nothing' ? 'nothing was refunded: no gift could be cancelled' : undefined;
}

/** Whether a refund has ended, successfully or not. */
export const hasEnded = ({ status }: Pick<RefundStatus, 'status'>): boolean =>
  status !== 'requested' && status !== 'started';

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

/** Whether a refund has ended, successfully or not. */
export const hasEnded = ({ status }: Pick<RefundStatus, 'status'>): boolean =>
  status !== 'requested' && status !== 'started';

/** A refund as support sees it. */
import type { RefundStatus } from '../../commands/refundGifts.js';

/** Money is pence. */
export interface RefundView extends Omit<RefundStatus, 'giftIds' | 'ref'> {
  readonly transaction_id: string;
  readonly gift_ids: readonly string[];
  /** The provider's id of it. */
  readonly provider_ref: string | null;
}

export function refundView(transaction_id: string, { giftIds, ref, ...refund }: RefundStatus): RefundView {
  return { transaction_id, ...refund, gift_ids: giftIds, provider_ref: ref };
}

/** Whether the refund has ended, well or not; otherwise a running service goes on with it. */
export const hasEnded = ({ status }: Pick<RefundStatus, 'status'>): boolean =>
  status !== 'requested' && status !== 'started';

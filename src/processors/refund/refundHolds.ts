/**
 * Gifts that a refund was asked for and has not decided on: they may be cancelled at any moment, so nobody is told of
 * them until it has.
 */
import type { RefundTrigger } from './manager.js';

/** All of them. */
export interface RefundHolds {
  /**
   * Takes in one more event of a refund. @returns the gifts that may be told of again, or are cancelled by now: it has
   * decided on all, or is parked
   */
  apply(event: RefundTrigger, refundId: string): readonly string[];
  has(giftId: string): boolean;
}

/** None. */
export function openRefundHolds(): RefundHolds {
  const asked = new Map<string, readonly string[]>();
  const refundOf = new Map<string, string>();
  return {
    apply(event, refundId) {
      if (event.type === 'RefundRequested') {
        const { gift_ids } = event.data;
        asked.set(refundId, gift_ids);
        for (const giftId of gift_ids) refundOf.set(giftId, refundId);
        return [];
      }
      const freed = (asked.get(refundId) ?? []).filter((giftId) => refundOf.get(giftId) === refundId);
      asked.delete(refundId);
      for (const giftId of freed) refundOf.delete(giftId);
      return freed;
    },
    has: (giftId) => refundOf.has(giftId),
  };
}

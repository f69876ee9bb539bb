/** The read model `gifts`: one document a gift, from the moment it is bought. What a purchase's payment changes for all its gifts is joined when read. */
import type { Receiver } from '../domain/gift.js';

/** The current or latest redemption of a gift. Times are ISO 8601, UTC, milliseconds. */
export interface RedemptionDocument {
  readonly id: string;
  readonly location_id: string;
  readonly redeemed: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

/** The gift's voucher. Secret: `code`, `pin`. */
export interface VoucherDocument {
  readonly id: string;
  readonly code: string;
  readonly pin: string | null;
  readonly segment_id: string;
  readonly expires_at: string;
  readonly created_at: string;
}

/** `{giftId}`. */
export interface GiftDocument {
  readonly transaction_id: string;
  readonly index: number;
  readonly message_id: string;
  readonly receiver: Receiver;
  readonly claimed_by?: string;
  readonly cancelled?: true;
  readonly redemption?: RedemptionDocument;
  readonly voucher?: VoucherDocument;
  /** ISO 8601, UTC, milliseconds: the gift's own last event. */
  readonly updated_at: string;
}

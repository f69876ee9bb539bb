/** The read model `transactions`: one document a purchase; its gifts' ids follow from `seed` and `count`. */
import type { PaymentState } from '../domain/gift.js';

/** `{transactionId}`. Secret: `seed`. Personal: `message`. Money is pence, times are ISO 8601, UTC, milliseconds. */
export interface TransactionDocument {
  readonly buyer_id: string;
  readonly seed: string;
  readonly count: number;
  readonly product_id: string;
  readonly brand_id: string;
  readonly sale_price: number;
  readonly total: number;
  readonly message: string;
  readonly expires_on: string;
  readonly payment: PaymentState;
  readonly settled_at?: string;
  readonly created_at: string;
  readonly updated_at: string;
}

/** What purchases are found by (docs/support.md#finding-purchases). */
import { accountStream } from '../../domain/account.js';
import { catalogueStream } from '../../domain/catalogue.js';
import type { TransactionStatus } from '../../domain/purchase/status.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { TransactionDocument } from '../../projections/transactions.js';
import type { TimeRange } from '../ranges/range.js';
import { isWithin } from '../ranges/timeBounds.js';
import { type UnknownFilter, unknownFilter } from '../ranges/unknownFilter.js';

/** Filters, all of which must match. */
export interface PurchaseFilter extends Pick<TimeRange, 'from' | 'to'> {
  /** Id of the buyer. */
  readonly buyer?: string | undefined;
  /** Id of the product. */
  readonly product?: string | undefined;
  readonly status?: TransactionStatus | undefined;
  /** Least price of one gift, in pence. */
  readonly min?: number | undefined;
  /** Highest price of one gift, in pence. */
  readonly max?: number | undefined;
  /** The caller's own name for the purchase (docs/api/purchases.md#order-references). */
  readonly reference_id?: string | undefined;
  /** The provider's id of the charge; found by one reading of the log. */
  readonly charge?: string | undefined;
}

/** What each filter chooses, in words for help and API. */
export const PURCHASE_FILTERS = {
  buyer: 'purchases of this user, by the id',
  product: 'purchases of this product, by the id',
  status: 'purchases of this status',
  min: 'purchases whose gifts cost at least so many pence each',
  max: 'purchases whose gifts cost at most so many pence each',
  reference_id: 'purchases that were made with this order reference',
  charge: "the purchase of this charge, by the payment provider's id",
} as const satisfies Readonly<Record<Exclude<keyof PurchaseFilter, 'from' | 'to'>, string>>;

/** @throws UnavailableError */
export async function unknownPurchaseFilter(
  events: Pick<EventStore, 'read'>,
  { buyer, product }: PurchaseFilter,
): Promise<UnknownFilter | undefined> {
  return unknownFilter(events, [
    ...(buyer === undefined ? [] : [{ name: 'buyer', id: buyer, stream: accountStream('user', buyer) }]),
    ...(product === undefined ? [] : [{ name: 'product', id: product, stream: catalogueStream('product', product) }]),
  ]);
}

/** Whether a purchase, bought at a time, matches all filters but status and charge. */
export function matches(
  purchase: Pick<TransactionDocument, 'buyer_id' | 'product_id' | 'sale_price' | 'reference_id'>,
  at: string,
  filter: PurchaseFilter,
): boolean {
  const { buyer_id, product_id, sale_price } = purchase;
  const { buyer = buyer_id, product = product_id, min = sale_price, max = sale_price, reference_id } = filter;
  return (
    buyer === buyer_id &&
    product === product_id &&
    (reference_id === undefined || reference_id === purchase.reference_id) &&
    min <= sale_price &&
    sale_price <= max &&
    isWithin({ at }, filter)
  );
}

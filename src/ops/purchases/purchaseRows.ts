/** Purchases as support and auditors list them (docs/support.md#finding-purchases). */
import {
  evolveRefundedMoney,
  type RefundedMoney,
  type RefundedMoneyEvent,
  type TransactionStatus,
  transactionStatus,
} from '../../domain/purchase/status.js';
import { type GiftsPurchased, type PaymentCharged, transactionStream } from '../../domain/purchase/events.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, Recorded, RecordedEvent } from '../../ports/eventStore.js';
import { reversalsProjection } from '../../projections/reversals.js';
import { transactionIn } from '../../projections/transactions.js';
import type { Cell } from '../exports/csv.js';

/** A purchase as its stream has it now. Money is pence; `at` is ISO 8601, UTC, milliseconds. */
export interface PurchaseRow {
  readonly at: string;
  readonly transaction_id: string;
  readonly buyer_id: string;
  readonly brand_id: string;
  readonly product_id: string;
  /** Price of one gift. */
  readonly sale_price: number;
  /** Number of gifts. */
  readonly count: number;
  readonly total: number;
  readonly status: TransactionStatus;
  /** The provider's id of the charge; null: nothing was charged. */
  readonly charge_id: string | null;
  /** The caller's own name for the purchase; null: it was made without one. */
  readonly reference_id: string | null;
  readonly paid: number;
  /** Money given back by refunds, also by those made at the provider. */
  readonly refunded: number;
  /** Name of the product at the purchase. */
  readonly product_name: string;
}

/** Columns for programs, then a column for people. */
export const PURCHASE_COLUMNS = [
  'at',
  'transaction_id',
  'buyer_id',
  'brand_id',
  'product_id',
  'sale_price_pence',
  'count',
  'total_pence',
  'status',
  'charge_id',
  'reference_id',
  'paid_pence',
  'refunded_pence',
  'product_name',
] as const;

export function purchaseCells(row: PurchaseRow): Cell[] {
  const { sale_price, total, paid, refunded } = row;
  const pence = {
    sale_price_pence: sale_price,
    total_pence: total,
    paid_pence: paid,
    refunded_pence: refunded,
  };
  const cells = { ...row, ...pence };
  return PURCHASE_COLUMNS.map((column) => cells[column]);
}

const PARALLEL_READS = 32;

/** Rows of these purchases, in the order of `ids`. @throws UnavailableError */
export async function purchaseRows(
  events: Pick<EventStore, 'read'>,
  ids: readonly string[],
): Promise<readonly PurchaseRow[]> {
  const rows: PurchaseRow[] = [];
  await inParallel(ids.entries(), PARALLEL_READS, async ([index, id]) => {
    rows[index] = purchaseRow(id, await events.read(transactionStream(id)));
  });
  return rows;
}

function purchaseRow(transaction_id: string, history: readonly RecordedEvent[]): PurchaseRow {
  const [first] = history;
  const transaction = transactionIn(history);
  if (first === undefined || transaction === undefined)
    throw new Error(`purchase ${transaction_id} is listed and has no events`);
  const { buyer_id, brand_id, product_id, sale_price, count, total, created_at } = transaction;
  const { product_name } = first.data as GiftsPurchased['data'];
  const charged = history.find(({ type }) => type === 'PaymentCharged')?.data as PaymentCharged['data'] | undefined;
  const refundedMoney = refundedMoneyIn(history);
  return {
    at: created_at,
    transaction_id,
    buyer_id,
    brand_id,
    product_id,
    sale_price,
    count,
    total,
    status: transactionStatus(transaction, refundedMoney),
    charge_id: charged?.charge_id ?? null,
    reference_id: transaction.reference_id ?? null,
    paid: charged?.amount ?? 0,
    refunded: Object.values(refundedMoney?.refunds ?? {}).reduce(
      (sum, { amount }) => sum + amount,
      refundedMoney?.external ?? 0,
    ),
    product_name,
  };
}

function refundedMoneyIn(history: readonly RecordedEvent[]): RefundedMoney | undefined {
  let money: RefundedMoney | undefined;
  for (const event of history)
    if (reversalsProjection.types.includes(event.type))
      money = evolveRefundedMoney(money, event as Recorded<RefundedMoneyEvent>);
  return money;
}

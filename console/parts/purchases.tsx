/** Purchases in lists. */
import type { PurchaseRow } from '../../src/ops/purchases/purchaseRows.js';
import type { Column } from './table.js';
import { count, Id, personPath, pounds, Time, transactionPath, words } from './text.js';

export const PURCHASE_COLUMNS: readonly Column<PurchaseRow>[] = [
  { name: 'At', cell: ({ at }) => <Time at={at} /> },
  { name: 'Transaction', cell: ({ transaction_id }) => <Id of={transaction_id} to={transactionPath} /> },
  { name: 'Buyer', cell: ({ buyer_id }) => <Id of={buyer_id} to={personPath} /> },
  { name: 'Product', cell: ({ product_name }) => product_name },
  { name: 'Gifts', cell: ({ count: gifts }) => count(gifts), number: true },
  { name: 'Total', cell: ({ total }) => pounds(total), number: true },
  { name: 'Status', cell: ({ status }) => words(status) },
  { name: 'Paid', cell: ({ paid }) => pounds(paid), number: true },
  { name: 'Refunded', cell: ({ refunded }) => pounds(refunded), number: true },
  { name: 'Order', cell: ({ reference_id }) => reference_id ?? '–' },
  { name: 'Charge', cell: ({ charge_id }) => charge_id ?? '–' },
];

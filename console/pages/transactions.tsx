/** Purchases, the latest first, by what is known of them (docs/support.md#finding-purchases). */
import { signal } from '@preact/signals';
import type { PurchaseRow } from '../../src/ops/purchases/purchaseRows.js';
import { type Chosen, type Filter, Filters } from '../parts/filters.js';
import { Page } from '../parts/page.js';
import { PURCHASE_COLUMNS } from '../parts/purchases.js';
import { Paged } from '../parts/table.js';
import { ZONE } from '../parts/text.js';
import type { Query } from '../service/call.js';

const FILTERS: readonly Filter[] = [
  { name: 'buyer', label: 'Buyer’s id' },
  { name: 'product', label: 'Product’s id' },
  {
    name: 'status',
    label: 'Status',
    choices: [
      ['', 'All'],
      ['pending', 'Pending'],
      ['charged', 'Charged'],
      ['declined', 'Declined'],
      ['disputed', 'Disputed'],
      ['partially_refunded', 'Partially refunded'],
      ['refunded', 'Refunded'],
    ],
  },
  { name: 'min', label: 'Least price of a gift, £', type: 'number' },
  { name: 'max', label: 'Highest price of a gift, £', type: 'number' },
  { name: 'from', label: 'From', type: 'date' },
  { name: 'to', label: 'To', type: 'date' },
  { name: 'reference_id', label: 'Order reference' },
  { name: 'charge', label: 'Charge' },
];

/** Of this visit: whoever comes back from a purchase finds the list as it was. */
const chosen = signal<Chosen>({});

const pence = (text: string | undefined): number | undefined =>
  text === undefined || text === '' ? undefined : Math.round(Number(text) * 100);

const queryOf = ({ min, max, ...texts }: Chosen): Query => ({
  ...texts,
  min: pence(min),
  max: pence(max),
  time_zone: ZONE,
});

export function Transactions() {
  return (
    <Page title="Transactions" lead="Purchases, the latest first.">
      <Filters filters={FILTERS} start={chosen.value} choose={(typed) => (chosen.value = typed)} />
      <Paged<PurchaseRow>
        path="ops/transactions"
        query={queryOf(chosen.value)}
        caption="Purchases"
        columns={PURCHASE_COLUMNS}
        keyOf={({ transaction_id }) => transaction_id}
        none="No purchase matches."
      />
    </Page>
  );
}

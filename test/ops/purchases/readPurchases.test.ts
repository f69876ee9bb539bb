/** Lists of purchases, held against the log, however much of it the read models have folded. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import type { PurchaseFilter } from '../../../src/ops/purchases/purchaseFilter.js';
import { type PurchaseDeps, readPurchases } from '../../../src/ops/purchases/readPurchases.js';
import type { PurchaseRow } from '../../../src/ops/purchases/purchaseRows.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { byUserProjection } from '../../../src/projections/byUser.js';
import { openReadModels } from '../../../src/projections/index.js';
import { reversalsProjection } from '../../../src/projections/reversals.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { type Installation, installed, newEvent, purchase, settled } from '../../support/fixtures/projecting.js';

const test = suite('lists of purchases');

const PROJECTIONS = [transactionsProjection, byUserProjection, reversalsProjection];
const START = Date.parse('2026-03-01T10:00:00.000Z');
const timeOf = (minutes: number): string => new Date(START + minutes * 60_000).toISOString();

/** Appends the purchases numbered from `from` on: several at each time, of all statuses. */
async function appendPurchases({ events }: Installation, from: number, to: number): Promise<PurchaseRow[]> {
  const rows: PurchaseRow[] = [];
  for (let n = from; n < to; n++) {
    const at = timeOf(((n * 7) % 60) - (n % 5));
    const id = n.toString(16).padStart(32, '0');
    const sale_price = 100 + (n % 4) * 50;
    const data = {
      ...purchase([{}, {}], id),
      buyer_id: `u${n % 3}`,
      product_id: `p${n % 2}`,
      sale_price,
      total: 2 * sale_price,
      ...(n % 9 === 0 ? { reference_id: `order ${n % 2}` } : {}),
    };
    const answer =
      n % 6 === 0
        ? newEvent('PaymentDeclined', { provider: 'test', code: 'card_declined' }, at)
        : newEvent('PaymentCharged', { amount: data.total, provider: 'test', charge_id: `ch_${n}` }, at);
    const refund = { refund_id: `r${n}`, amount: sale_price, gift_ids: ['g'] };
    const isPending = n % 11 === 1;
    const isRefunded = !isPending && n % 6 !== 0 && n % 4 === 2;
    await events.append(
      transactionStream(id),
      [
        newEvent('GiftsPurchased', data, at),
        ...(isPending ? [] : [answer]),
        ...(isRefunded ? [newEvent('GiftsRefunded', refund, at)] : []),
      ],
      'none',
    );
    const isPaid = !isPending && n % 6 !== 0;
    rows.push({
      at,
      transaction_id: id,
      buyer_id: data.buyer_id,
      brand_id: 'b1',
      product_id: data.product_id,
      sale_price,
      count: 2,
      total: data.total,
      status: isPending ? 'pending' : isPaid ? (isRefunded ? 'partially_refunded' : 'charged') : 'declined',
      charge_id: isPaid ? `ch_${n}` : null,
      reference_id: n % 9 === 0 ? `order ${n % 2}` : null,
      paid: isPaid ? data.total : 0,
      refunded: isRefunded ? sale_price : 0,
      product_name: 'Coffee',
    });
  }
  return rows;
}

const ALL: PurchaseFilter = { from: null, to: null };
const FILTERS: readonly Partial<PurchaseFilter>[] = [
  {},
  { buyer: 'u1' },
  { product: 'p1' },
  { min: 200, max: 200 },
  { from: timeOf(20), to: timeOf(40) },
  { buyer: 'u2', from: timeOf(20), to: timeOf(40) },
  { from: timeOf(31) },
  { to: timeOf(31) },
  { status: 'declined' },
  { status: 'pending', buyer: 'u0' },
  { status: 'partially_refunded', product: 'p0' },
  { reference_id: 'order 1' },
  { reference_id: 'order 0', buyer: 'u0', from: timeOf(10) },
  { charge: 'ch_7' },
  { charge: 'ch_7', product: 'p0' },
  { from: timeOf(500) },
];

function expected(all: readonly PurchaseRow[], filter: Partial<PurchaseFilter>): PurchaseRow[] {
  const { buyer, product, status, charge, reference_id, min = 0, max = Number.MAX_SAFE_INTEGER, from, to } = filter;
  return all
    .filter(
      (row) =>
        (buyer ?? row.buyer_id) === row.buyer_id &&
        (product ?? row.product_id) === row.product_id &&
        (status ?? row.status) === row.status &&
        (charge ?? row.charge_id) === row.charge_id &&
        (reference_id ?? row.reference_id) === row.reference_id &&
        min <= row.sale_price &&
        row.sale_price <= max &&
        (from ?? row.at) <= row.at &&
        row.at <= (to ?? row.at),
    )
    .sort((one, other) => (`${one.at}${one.transaction_id}` < `${other.at}${other.transaction_id}` ? 1 : -1));
}

async function listed(deps: PurchaseDeps, filter: Partial<PurchaseFilter>, after?: string): Promise<PurchaseRow[]> {
  const rows: PurchaseRow[] = [];
  for await (const batch of readPurchases(deps, { ...ALL, ...filter }, after)) rows.push(...batch.rows);
  return rows;
}

/** Fewer filters, for read models that each search waits for in vain. */
const SOME = FILTERS.filter(
  ({ buyer, status, charge }) => buyer === 'u2' || status === 'pending' || charge !== undefined,
);

/** Compares each filter, from the beginning and from a position in between. */
async function compare(deps: PurchaseDeps, all: readonly PurchaseRow[], filters = FILTERS): Promise<void> {
  for (const filter of filters) {
    const those = expected(all, filter);
    assert.equal(await listed(deps, filter), those, JSON.stringify(filter));
    const middle = those[Math.floor(those.length / 2)];
    if (middle === undefined) continue;
    const rest = await listed(deps, filter, `${middle.at}.${middle.transaction_id}`);
    assert.equal(rest, those.slice(those.indexOf(middle) + 1), `${JSON.stringify(filter)} from the middle`);
  }
}

test(
  'has every purchase that matches once, the latest first, where read models have folded all, some and none',
  installed(async (installation) => {
    const { events, store } = installation;
    const bare: PurchaseDeps = { events, models: openReadModels(store, events) };
    const all = await appendPurchases(installation, 0, 230);
    let refused: unknown;
    await listed(bare, {}).catch((error: unknown) => {
      refused = error;
    });
    assert.ok(refused instanceof UnavailableError, String(refused));
    await compare({ ...bare, withoutBuilds: true }, all, [{}, ...SOME]);

    const projector = await installation.project({ projections: PROJECTIONS });
    await settled(projector, events);
    const folded: PurchaseDeps = { events, models: openReadModels(store, events) };
    await compare(folded, all);

    await projector.close();
    all.push(...(await appendPurchases(installation, 230, 300)));
    // Folded as charged, and refunded since.
    const refund = { refund_id: 'late', amount: 100, gift_ids: ['g'] };
    const late = all.findIndex(({ status }) => status === 'charged');
    const [row] = all.slice(late);
    await events.append(
      transactionStream(row?.transaction_id ?? ''),
      [newEvent('GiftsRefunded', refund, timeOf(90))],
      'any',
    );
    all[late] = { ...(row as PurchaseRow), status: 'partially_refunded', refunded: 100 };
    await compare(folded, all, [{}, { status: 'partially_refunded' }, { status: 'charged' }, ...SOME]);
  }),
);

test(
  'reads a page of a large list without the rest',
  installed(async (installation) => {
    const { events, store } = installation;
    await appendPurchases(installation, 0, 230);
    await settled(await installation.project({ projections: PROJECTIONS }), events);
    let reads = 0;
    const counted: PurchaseDeps['events'] = {
      end: async () => events.end(),
      readAll: (...asked) => events.readAll(...asked),
      async read(...asked) {
        reads += 1;
        return events.read(...asked);
      },
    };
    const models = openReadModels(store, events);
    for await (const { rows, next } of readPurchases({ events: counted, models }, ALL)) {
      assert.is(rows.length, 100);
      assert.is(next, `${rows.at(-1)?.at}.${rows.at(-1)?.transaction_id}`);
      break;
    }
    assert.is(reads, 100);
  }),
);

test.run();

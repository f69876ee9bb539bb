/** Money in histories made by hand: the provider's ledger, the service's own comparison, and totals. */
import { suite } from 'uvu';
import * as by from './handmade.js';
import { BOUGHT, lost, refusal, seen } from './handmade.js';
import type { Observation } from './history.js';
import { judgedBy } from './judged.js';
import { type LedgerEntry, checkLedger, checkReconciliations } from './ledger.js';
import type { Operation } from './operations.js';
import { checkTotals } from './totals.js';

const test = suite('money in a history');

const CHARGE: LedgerEntry = { kind: 'charge', transaction: 't1', pence: 350 };
const REFUND: LedgerEntry = { kind: 'refund', transaction: 't1', pence: 350 };
const booked = (...ledger: readonly LedgerEntry[]) =>
  judgedBy((history) => checkLedger(history, by.INSTALLATION, ledger));

const refund: Operation = { kind: 'refund', transaction: 't1', gifts: [] };
const back = (amount = 350): by.Said => ({
  status: 200,
  body: { data: { id: 'f1', status: 'refunded', gift_ids: ['g1'], amount } },
});
const REFUNDED = seen('sue', refund, [20, 30], back());
const DECLINED: by.Said = {
  ...refusal('payment_declined'),
  headers: { 'error-code': 'payment_declined', 'transaction-id': 't1' },
};

test('books a purchase once, to the penny', () => {
  booked(CHARGE).explained(BOUGHT);
  booked().wrong([BOUGHT], /never charged/);
  booked(CHARGE, CHARGE).wrong([BOUGHT], /charged 2 times/);
  booked({ ...CHARGE, pence: 351 }).wrong([BOUGHT], /another amount/);
  booked(CHARGE, { ...CHARGE, transaction: 't9' }).wrong([BOUGHT], /No request explains charge of £3.50 for t9/);
});

test('books nothing for a purchase that was declined or refused', () => {
  booked().explained(seen('ann', by.purchase(), [0, 10], DECLINED));
  booked(CHARGE).wrong([seen('ann', by.purchase(), [0, 10], DECLINED)], /was declined, and charged/);
  booked(CHARGE).wrong([seen('ann', by.purchase(), [0, 10], refusal('invalid_product'))], /No request explains/);
});

test('books a purchase of unknown outcome at most once', () => {
  const unknown = lost('ann', by.purchase(), 0);
  booked().explained(unknown);
  booked(CHARGE).explained(unknown);
  booked(CHARGE, { ...CHARGE, transaction: 't2' }).wrong([unknown], /No request explains charge of £3.50 for t2/);
  booked({ ...CHARGE, pence: 700 }).wrong([unknown], /No request explains charge of £7.00/);
  booked(CHARGE, CHARGE).wrong([unknown], /No request explains/);
  const pending = seen('ann', by.purchase(), [0, 10], by.transaction({ status: 'pending' }));
  booked().explained(pending);
  booked(CHARGE, CHARGE).wrong([pending], /charged 2 times/);
});

test('books an accepted refund once, and no other', () => {
  booked(CHARGE, REFUND).explained(BOUGHT, REFUNDED);
  booked(CHARGE).wrong([BOUGHT, REFUNDED], /accepted, and never booked/);
  booked(CHARGE, REFUND).wrong([BOUGHT], /no request explains refund/);
  booked(CHARGE, { ...REFUND, pence: 100 }).wrong(
    [BOUGHT, lost('sue', refund, 20)],
    /no request explains refund of £1.00/,
  );
  booked(CHARGE, REFUND).explained(BOUGHT, lost('sue', refund, 20));
  booked(CHARGE).explained(BOUGHT, lost('sue', refund, 20));
  const started = { status: 202, body: { data: { id: 'f1', status: 'started', gift_ids: ['g1'], amount: 350 } } };
  booked(CHARGE, REFUND).explained(BOUGHT, seen('sue', refund, [20, 30], started));
  booked(CHARGE, REFUND).wrong(
    [BOUGHT, seen('sue', refund, [20, 30], refusal('nothing_to_refund'))],
    /no request explains/,
  );
  const wrongAmount = seen('sue', refund, [20, 30], back(300));
  booked(CHARGE, { ...REFUND, pence: 300 }).wrong([BOUGHT, wrongAmount], /a refund of 1 gifts is £3.50/);
});

const QUIET = { clockMs: 5, quietFrom: by.START + 1_000 };
const compared = judgedBy((history) => checkReconciliations(history, by.INSTALLATION, QUIET));

function comparison(there: object, differences = 0): Observation {
  const operation = { kind: 'reconcile', day: '2027-03-04' } as const;
  return seen('sue', operation, [2_000, 2_001], {
    status: 200,
    body: { differences, ledgers: [{ there }, { there: {} }] },
  });
}

test('compares ledgers with what clients saw', () => {
  const there = { charges: 1, charged: 350, refunds: 0, refunded: 0 };
  compared.explained(BOUGHT, comparison(there));
  compared.explained(BOUGHT, REFUNDED, comparison({ ...there, refunds: 1, refunded: 350 }));
  compared.wrong([BOUGHT, comparison(there, 1)], /The ledgers differ/);
  compared.wrong([BOUGHT, comparison({ ...there, charged: 351 })], /Clients saw charged of 350, the ledgers have 351/);
  compared.wrong([BOUGHT, comparison({ ...there, charges: 2 })], /Clients saw charges of 1/);
  compared.wrong([BOUGHT, REFUNDED, comparison({ ...there, refunds: 1 })], /Clients saw refunded of 350/);
});

const totals = judgedBy((history) => checkTotals(history, by.INSTALLATION, QUIET));

/** The feed of the API client, read whole. */
function feed(...types: readonly (readonly [string, object?])[]): Observation {
  const data = types.map(([type, more], index) => ({
    id: `e${index}`,
    type,
    data: { gift_id: 'g1', transaction_id: 't1', ...more },
  }));
  return seen('client:app', { kind: 'listEvents' }, [1_500, 1_501], {
    status: 200,
    body: { data, next: 'n', has_more: false },
  });
}
const row = (more: object): object => ({ merchant_id: 'coffee', day: '2027-03-04', ...more });
const shown = (rows: readonly object[], sums: object): Observation =>
  seen('sue', { kind: 'totals' }, [2_000, 2_001], { status: 200, body: { data: rows, sums } });

test('adds up what the feed shows', () => {
  const at = { location_id: 'bean-soho', redemption_id: 'r1' };
  const issued = { issued: 1, issued_value: 350 };
  const used = { redeemed: 1, redeemed_value: 350, unredeemed: 1, unredeemed_value: 350 };
  const events = feed(['gift.issued'], ['gift.redeemed', at], ['gift.unredeemed', at]);
  const sums = { issued: 1, redeemed: 1, unredeemed: 1 };
  totals.explained(BOUGHT, events, shown([row({ ...issued, ...used })], sums));
  totals.explained(BOUGHT, events, shown([row(issued), row({ ...used, day: '2027-03-05' })], sums));
  totals.wrong(
    [BOUGHT, events, shown([row({ ...issued, ...used, redeemed_value: 349 })], sums)],
    /redeemed_value is 349/,
  );
  totals.wrong(
    [BOUGHT, events, shown([row({ ...issued, ...used, issued: 2 })], { ...sums, issued: 2 })],
    /issued is 2/,
  );
  totals.wrong([BOUGHT, events, shown([row({ ...issued, ...used })], { ...sums, redeemed: 2 })], /the rows have 1/);
  const bySupport = feed(['gift.issued'], ['gift.redeemed', at], ['gift.unredeemed', { ...at, by_support: true }]);
  totals.explained(
    BOUGHT,
    bySupport,
    shown([row({ ...issued, ...used, unredeemed_by_support: 1, unredeemed_by_support_value: 350 })], {
      ...sums,
      unredeemed_by_support: 1,
    }),
  );
});

test('counts a replacement as replaced, and a cancelled gift as refunded', () => {
  const events = feed(['gift.issued'], ['gift.replaced', { replaced_by: 'g9' }], ['gift.issued', { gift_id: 'g9' }]);
  const replaced = { issued: 1, issued_value: 350, replaced: 1, replaced_value: 350 };
  totals.explained(BOUGHT, events, shown([row(replaced)], { issued: 1, replaced: 1 }));
  const cancelled = { issued: 1, issued_value: 350, refunded: 1, refunded_value: 350 };
  totals.explained(
    BOUGHT,
    feed(['gift.issued'], ['gift.cancelled']),
    shown([row(cancelled)], { issued: 1, refunded: 1 }),
  );
});

test.run();

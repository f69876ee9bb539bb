import * as assert from 'uvu/assert';
import { giveUpCharge } from '../../../src/commands/parkedWork.js';
import { type Difference, reconcile, type Reconciled } from '../../../src/ops/reconciliation/reconcile.js';
import { dayOf, reconcileDay } from '../../../src/ops/reconciliation/reconcileDay.js';
import type { LedgerEntry, PaymentLedger } from '../../../src/ports/paymentLedger.js';
import { stripeLedger } from '../../../src/providers/payments/stripeLedger.js';
import { RetryLaterError } from '../../../src/messages/workerFailure.js';
import type { TestInstallation } from '../../support/service/installation.js';
import { installationSuite } from '../../support/service/installationSuite.js';
import { rejects } from '../../support/assertions/rejects.js';
import { openStripeServer, type StripeServer } from '../../support/providers/stripeServer.js';

const test = installationSuite('reconciliation');

const DAY_MS = 86_400_000;
const HOUR = 3_600_000;
const DAY = Date.parse('2026-05-04T00:00:00.000Z');
const at = (ms: number): string => new Date(DAY + ms).toISOString();

/** A provider whose list is given. */
function ledgerOf(entries: readonly LedgerEntry[]): PaymentLedger & { readonly looked: string[] } {
  const looked: string[] = [];
  return {
    provider: 'p',
    looked,
    async *list(from, to) {
      for (const entry of entries) if (Date.parse(entry.at) >= from && Date.parse(entry.at) < to) yield [entry];
    },
    async find(kind, id) {
      looked.push(id);
      return entries.find((entry) => entry.kind === kind && entry.id === id);
    },
    async refundsOf(chargeId) {
      const charge = entries.find(({ kind, id }) => kind === 'charge' && id === chargeId);
      return entries.filter(({ kind, transactionId }) => kind === 'refund' && transactionId === charge?.transactionId);
    },
  };
}
const entry = (
  kind: 'charge' | 'refund',
  id: string,
  transactionId: string | null,
  amount: number,
  ms: number,
  more: Partial<LedgerEntry> = {},
): LedgerEntry => ({
  kind,
  id,
  transactionId,
  amount,
  currency: 'gbp',
  at: at(ms),
  moved: true,
  status: 'succeeded',
  ...more,
});
async function charged(
  installation: TestInstallation,
  transaction: string,
  id: string,
  amount: number,
  ms: number,
  provider = 'p',
): Promise<void> {
  await installation.append(
    `transaction-${transaction}`,
    'PaymentCharged',
    { amount, provider, charge_id: id },
    at(ms),
  );
}
async function run(
  installation: TestInstallation,
  ledger: PaymentLedger,
): Promise<{ reconciled: Reconciled; told: string[]; all: Difference[]; others: unknown }> {
  const all: Difference[] = [];
  const { reconciled, others } = await reconcile(
    installation.events,
    ledger,
    { from: DAY, to: DAY + DAY_MS },
    (one) => void all.push(one),
  );
  return { reconciled, all, told: all.map(({ what, id }) => `${what} ${id}`).toSorted(), others: [...others] };
}

test('what agrees, agrees: whichever clock is ahead, on whichever side of midnight', async ({ installation }) => {
  await charged(installation, 'early', 'c0', 1, -HOUR);
  await charged(installation, 'before', 'c1', 250, 2_000);
  await charged(installation, 'same', 'c2', 300, 12 * HOUR);
  await installation.append(
    'transaction-same',
    'GiftsRefunded',
    { refund_id: 'r', attempt: 1, gift_ids: [], amount: 100, provider: 'p', refund_ref: 'r1' },
    at(13 * HOUR),
  );
  await charged(installation, 'slow', 'c3', 400, 18 * HOUR);
  await charged(installation, 'free', 'free_1', 0, 19 * HOUR);
  await charged(installation, 'invoiced', 'i1', 77, 19 * HOUR, 'invoice');
  await charged(installation, 'after', 'c4', 500, DAY_MS + 2_000);
  await charged(installation, 'late', 'c5', 1, DAY_MS + HOUR);
  const ledger = ledgerOf([
    entry('charge', 'c1', 'before', 250, -2_000),
    entry('charge', 'c2', 'same', 300, 12 * HOUR - 3_000),
    entry('refund', 'r1', 'same', 100, 13 * HOUR + 3_000),
    entry('charge', 'c3', 'slow', 400, 9 * HOUR),
    entry('charge', 'declined', 'x', 400, 9 * HOUR, { moved: false, status: 'failed' }),
    entry('charge', 'c4', 'after', 500, DAY_MS - 2_000),
  ]);
  const { reconciled, told, others } = await run(installation, ledger);
  assert.equal(told, []);
  assert.equal(reconciled, {
    provider: 'p',
    differences: 0,
    looked_up: 4,
    here: { charges: 3, charged: 950, refunds: 1, refunded: 100 },
    there: { charges: 3, charged: 1_200, refunds: 1, refunded: 100 },
  });
  assert.equal(others, [['invoice', { charges: 1, charged: 77, refunds: 0, refunded: 0 }]]);
  // c3 from both its sides; what is listed within the quarter of an hour is not looked up.
  assert.equal(ledger.looked.toSorted(), ['c1', 'c3']);
});

test('reports every difference with what is known of it', async ({ installation }) => {
  await charged(installation, 'amount', 'c1', 250, HOUR);
  await charged(installation, 'currency', 'c2', 250, HOUR);
  await charged(installation, 'gone', 'c3', 250, HOUR);
  await charged(installation, 'failed', 'c4', 250, HOUR);
  await charged(installation, 'twice', 'c5', 250, HOUR);
  await installation.append('transaction-pending', 'ChargeStarted', {}, at(HOUR));
  await installation.append('transaction-declined', 'PaymentDeclined', {}, at(HOUR));
  await installation.append(
    'transaction-late',
    'RefundStarted',
    {
      refund_id: 'l',
      attempt: 1,
      gift_ids: [],
      kept: {},
      amount: 250,
      provider: 'p',
      charge_id: 'c10',
      payment_reference: 'x',
    },
    at(HOUR),
  );
  const { told, all, reconciled } = await run(
    installation,
    ledgerOf([
      entry('charge', 'c1', 'amount', 251, HOUR),
      entry('charge', 'c2', 'currency', 250, HOUR, { currency: 'usd' }),
      entry('charge', 'c4', 'failed', 250, HOUR, { moved: false, status: 'failed' }),
      entry('charge', 'c5', 'twice', 250, HOUR),
      entry('charge', 'c6', 'twice', 250, HOUR),
      entry('charge', 'c7', 'pending', 250, HOUR),
      entry('charge', 'c8', 'declined', 250, HOUR),
      entry('charge', 'c9', 'unknown', 250, HOUR),
      entry('charge', 'c10', 'late', 250, HOUR),
      entry('charge', 'c11', null, 250, HOUR),
      entry('refund', 'r1', 'twice', 250, HOUR),
    ]),
  );
  assert.equal(told, [
    'amount c1',
    'currency c2',
    'missing_here c11',
    'missing_here c6',
    'missing_here c7',
    'missing_here c8',
    'missing_here c9',
    'missing_here r1',
    'missing_there c3',
    'state c4',
  ]);
  assert.is(reconciled.differences, 10);
  const detail = (id: string): string | undefined => all.find((one) => one.id === id)?.detail;
  assert.equal(['c1', 'c2', 'c3', 'c4', 'c6', 'c7', 'c8', 'c9', 'c11', 'r1'].map(detail), [
    '250 here, 251 there',
    'usd instead of gbp',
    'p knows no such charge',
    'the log counts it, p says failed',
    'its transaction was charged by another one: charged twice',
    'its transaction is not settled yet',
    'its transaction was declined',
    'its transaction is unknown here',
    'it names no transaction of this service',
    'its transaction has no such refund',
  ]);
  assert.equal(
    all.find(({ id }) => id === 'c3'),
    {
      what: 'missing_there',
      kind: 'charge',
      provider: 'p',
      id: 'c3',
      transaction_id: 'gone',
      here: { amount: 250, at: at(HOUR) },
      there: null,
      detail: 'p knows no such charge',
    },
  );
  assert.equal(all.find(({ id }) => id === 'c11')?.there, {
    amount: 250,
    currency: 'gbp',
    at: at(HOUR),
    status: 'succeeded',
  });
});

test('matches refunds made at the provider with its reports of them, and each report only once', async ({
  installation,
}) => {
  await charged(installation, 't', 'c1', 1_000, HOUR);
  const outside = (amount: number, total: number, ms: number, provider = 'p'): Promise<unknown> =>
    installation.append('transaction-t', 'RefundedAtProvider', { provider, charge_id: 'c1', amount, total }, at(ms));
  await outside(100, 100, 3 * HOUR);
  await outside(300, 400, 6 * HOUR);
  await installation.append(
    'transaction-u',
    'RefundedAtProvider',
    { provider: 'other', charge_id: 'c2', amount: 7, total: 7 },
    at(6 * HOUR),
  );
  await outside(40, 440, DAY_MS + HOUR);
  const refund = (id: string, amount: number, ms: number, more: Partial<LedgerEntry> = {}): LedgerEntry =>
    entry('refund', id, 't', amount, ms, more);
  const charge = entry('charge', 'c1', 't', 1_000, HOUR);
  const { told, reconciled, others } = await run(
    installation,
    ledgerOf([
      charge,
      refund('first', 100, 2 * HOUR),
      refund('two', 200, 4 * HOUR),
      refund('together', 100, 5 * HOUR),
      refund('told next day', 40, 9 * HOUR),
    ]),
  );
  assert.equal(told, []);
  assert.equal(
    [reconciled.here, reconciled.there, reconciled.looked_up],
    [
      { charges: 1, charged: 1_000, refunds: 2, refunded: 400 },
      { charges: 1, charged: 1_000, refunds: 4, refunded: 440 },
      4,
    ],
  );
  assert.equal(others, [['other', { charges: 0, charged: 0, refunds: 1, refunded: 7 }]]);
  // The same amount, which the provider has told of once; later than all that it told; more; in another currency.
  const wrong = await run(
    installation,
    ledgerOf([
      charge,
      refund('first', 100, 2 * HOUR),
      refund('again', 400, 5 * HOUR),
      refund('more', 41, 9 * HOUR),
      refund('usd', 40, 10 * HOUR, { currency: 'usd' }),
    ]),
  );
  assert.equal(wrong.told, ['currency usd', 'missing_here again', 'missing_here more']);
  // The provider has told of 400 pence, and shows none of them: an accountant must hear of both reports.
  const gone = await run(
    installation,
    ledgerOf([charge, refund('untold', 1, DAY_MS - 1), refund('last', 40, 20 * HOUR)]),
  );
  assert.equal(gone.told, ['missing_here untold', 'missing_there c1', 'missing_there c1']);
  assert.equal(gone.all.at(-1), {
    what: 'missing_there',
    kind: 'refund',
    provider: 'p',
    id: 'c1',
    transaction_id: 't',
    here: { amount: 300, at: at(6 * HOUR) },
    there: null,
    detail: 'p has given back 41 pence of this charge by itself, and had told of 400',
  });
  // One that was given back the day before, and one that could not be delivered.
  const failed = await run(
    installation,
    ledgerOf([charge, refund('first', 100, -HOUR), refund('last', 300, 5 * HOUR, { moved: false, status: 'failed' })]),
  );
  assert.equal([failed.told, failed.reconciled.looked_up], [['missing_there c1'], 1]);
});

test("compares what the provider's clock puts a quarter of an hour later, without a look-up", async ({
  installation,
}) => {
  const quarter = 15 * 60_000;
  for (const id of ['same', 'more']) await charged(installation, id, id, 100, quarter - 1_000);
  const ledger = ledgerOf([
    entry('charge', 'same', 'same', 100, quarter + 1_000),
    entry('charge', 'more', 'more', 101, quarter + 1_000),
  ]);
  const { told, reconciled } = await run(installation, ledger);
  assert.equal(told, ['amount more']);
  assert.equal([reconciled.looked_up, ledger.looked], [0, []]);
});

test('looks a wallet entry up in the wallet that the log recorded after midnight', async ({ installation }) => {
  installation.methods.set('prepaid', { kind: 'wallet', prepaid: true, customer: null });
  const [paid, other] = await Promise.all([
    installation.buy([{}], { price: 125, reference: 'prepaid' }),
    installation.buy([{}], { price: 125, reference: 'prepaid' }),
  ]);
  for (const { transactionId } of [paid, other]) {
    await installation.append(
      'wallet-prepaid',
      'WalletDebited',
      { transaction_id: transactionId, amount: 125 },
      at(-20 * 60_000),
    );
    await installation.append(
      `transaction-${transactionId}`,
      'PaymentCharged',
      {
        amount: transactionId === paid.transactionId ? 125 : 126,
        provider: 'wallet',
        charge_id: `wallet-${transactionId}`,
      },
      at(1_000),
    );
  }
  const refund = { gift_ids: [], provider: 'wallet', attempt: 1, amount: 25 };
  await installation.append(
    'wallet-prepaid',
    'WalletCredited',
    { transaction_id: paid.transactionId, amount: 25, cause: 'back' },
    at(-20 * 60_000),
  );
  await installation.append(
    `transaction-${paid.transactionId}`,
    'GiftsRefunded',
    { ...refund, refund_id: 'back', refund_ref: 'wallet-back' },
    at(2_000),
  );
  await installation.append(
    `transaction-${paid.transactionId}`,
    'GiftsRefunded',
    { ...refund, refund_id: 'never', refund_ref: 'wallet-never' },
    at(3_000),
  );
  await charged(installation, 'unknown', 'wallet-unknown', 7, 4_000, 'wallet');
  const found: Difference[] = [];
  const { ledgers } = await reconcileDay(
    { events: installation.events, ledger: ledgerOf([]) },
    { from: DAY, to: DAY + DAY_MS },
    (one) => void found.push(one),
  );
  assert.equal(
    found.map(({ what, id }) => `${what} ${id}`).toSorted(),
    [`amount wallet-${other.transactionId}`, 'missing_there wallet-never', 'missing_there wallet-unknown'].toSorted(),
  );
  assert.is(ledgers.find(({ provider }) => provider === 'wallet')?.looked_up, 3);
});

test('a debit that a discard credited again is no difference, on neither day', async ({ installation }) => {
  installation.methods.set('prepaid', { kind: 'wallet', prepaid: true, customer: null });
  const { transactionId } = await installation.buy([{}], { price: 125, reference: 'prepaid' });
  const debited = { transaction_id: transactionId, amount: 125 };
  await installation.append('wallet-prepaid', 'WalletDebited', debited, at(HOUR));
  const context = { commandId: 'discard', correlationId: 'c', by: { user: 'sue' }, now: at(DAY_MS + HOUR) };
  await giveUpCharge(installation.events, transactionId, context);
  assert.equal(await installation.types('wallet-prepaid'), ['WalletDebited', 'WalletCredited']);
  for (const from of [DAY, DAY + DAY_MS]) {
    const { ledgers } = await reconcileDay(
      { events: installation.events, ledger: ledgerOf([]) },
      { from, to: from + DAY_MS },
      () => assert.unreachable(),
    );
    const nothing = { charges: 0, charged: 0, refunds: 0, refunded: 0 };
    assert.equal(
      ledgers.find(({ provider }) => provider === 'wallet'),
      { provider: 'wallet', here: nothing, there: nothing, looked_up: 1, differences: 0 },
    );
  }
});

test('a long day of a wallet is compared whole', async ({ installation }) => {
  for (let n = 0; n < 501; n++) {
    await installation.append('wallet-prepaid', 'WalletDebited', { transaction_id: `t${n}`, amount: 1 }, at(HOUR + n));
    await charged(installation, `t${n}`, `wallet-t${n}`, 1, HOUR + n, 'wallet');
  }
  const { ledgers } = await reconcileDay(
    { events: installation.events, ledger: ledgerOf([]) },
    { from: DAY, to: DAY + DAY_MS },
    () => assert.unreachable(),
  );
  const sums = { charges: 501, charged: 501, refunds: 0, refunded: 0 };
  assert.equal(
    ledgers.find(({ provider }) => provider === 'wallet'),
    { provider: 'wallet', here: sums, there: sums, looked_up: 0, differences: 0 },
  );
});

test('compares a wallet entry just before midnight, also behind one just after it', async ({ installation }) => {
  await installation.append(
    'wallet-prepaid',
    'WalletDebited',
    { transaction_id: 'next', amount: 4 },
    at(DAY_MS + 2_000),
  );
  await installation.append(
    'wallet-prepaid',
    'WalletDebited',
    { transaction_id: 'last', amount: 2 },
    at(DAY_MS - 3_000),
  );
  await installation.append(
    'wallet-prepaid',
    'WalletDebited',
    { transaction_id: 'lost', amount: 1 },
    at(DAY_MS - 2_000),
  );
  await charged(installation, 'last', 'wallet-last', 2, DAY_MS - 1_000, 'wallet');
  const found: string[] = [];
  const { ledgers } = await reconcileDay(
    { events: installation.events, ledger: ledgerOf([]) },
    { from: DAY, to: DAY + DAY_MS },
    ({ what, id }) => void found.push(`${what} ${id}`),
  );
  assert.equal(found, ['missing_here wallet-lost']);
  assert.is(ledgers.find(({ provider }) => provider === 'wallet')?.there.charged, 3);
});

test('compares the rest of a day in which a clock was ahead for a while', async ({ installation }) => {
  const bought = await installation.buy([{}], { reference: 'prepaid' });
  const booked = (ms: number, cause: string): Promise<void> =>
    installation.append(
      'wallet-prepaid',
      'WalletCredited',
      { transaction_id: bought.transactionId, amount: 1, cause },
      at(ms),
    );
  await charged(installation, 'same', 'c1', 100, HOUR);
  await charged(installation, 'ahead', 'c2', 200, DAY_MS + 5 * HOUR);
  await booked(DAY_MS + 6 * HOUR, 'ahead');
  await booked(2 * HOUR, 'never refunded');
  await charged(installation, 'agrees', 'c3', 300, 2 * HOUR);
  await charged(installation, 'gone', 'c4', 400, 3 * HOUR);
  for (let hours = 1; hours < 6; hours++)
    await charged(installation, `next ${hours}`, `n${hours}`, 1, DAY_MS + hours * HOUR);
  // However much later it stands: it is of this day by its own time.
  await charged(installation, 'far behind', 'c5', 500, 4 * HOUR);
  const ledger = ledgerOf([
    entry('charge', 'c1', 'same', 100, HOUR),
    entry('charge', 'c2', 'ahead', 200, HOUR + 1),
    entry('charge', 'c3', 'agrees', 300, 2 * HOUR),
  ]);
  const { told, reconciled } = await run(installation, ledger);
  assert.equal(
    [told, reconciled.here, reconciled.looked_up],
    [['missing_there c4', 'missing_there c5'], { charges: 4, charged: 1_300, refunds: 0, refunded: 0 }, 1],
  );
  const all: string[] = [];
  await reconcileDay(
    { events: installation.events, ledger },
    { from: DAY, to: DAY + DAY_MS },
    ({ what, id }) => void all.push(`${what} ${id}`),
  );
  assert.equal(all.toSorted(), ['missing_here wallet-never refunded', 'missing_there c4', 'missing_there c5']);
});

test('a broken-off comparison ends', async ({ installation }) => {
  const abort = new AbortController();
  abort.abort(new Error('enough'));
  let error: unknown;
  await reconcile(
    installation.events,
    ledgerOf([]),
    { from: DAY, to: DAY + DAY_MS },
    () => undefined,
    abort.signal,
  ).catch((thrown: unknown) => {
    error = thrown;
  });
  assert.match(String(error), 'enough');
});

test('a day is a day of its zone, and ends now where it is not over', () => {
  const now = Date.parse('2026-05-04T12:00:00.000Z');
  const stripe = { now, settings: { payments: 'stripe' } } as const;
  assert.equal(dayOf('2026-05-03', 'Europe/London', stripe), {
    day: '2026-05-03',
    timeZone: 'Europe/London',
    from: Date.parse('2026-05-02T23:00:00.000Z'),
    to: Date.parse('2026-05-03T23:00:00.000Z'),
  });
  assert.is(dayOf('2026-05-04', 'UTC', stripe).to, now);
  for (const bad of ['2026-05-05', 'today', '2026-5-4', '2026-02-30'])
    assert.throws(() => dayOf(bad, 'UTC', stripe), /2026-05-05 has not started yet|is not a (day|time)/);
  assert.throws(() => dayOf('2026-05-03', 'Moon', stripe), /not a time zone/);
  const simulated = { now, settings: { payments: 'simulated' } } as const;
  assert.is(dayOf('2026-05-03', 'UTC', simulated).day, '2026-05-03');
  assert.throws(() => dayOf('2026-05-02', 'UTC', simulated), /48 h only/);
});

test("Stripe's list, page by page, as the log says; then with everything that can be wrong", async ({
  installation,
}) => {
  const stripe: StripeServer = await openStripeServer();
  try {
    const { stripePayments } = await import('../../../src/providers/payments/stripe.js');
    const settings = { secretKey: stripe.secretKey, apiUrl: stripe.url };
    installation.methods.set('prepaid', { kind: 'wallet', prepaid: true, customer: null });
    await installation.append('wallet-prepaid', 'WalletToppedUp', { top_up_id: 'a', amount: 1_000 });
    const from = Date.now() - 1_000;
    const logger = installation.deps.logger;
    await installation.work({ payments: stripePayments(settings, { logger, now: Date.now }) });
    installation.process();
    const bought = await Promise.all(
      Array.from({ length: 120 }, (_, n) =>
        installation.buy([{}, {}], {
          price: 125,
          reference: n % 10 === 9 ? 'pm_card_chargeDeclined' : n === 0 ? 'prepaid' : 'pm_card_visa',
        }),
      ),
    );
    await installation.until(async () => (await installation.all('PaymentCharged', 'PaymentDeclined')).length === 120);
    const refunded = bought.slice(0, 3);
    for (const [n, { transactionId, giftIds }] of refunded.entries()) {
      await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
        refund_id: `r${n}`,
        gift_ids: giftIds.slice(0, 1),
        voided: false,
        reason: 'x',
      });
    }
    await installation.until(async () => (await installation.all('GiftsRefunded')).length === 3);
    const check = async (): Promise<{ differences: string[]; report: Awaited<ReturnType<typeof reconcileDay>> }> => {
      const found: Difference[] = [];
      const now = Date.now() + 1_000;
      const report = await reconcileDay(
        { events: installation.events, ledger: stripeLedger(settings) },
        { from, to: now },
        (one) => void found.push(one),
      );
      return { report, differences: found.map(({ what, kind, id }) => `${what} ${kind} ${id}`).toSorted() };
    };
    const good = await check();
    assert.equal(good.differences, []);
    const sums = { charges: 107, charged: 26_750, refunds: 2, refunded: 250 };
    const wallets = { charges: 1, charged: 250, refunds: 1, refunded: 125 };
    assert.equal(good.report, {
      ledgers: [
        { provider: 'stripe', here: sums, there: sums, looked_up: 0, differences: 0 },
        { provider: 'wallet', here: wallets, there: wallets, looked_up: 0, differences: 0 },
      ],
      uncompared: [],
    });
    assert.ok(
      stripe.requested.some(({ path, query }) => path === '/v1/charges' && query.has('starting_after')),
      'more than a page',
    );
    const ledger = stripeLedger(settings);
    const list = async (): Promise<LedgerEntry[]> => {
      const all: LedgerEntry[] = [];
      for await (const page of ledger.list(from, Date.now() + 1_000)) all.push(...page);
      return all;
    };
    const listed = await list();
    for (const kind of ['charge', 'refund'] as const) {
      const one = listed.find((each) => each.kind === kind && each.moved);
      assert.ok(one !== undefined);
      assert.is(one.status, 'succeeded');
      assert.equal(
        await ledger.find(kind, one.id, one.transactionId ?? ''),
        one,
        'asked for by its id it is what the list says',
      );
    }

    const [more, vanished, byHand] = stripe.intents.filter(({ status }) => status === 'succeeded').slice(20, 23) as [
      (typeof stripe.intents)[number],
      (typeof stripe.intents)[number],
      (typeof stripe.intents)[number],
    ];
    more.amount += 1;
    stripe.intents.splice(stripe.intents.indexOf(vanished), 1);
    const [refund] = stripe.refunds;
    if (refund === undefined) throw new Error('no refund');
    stripe.refunds.push({ ...refund, id: 're_byhand', payment_intent: byHand.id, metadata: {} });
    assert.is(
      (await list()).find(({ id }) => id === 're_byhand')?.transactionId,
      byHand.metadata['transaction_id'],
      "what was given back by hand is its payment's",
    );
    assert.equal(
      (await ledger.refundsOf(byHand.id)).map(({ id }) => id),
      ['re_byhand'],
    );
    const [, undelivered] = stripe.refunds;
    if (undelivered === undefined) throw new Error('no second refund');
    for (const one of [refund, undelivered]) one.status = 'failed';
    const { refund_id, transaction_id } = undelivered.metadata;
    await installation.append(`transaction-${transaction_id}`, 'RefundFailed', {
      refund_id,
      attempt: 1,
      gift_ids: [],
      amount: undelivered.amount,
      provider: 'stripe',
      refund_ref: undelivered.id,
      code: 'lost_card',
    });
    await installation.append('wallet-prepaid', 'WalletDebited', { transaction_id: 'nobody', amount: 5 });
    const bad = await check();
    assert.equal(
      bad.report.ledgers[0]?.here.refunds,
      1,
      'what the log, too, knows to have failed is no money given back',
    );
    assert.equal(
      bad.differences,
      [
        'missing_here charge wallet-nobody',
        'missing_here refund re_byhand',
        `missing_there charge ${vanished.id}`,
        `amount charge ${more.id}`,
        `state refund ${refund.id}`,
      ].toSorted(),
    );
  } finally {
    await stripe.close();
  }
});

test('Stripe that wants its list read later is waited for', async ({ installation }) => {
  const stripe = await openStripeServer();
  try {
    let limited = 0;
    stripe.fault = () => (limited++ < 2 ? { kind: 'limited', retryAfter: '0' } : undefined);
    const ledger = stripeLedger({ secretKey: stripe.secretKey, apiUrl: stripe.url });
    const { reconciled } = await run(installation, ledger);
    assert.is(reconciled.differences, 0);
    assert.ok(limited > 2);
    assert.is(await ledger.find('refund', 're_unknown', 't'), undefined);
    assert.is(await ledger.find('charge', 'pi_unknown', 't'), undefined);
    stripe.fault = () => ({ kind: 'limited', retryAfter: '600' });
    assert.is(
      (await rejects(run(installation, ledger), RetryLaterError, /limits our requests/)).afterMs,
      600_000,
      'nobody waits for so long',
    );
  } finally {
    await stripe.close();
  }
});

test.run();

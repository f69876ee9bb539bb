import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import { type TotalsCheck, checkTotals } from '../../../src/ops/totals/checkTotals.js';
import { logRange } from '../../../src/ops/ranges/range.js';
import { timeZone } from '../../../src/ops/ranges/times.js';
import { foldTotals, sumOf } from '../../../src/ops/totals/totals.js';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { ReadModel } from '../../../src/runtime/readmodels/readModel.js';
import type { TransactionDocument } from '../../../src/projections/transactions.js';

const test = suite<{ dir: string; events: EventStore }>('audit/checkTotals');
const zone = timeZone('UTC');
const SEEDS = ['aa'.repeat(32), 'bb'.repeat(32)] as const;

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'totals-'));
  context.events = await openEmbeddedEventStore({ dir: context.dir });
});
test.after.each(async ({ dir, events }) => {
  await events.close();
  rmSync(dir, { recursive: true });
});

let second = 0;
async function happened(events: EventStore, stream: string, type: string, data: object): Promise<void> {
  const at = new Date(Date.UTC(2026, 0, 1, 0, 0, second++)).toISOString();
  await events.append(
    stream,
    [{ id: randomUUID(), type, at, data, metadata: { commandId: 'c', correlationId: 'r', by: { user: 'u' } } }],
    'any',
  );
}

/** A purchase of two gifts of 350 pence, charged and issued. @returns the gifts' streams */
async function bought(
  events: EventStore,
  id: 'ta' | 'tb',
  more: { charged?: number; value?: number; issued?: number } = {},
): Promise<string[]> {
  const seed = SEEDS[id === 'ta' ? 0 : 1];
  await happened(events, `transaction-${id}`, 'GiftsPurchased', {
    transaction_id: id,
    seed,
    brand_id: 'b',
    product_id: 'p',
    sale_price: 350,
    total: 700,
    receivers: [{}, {}],
  });
  if (more.charged !== 0)
    await happened(events, `transaction-${id}`, 'PaymentCharged', {
      amount: more.charged ?? 700,
      provider: 'p',
      charge_id: 'c',
    });
  const gifts = deriveGiftIds(seed, 2).map((ids) => `gift-${ids.gift_id}`);
  for (const gift of gifts.slice(0, more.issued ?? 2))
    await happened(events, gift, 'GiftIssued', {
      transaction_id: id,
      brand_id: 'b',
      product_id: 'p',
      value: more.value ?? 350,
    });
  return gifts;
}

const redeemed = (id: string, value = 350): object => ({
  redemption_id: id,
  location_id: 's',
  location_merchant_id: 'm',
  merchant_id: 'm',
  brand_id: 'b',
  product_id: 'p',
  value,
});

/** A read model that knows these transactions. */
function knows(ids: readonly string[], reached = true): ReadModel<TransactionDocument> {
  return {
    reached: async () => reached,
    find: async ({ where, limit }: { where: { id: { gt: string } }; limit: number }) =>
      ids
        .filter((id) => id > where.id.gt)
        .slice(0, limit)
        .map((id) => ({ id, body: {} })),
  } as unknown as ReadModel<TransactionDocument>;
}

async function checked(events: EventStore, known: readonly string[] = ['ta', 'tb']): Promise<TotalsCheck> {
  const range = await logRange(events, { zone });
  return checkTotals({ events, transactions: knows(known) }, await foldTotals(events, range, zone), range, zone);
}

test('what is right agrees, refunds and reversals included; brands are those of then', async ({ events }) => {
  await happened(events, 'brand-b', 'BrandAdded', { id: 'b', merchant_id: 'old' });
  const [first = '', other = ''] = await bought(events, 'ta');
  await happened(events, 'brand-b', 'BrandChanged', { merchant_id: 'new' });
  await bought(events, 'tb', { issued: 1 });
  await happened(events, first, 'GiftRedeemed', redeemed('r1'));
  await happened(events, first, 'GiftUnredeemed', { redemption_id: 'r1' });
  await happened(events, first, 'GiftRedeemed', redeemed('r2'));
  await happened(events, 'transaction-ta', 'GiftsRefunded', {
    refund_id: 'x',
    attempt: 1,
    gift_ids: [other.slice(5)],
    amount: 350,
    provider: 'p',
    refund_ref: 'f',
  });
  assert.equal(await checked(events), {
    agree: true,
    transactions: 2,
    gifts: 4,
    not_issued_yet: 1,
    differences: [],
    faults: [],
    differences_found: 0,
    faults_found: 0,
  });
  const rows = await foldTotals(events, await logRange(events, { zone }), zone);
  assert.equal(
    rows.map((row) => [row.merchant_id, row.issued, row.redeemed, row.unredeemed, row.refunded_value]),
    [
      ['m', 0, 2, 1, 0],
      ['new', 1, 0, 0, 350],
      ['old', 2, 0, 0, 0],
    ],
  );
  assert.equal(sumOf(rows).issued_value, 1050);
});

test('counts no refund for money that bought nothing, nor for an undelivered refund', async ({ events }) => {
  await bought(events, 'ta');
  await happened(events, 'transaction-ta', 'GiftsRefunded', {
    refund_id: 'late',
    attempt: 1,
    gift_ids: [],
    amount: 700,
    provider: 'p',
    refund_ref: 'f',
  });
  await happened(events, 'transaction-ta', 'RefundedAtProvider', {
    provider: 'p',
    charge_id: 'c',
    amount: 100,
    total: 100,
  });
  const [gift = ''] = await bought(events, 'tb');
  const back = { refund_id: 'x', attempt: 1, gift_ids: [gift.slice(5)], amount: 350, provider: 'p', refund_ref: 'f2' };
  for (const type of ['GiftsRefunded', 'RefundFailed']) await happened(events, 'transaction-tb', type, back);
  assert.is((await checked(events)).agree, true);
  const [row] = await foldTotals(events, await logRange(events, { zone }), zone);
  assert.equal([row?.refunded, row?.refunded_value], [0, 100]);
});

test('counts no refund at the provider of money that a declined purchase never took', async ({ events }) => {
  await bought(events, 'ta', { charged: 0, issued: 0 });
  const refunded = (amount: number, total: number) => ({ provider: 'p', charge_id: 'c', amount, total });
  await happened(events, 'transaction-ta', 'RefundedAtProvider', refunded(100, 100));
  await happened(events, 'transaction-ta', 'RefundedAtProvider', refunded(200, 300));
  const end = await events.end();
  await happened(events, 'transaction-ta', 'PaymentDeclined', { provider: 'support', code: 'discarded' });
  await bought(events, 'tb', { charged: 0, issued: 0 });
  await happened(events, 'transaction-tb', 'PaymentDeclined', { provider: 'p', code: 'lost_card' });
  assert.is((await checked(events)).agree, true);
  const refundedIn = async (after?: string): Promise<number[]> =>
    (await foldTotals(events, await logRange(events, { zone, after }), zone)).map((row) => row.refunded_value);
  assert.equal([await refundedIn(), await refundedIn(end)], [[0], [-300]]);
});

test('charges a lost dispute back on its day, and not after a won appeal; never one that was won', async ({
  events,
}) => {
  await bought(events, 'ta');
  await bought(events, 'tb');
  const opened = (dispute_id: string, amount: number) => ({ provider: 'p', dispute_id, amount, reason: 'fraudulent' });
  await happened(events, 'transaction-ta', 'DisputeOpened', opened('d1', 700));
  await happened(events, 'transaction-ta', 'DisputeOpened', opened('d2', 300));
  await happened(events, 'transaction-tb', 'DisputeOpened', opened('d3', 350));
  const closed = (dispute_id: string, outcome: 'won' | 'lost') => ({ provider: 'p', dispute_id, outcome });
  await happened(events, 'transaction-ta', 'DisputeClosed', closed('d1', 'lost'));
  await happened(events, 'transaction-ta', 'DisputeClosed', closed('d2', 'won'));
  await happened(events, 'transaction-ta', 'DisputeClosed', closed('d2', 'won'));
  await happened(events, 'transaction-tb', 'DisputeClosed', closed('d3', 'lost'));
  const sums = async (): Promise<unknown> => {
    assert.is((await checked(events)).agree, true);
    return (await foldTotals(events, await logRange(events, { zone }), zone)).map(
      ({ refunded_value, charged_back, charged_back_value }) => [refunded_value, charged_back, charged_back_value],
    );
  };
  assert.equal(await sums(), [[0, 2, 1050]]);
  await happened(events, 'transaction-ta', 'DisputeClosed', closed('d1', 'won'));
  assert.equal(await sums(), [[0, 1, 350]]);
  const end = await events.end();
  await happened(events, 'transaction-tb', 'DisputeClosed', closed('d3', 'won'));
  const later = await foldTotals(events, await logRange(events, { zone, after: end }), zone);
  assert.equal(
    later.map(({ charged_back, charged_back_value }) => [charged_back, charged_back_value]),
    [[-1, -350]],
    'a later range takes back what an earlier one has',
  );
});

test('a transaction that the read model has lost shows, field by field', async ({ events }) => {
  const [first = ''] = await bought(events, 'ta');
  await bought(events, 'tb');
  await happened(events, first, 'GiftRedeemed', redeemed('r1'));
  const { agree, differences, differences_found: found, faults } = await checked(events, ['tb']);
  assert.is(agree, false);
  assert.equal(differences, [
    { day: '2026-01-01', merchant_id: '', field: 'issued', log: 4, streams: 2 },
    { day: '2026-01-01', merchant_id: '', field: 'issued_value', log: 1400, streams: 700 },
    { day: '2026-01-01', merchant_id: 'm', field: 'redeemed', log: 1, streams: 0 },
    { day: '2026-01-01', merchant_id: 'm', field: 'redeemed_value', log: 350, streams: 0 },
  ]);
  assert.equal([found, faults], [4, []]);
});

test('totals that are a penny off disagree', async ({ events }) => {
  await bought(events, 'ta');
  const range = await logRange(events, { zone });
  const [row] = await foldTotals(events, range, zone);
  const { differences } = await checkTotals(
    { events, transactions: knows(['ta']) },
    [{ ...row!, issued_value: 701 }],
    range,
    zone,
  );
  assert.equal(
    differences.map(({ field, log, streams }) => [field, log, streams]),
    [['issued_value', 701, 700]],
  );
});

test('money that can not be right is a fault of its transaction or gift', async ({ events }) => {
  const faults = async (): Promise<string[]> => {
    const { agree, faults: listed, faults_found: found, differences } = await checked(events);
    assert.equal([agree, found, differences], [false, listed.length, []]);
    return listed.map(({ transaction_id, fault }) => `${transaction_id} ${fault}`);
  };
  const [first = '', other = ''] = await bought(events, 'ta', { charged: 699, value: 349 });
  assert.equal(await faults(), [
    'ta charged 699, but its gifts cost 700',
    'ta issued for 349, but bought for 350',
    'ta issued for 349, but bought for 350',
  ]);
  await happened(events, first, 'GiftRedeemed', redeemed('r1', 351));
  await happened(events, first, 'GiftRedeemed', redeemed('r2'));
  await happened(events, other, 'GiftRedeemed', redeemed('r3'));
  await happened(events, other, 'GiftUnredeemed', { redemption_id: 'r3' });
  await happened(events, other, 'GiftUnredeemed', { redemption_id: 'r3' });
  await happened(events, 'transaction-ta', 'GiftsRefunded', {
    refund_id: 'x',
    gift_ids: [first.slice(5), other.slice(5)],
    amount: 700,
  });
  assert.equal(
    (await faults()).filter((text) => !/issued|charged 699, but its/.test(text)),
    [
      'ta refunded 700, but charged 699',
      'ta redeemed for 351, but bought for 350',
      'ta redeemed twice: r1 and r2',
      'ta reverses the redemption r3, which is not the open one',
    ],
  );
  await bought(events, 'tb', { charged: 0, issued: 1 });
  assert.ok((await faults()).includes('tb issued without being paid for'));
});

test('a read model that is behind can not be held against anything', async ({ events }) => {
  await bought(events, 'ta');
  const range = await logRange(events, { zone });
  await checkTotals({ events, transactions: knows(['ta'], false) }, [], range, zone).then(
    () => assert.unreachable(),
    (error: Error) => {
      assert.instance(error, UnavailableError);
      assert.match(error.message, /has not come to position/);
    },
  );
});

test('without the read model the log says which transactions there are', async ({ events }) => {
  await bought(events, 'ta');
  await bought(events, 'tb');
  const range = await logRange(events, { zone });
  const rows = await foldTotals(events, range, zone);
  let told = 0;
  const check = await checkTotals({ events, transactions: knows([], false) }, rows, range, zone, {
    onBehind: () => void (told += 1),
  });
  assert.equal([check.agree, check.transactions, check.gifts, told], [true, 2, 4, 1]);
  await bought(events, 'ta');
  assert.is(
    (await checkTotals({ events, transactions: knows([], false) }, rows, range, zone, { onBehind: () => undefined }))
      .agree,
    true,
    'what came after the range does not count',
  );
});

test('counts events before the range on neither side', async ({ events }) => {
  const [first = ''] = await bought(events, 'ta');
  await happened(events, first, 'GiftRedeemed', redeemed('r1'));
  const after = await events.end();
  await happened(events, first, 'GiftUnredeemed', { redemption_id: 'r1' });
  await bought(events, 'tb');
  const range = await logRange(events, { zone, after });
  const [issued, , unredeemed] = await events.read(first);
  assert.is(
    (await logRange(events, { zone, from: unredeemed?.at, after: issued?.position })).after,
    after,
    'the later of both, and what happened at that very instant is in it',
  );
  const rows = await foldTotals(events, range, zone);
  assert.equal([sumOf(rows).issued, sumOf(rows).redeemed, sumOf(rows).unredeemed], [2, 0, 1]);
  assert.is((await checkTotals({ events, transactions: knows(['ta', 'tb']) }, rows, range, zone)).agree, true);
});

test('an empty log has no totals, and they agree', async ({ events }) => {
  const range = await logRange(events, { zone });
  assert.equal(range, { after: null, through: null, from: null, to: null, time_zone: 'UTC' });
  assert.equal(await foldTotals(events, range, zone), []);
  assert.is((await checked(events, [])).agree, true);
});

test("a check that is stopped ends with the signal's reason", async ({ events }) => {
  await bought(events, 'ta');
  const range = await logRange(events, { zone });
  const stopped = AbortSignal.abort(new Error('stopped'));
  for (const run of [
    async () => foldTotals(events, range, zone, { signal: stopped }),
    async () => checkTotals({ events, transactions: knows(['ta']) }, [], range, zone, { signal: stopped }),
  ]) {
    await run().then(
      () => assert.unreachable(),
      (error: Error) => assert.is(error.message, 'stopped'),
    );
  }
});

test.run();

/** Disputes and refunds made at the provider: gifts blocked, freed and cancelled durably, whatever dies. */
import * as assert from 'uvu/assert';
import { notePaymentNews } from '../../../src/commands/notePaymentNews.js';
import type { PaymentNews } from '../../../src/domain/paymentNews.js';
import { ConflictError, type EventStore } from '../../../src/ports/eventStore.js';
import type { Bought, House } from '../../support/service/house.js';
import { houseSuite } from '../../support/service/houseSuite.js';
import { everyKillPoint } from '../../support/faults/killPoints.js';
import { mortal } from '../../support/faults/mortal.js';

const test = houseSuite('disputes and external refunds');
test.before.each(async ({ house }) => {
  await house.work();
});

const provider = 'simulated';
let serial = 0;
async function tell(house: House, { transactionId }: Bought, news: Untold): Promise<string> {
  return notePaymentNews(
    house.events,
    transactionId,
    { charge_id: `ch_simulated_${transactionId}`, ...news } as PaymentNews,
    {
      commandId: `stripe-evt_${++serial}`,
      correlationId: house.correlationId,
      by: { user: 'system:payment-provider' },
      now: new Date().toISOString(),
    },
  );
}
/** Without the charge, which is that of the purchase that it is told of. */
type Untold = PaymentNews extends infer N
  ? N extends { readonly charge_id: string }
    ? Omit<N, 'charge_id'>
    : never
  : never;
const opened = (id = 'dp_1'): Untold => ({
  provider,
  kind: 'dispute opened',
  dispute_id: id,
  amount: 250,
  reason: 'fraudulent',
});
const closed = (outcome: 'won' | 'lost', id = 'dp_1'): Untold => ({
  provider,
  kind: 'dispute closed',
  dispute_id: id,
  amount: 250,
  reason: 'fraudulent',
  outcome,
});
const back = (_: Bought, total: number): Untold => ({ provider, kind: 'refunded', total });
const count = async (house: House, { transactionId }: Bought, type: string): Promise<number> =>
  (await house.types(`transaction-${transactionId}`)).filter((one) => one === type).length;
const gifts = (house: House, { giftIds }: Bought): Promise<string[]> =>
  Promise.all(giftIds.map(async (id) => (await house.types(`gift-${id}`)).slice(1).join()));
const redeemed = (house: House, giftId = ''): Promise<void> =>
  house.append(`gift-${giftId}`, 'GiftRedeemed', {
    redemption_id: 'r',
    location_id: 'l',
    location_merchant_id: 'm',
    merchant_id: 'm',
    brand_id: 'b',
    product_id: 'p',
    value: 250,
  });
const vouchered = (house: House, giftId = ''): Promise<void> =>
  house.append(`gift-${giftId}`, 'VoucherAssigned', {
    voucher_id: 'v',
    code: 'c',
    pin: null,
    segment_id: 's',
    expires_at: '2099-01-01T00:00:00.000Z',
  });
/** Bought and issued. */
async function issued(house: House, receivers: number): Promise<Bought> {
  const bought = await house.buy(Array.from({ length: receivers }, () => ({})));
  await house.until(async () =>
    (await Promise.all(bought.giftIds.map((id) => house.types(`gift-${id}`)))).every((types) => types.length > 0),
  );
  return bought;
}
const causes = async (house: House): Promise<string[]> =>
  (await house.all('WorkParked')).map(({ data }) => (data as { cause: string }).cause);

test('each dispute blocks by itself: a gift is free only once all are won', async ({ house }) => {
  house.process();
  const bought = await issued(house, 2);
  await tell(house, bought, opened('dp_1'));
  await tell(house, bought, opened('dp_2'));
  await house.until(async () => (await count(house, bought, 'DisputeSettled')) === 2);
  assert.equal(await gifts(house, bought), ['GiftBlocked,GiftBlocked', 'GiftBlocked,GiftBlocked']);
  await tell(house, bought, closed('won', 'dp_2'));
  await house.until(async () => (await count(house, bought, 'DisputeSettled')) === 3);
  await tell(house, bought, closed('lost', 'dp_1'));
  assert.equal(
    (await house.all('GiftUnblocked')).map(({ data }) => (data as { cause: string }).cause),
    ['dispute:dp_2', 'dispute:dp_2'],
  );
  const settled = (await house.all('DisputeSettled')).map(({ data }) => data as { dispute_id: string });
  // The first two in whatever order.
  assert.equal(
    settled.slice(0, 2).toSorted((one, other) => (one.dispute_id < other.dispute_id ? -1 : 1)),
    ['dp_1', 'dp_2'].map((dispute_id) => ({ dispute_id, blocked: true, gifts: 2 })),
  );
  assert.equal(settled.slice(2), [{ dispute_id: 'dp_2', blocked: false, gifts: 0 }]);
  assert.is(await tell(house, bought, closed('lost', 'dp_1')), 'known', 'the end is told once');
  assert.is(await tell(house, bought, closed('won', 'dp_1')), 'recorded', 'won on appeal');
  await house.until(async () => (await count(house, bought, 'DisputeSettled')) === 4);
  assert.is((await house.all('GiftUnblocked')).length, 4);
  assert.is(await tell(house, bought, closed('lost', 'dp_1')), 'known', 'late');
});

test('a dispute about a charge that bought nothing leaves the gifts as they are', async ({ house }) => {
  house.process();
  const bought = await issued(house, 1);
  await tell(house, bought, { provider, kind: 'succeeded', charge_id: 'ch_second', amount: 250 } as Untold);
  await house.until(async () => (await count(house, bought, 'RefundStarted')) === 1);
  const second = { charge_id: 'ch_second' };
  assert.equal(
    [
      await tell(house, bought, { ...opened(), ...second }),
      await tell(house, bought, { ...closed('lost'), ...second }),
    ],
    ['known', 'known'],
  );
  assert.is(await tell(house, bought, opened()), 'recorded');
});

test('makes up for a shortfall on a retry after a gift was unredeemed', async ({ house }) => {
  house.process();
  const bought = await issued(house, 1);
  const [gift = ''] = bought.giftIds;
  await redeemed(house, gift);
  await tell(house, bought, back(bought, 250));
  await house.until(async () => (await causes(house)).length === 1);
  const retry = async (): Promise<void> =>
    house.append('parked-refund', 'WorkRetried', {
      entity: bought.transactionId,
      transaction_id: bought.transactionId,
      step: 'provider refund',
      times: 1,
      reason: 'x',
    });
  await retry();
  await house.until(async () => (await causes(house)).length === 2);
  await house.append(`gift-${gift}`, 'GiftUnredeemed', { redemption_id: 'r' });
  await retry();
  await house.until(async () => (await count(house, bought, 'ProviderRefundSettled')) === 2);
  assert.equal(
    (await house.all('ProviderRefundSettled')).map(({ data }) => (data as { difference: number }).difference),
    [250, 0],
  );
  const lastRetry = (await house.all('WorkRetried')).at(-1);
  for (const type of ['ProviderRefundSettled', 'GiftCancelled'])
    assert.is((await house.all(type)).at(-1)?.metadata.causationId, lastRetry?.id, 'who handed it back, and why');
  assert.match((await gifts(house, bought)).join(), /GiftUnredeemed,GiftCancelled/);
  assert.is((await causes(house)).length, 2);
});

test('waits for the charge before it answers a dispute; blocks nothing where it was declined', async ({ house }) => {
  const early = await house.buy([{}]);
  await tell(house, early, opened());
  await tell(house, early, back(early, 250));
  const declined = await house.buy([{}], { reference: 'pm_card_chargeDeclined' });
  await tell(house, declined, opened('dp_2'));
  await tell(house, declined, back(declined, 250));
  house.process();
  await house.until(
    async () =>
      (await count(house, early, 'DisputeSettled')) === 1 &&
      (await count(house, early, 'ProviderRefundSettled')) === 1 &&
      (await count(house, declined, 'DisputeSettled')) === 1 &&
      (await count(house, declined, 'ProviderRefundSettled')) === 1,
  );
  const [types = ''] = await gifts(house, early);
  assert.match(types, 'GiftCancelled');
  assert.equal(await gifts(house, declined), ['']);
});

test('blocks the gifts of a dispute whose end comes first', async ({ house }) => {
  house.process();
  const bought = await issued(house, 1);
  assert.is(await tell(house, bought, closed('lost')), 'recorded');
  await house.until(async () => (await count(house, bought, 'DisputeSettled')) === 1);
  assert.equal(
    (await house.all('GiftBlocked')).map(({ data }) => data),
    [{ cause: 'dispute:dp_1', reason: 'the payment is disputed: fraudulent' }],
  );
  assert.is(await tell(house, bought, opened()), 'known');
  assert.is(await tell(house, bought, closed('won', 'dp_2')), 'recorded');
  await house.until(async () => (await count(house, bought, 'DisputeSettled')) === 2);
  assert.equal(await gifts(house, bought), ['GiftBlocked']);
});

test('a gift that is not issued yet is issued and blocked in one', async ({ house }) => {
  const bought = await house.buy([{}, {}]);
  await house.append(`transaction-${bought.transactionId}`, 'PaymentCharged', {
    amount: 500,
    provider,
    charge_id: `ch_simulated_${bought.transactionId}`,
  });
  await tell(house, bought, opened());
  house.process();
  await house.until(async () => (await count(house, bought, 'DisputeSettled')) === 1);
  for (const giftId of bought.giftIds) assert.equal(await house.types(`gift-${giftId}`), ['GiftIssued', 'GiftBlocked']);
});

test('parks a shortfall, and codes that are out, once with the cause', async ({ house }) => {
  const first = house.process();
  const bought = await issued(house, 4);
  await redeemed(house, bought.giftIds[0]);
  await vouchered(house, bought.giftIds[3]);
  await tell(house, bought, back(bought, 500));
  await house.until(async () => (await count(house, bought, 'ProviderRefundSettled')) === 1);
  assert.equal(
    await gifts(house, bought),
    ['GiftRedeemed', 'GiftCancelled', 'GiftCancelled', 'VoucherAssigned'],
    'those whose code is out come last',
  );
  assert.equal(await causes(house), []);
  await tell(house, bought, back(bought, 1000));
  await house.until(async () => (await causes(house)).length === 1);
  assert.equal(await causes(house), [
    '£10.00 was given back at the provider; 3 gifts are cancelled for it; the codes of 1 of them are out; £2.50 of it no unredeemed gift makes up for',
  ]);
  assert.equal(
    (await house.all('WorkParked')).map(({ stream, data }) => [
      stream,
      (data as { entity: string }).entity,
      (data as { step: string }).step,
    ]),
    [['parked-refund', bought.transactionId, 'provider refund']],
  );
  // Decided from the stream: starting anew changes nothing.
  await first.close();
  for (const { key } of await house.deps.records.list('checkpoint')) await house.deps.records.delete(key);
  const end = await house.events.end();
  const second = house.process();
  await house.until(
    async () => house.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 2,
  );
  await second.close();
  assert.equal(await house.events.end(), end);
  const checkpoint = (await house.deps.records.get<{ position: string }>('checkpoint/process-managers'))?.value
    .position;
  assert.is(checkpoint, end, 'nothing is left open');
});

test('parks a shortfall in the next process where the first died before', async ({ house }) => {
  const bought = await house.buy([{}]);
  const stream = `transaction-${bought.transactionId}`;
  await house.append(stream, 'PaymentCharged', {
    amount: 250,
    provider,
    charge_id: `ch_simulated_${bought.transactionId}`,
  });
  await tell(house, bought, back(bought, 250));
  await house.append(stream, 'ProviderRefundSettled', { total: 250, cancelled: 0, vouchered: 0, difference: 250 });
  const processors = house.process();
  await house.until(async () => processors.status().caughtUp && processors.status().open === 0);
  assert.equal(await causes(house), [
    '£2.50 was given back at the provider; 0 gifts are cancelled for it; £2.50 of it no unredeemed gift makes up for',
  ]);
  assert.equal((await house.types(stream)).filter((type) => type === 'ProviderRefundSettled').length, 1);
});

test('names the event that asked as the cause, not the last one', async ({ house }) => {
  const bought = await issuedBy(house, 2);
  await tell(house, bought, back(bought, 250));
  await tell(house, bought, opened('dp_1'));
  await tell(house, bought, opened('dp_2'));
  house.process();
  await house.until(
    async () =>
      (await count(house, bought, 'DisputeSettled')) === 2 &&
      (await count(house, bought, 'ProviderRefundSettled')) === 1,
  );
  const [back1] = await house.all('RefundedAtProvider');
  const disputes = new Map(
    (await house.all('DisputeOpened')).map(({ id, data }) => [(data as { dispute_id: string }).dispute_id, id]),
  );
  for (const { metadata } of await house.all('GiftCancelled', 'ProviderRefundSettled'))
    assert.is(metadata.causationId, back1?.id);
  const answers = [
    ...(await house.all('GiftBlocked')).map(
      (event) => [event, (event.data as { cause: string }).cause.slice('dispute:'.length)] as const,
    ),
    ...(await house.all('DisputeSettled')).map(
      (event) => [event, (event.data as { dispute_id: string }).dispute_id] as const,
    ),
  ];
  assert.ok(answers.length >= 4);
  for (const [{ metadata }, dispute] of answers) assert.is(metadata.causationId, disputes.get(dispute));
});

test('cancels another gift where one was refunded by us', async ({ house }) => {
  house.process();
  const bought = await issued(house, 2);
  await house.append(`transaction-${bought.transactionId}`, 'RefundRequested', {
    refund_id: 'r1',
    gift_ids: bought.giftIds.slice(0, 1),
    voided: false,
    reason: 'wrong product',
  });
  await house.until(async () => (await count(house, bought, 'GiftsRefunded')) === 1);
  await tell(house, bought, back(bought, 500));
  await house.until(async () => (await count(house, bought, 'ProviderRefundSettled')) === 1);
  assert.equal(await gifts(house, bought), ['GiftCancelled', 'GiftCancelled']);
  assert.equal(
    (await house.all('ProviderRefundSettled')).map(({ data }) => data),
    [{ total: 250, cancelled: 1, vouchered: 0, difference: 0 }],
  );
});

test('a price that the money is no multiple of', async ({ house }) => {
  house.process();
  const bought = await issued(house, 2);
  await tell(house, bought, back(bought, 300));
  await house.until(async () => (await causes(house)).length === 1);
  assert.equal(await causes(house), [
    '£3.00 was given back at the provider; 1 gifts are cancelled for it; £0.50 of it no unredeemed gift makes up for',
  ]);
});

test('takes another gift where a redemption wins the race', async ({ house }) => {
  const bought = await issuedBy(house, 3);
  let raced = false;
  const events: EventStore = {
    ...house.events,
    async append(stream, appended, expected) {
      if (!raced && stream === `gift-${bought.giftIds[2]}` && appended[0]?.type === 'GiftCancelled') {
        raced = true;
        await redeemed(house, bought.giftIds[2]);
      }
      return house.events.append(stream, appended, expected);
    },
  };
  await tell(house, bought, back(bought, 500));
  house.process({ events });
  await house.until(async () => (await count(house, bought, 'ProviderRefundSettled')) === 1);
  assert.equal(await gifts(house, bought), ['GiftCancelled', 'GiftCancelled', 'GiftRedeemed']);
});

async function issuedBy(house: House, receivers: number): Promise<Bought> {
  const process = house.process();
  const bought = await issued(house, receivers);
  await process.close();
  return bought;
}

test('races lost without end are parked, each for itself', async ({ house }) => {
  const bought = await issuedBy(house, 1);
  const events: EventStore = {
    ...house.events,
    async append(stream, appended, expected) {
      if (stream.startsWith('gift-')) throw new ConflictError(stream, expected, 7);
      return house.events.append(stream, appended, expected);
    },
  };
  await tell(house, bought, opened('dp_7'));
  await tell(house, bought, back(bought, 250));
  const process = house.process({ events, retryPolicy: { ...house.deps.retryPolicy, attempts: 2 } });
  await house.until(async () => (await causes(house)).length === 2);
  const parked = (await house.all('WorkParked')).map(
    ({ stream, data }) => `${stream} ${(data as { entity: string }).entity} ${(data as { step: string }).step}`,
  );
  const asked = new Map((await house.all('DisputeOpened', 'RefundedAtProvider')).map(({ id, type }) => [id, type]));
  assert.equal(
    (await house.all('WorkParked'))
      .map(({ stream, data }) => `${stream} ${asked.get((data as { event_id: string }).event_id)}`)
      .toSorted(),
    ['parked-dispute DisputeOpened', 'parked-refund RefundedAtProvider'],
  );
  assert.equal(parked.toSorted(), [
    'parked-dispute dp_7 dispute',
    `parked-refund ${bought.transactionId} provider refund`,
  ]);
  await process.close();
  // What comes up anew is tried anew.
  house.process();
  await tell(house, bought, closed('won', 'dp_7'));
  await house.until(async () => (await count(house, bought, 'DisputeSettled')) === 1);
});

test('a purchase of thousands: blocked and freed, its processes dying on the way', async ({ house }) => {
  const bought = await house.buy(Array.from({ length: 2_000 }, () => ({})));
  await house.append(`transaction-${bought.transactionId}`, 'PaymentCharged', {
    amount: 500_000,
    provider,
    charge_id: `ch_simulated_${bought.transactionId}`,
  });
  await tell(house, bought, opened());
  const doomed = mortal(house.deps, 1_500, 'after');
  const first = house.process({ ...doomed.deps, leaseMs: 500 });
  await house.until(async () => doomed.dead);
  const second = house.process({ leaseMs: 500 });
  await house.until(async () => (await count(house, bought, 'DisputeSettled')) === 1);
  assert.is((await house.all('GiftBlocked')).length, 2_000);
  await tell(house, bought, closed('won'));
  await house.until(async () => (await count(house, bought, 'DisputeSettled')) === 2);
  assert.is((await house.all('GiftUnblocked')).length, 2_000);
  await Promise.all([first.close(), second.close()]);
});

for (const moment of ['before', 'after'] as const) {
  test(`blocks, frees, cancels and parks once when dying ${moment} any effect`, async ({ house }) => {
    const deaths = await everyKillPoint(house, async (part, at) => {
      const bought = await issuedBy(part, 3);
      await redeemed(part, bought.giftIds[0]);
      const dispute = `dp_${moment}_${at}`;
      const doomed = mortal(part.deps, at, moment);
      const first = part.process({ ...doomed.deps, leaseMs: 90 });
      let second: ReturnType<House['process']> | undefined;
      const until = async (holds: () => Promise<boolean>): Promise<void> => {
        await house.until(async () => doomed.dead || holds());
        if (doomed.dead) second ??= part.process({ leaseMs: 90 });
        await house.until(holds);
      };
      const settled = (times: number) => async (): Promise<boolean> =>
        (await count(house, bought, 'DisputeSettled')) === times;
      const parked = async (): Promise<number> =>
        (await house.all('WorkParked')).filter(
          ({ data }) => (data as { transaction_id: string }).transaction_id === bought.transactionId,
        ).length;
      await tell(part, bought, opened(dispute));
      await until(settled(1));
      await tell(part, bought, closed('won', dispute));
      await until(settled(2));
      await tell(part, bought, back(bought, 750));
      await until(async () => (await parked()) > 0);
      await Promise.all([first.close(), second?.close()]);
      const where = `died ${moment} effect ${at}`;
      const cancelled = 'GiftBlocked,GiftUnblocked,GiftCancelled';
      assert.equal(await gifts(house, bought), ['GiftRedeemed,GiftBlocked,GiftUnblocked', cancelled, cancelled], where);
      assert.is(await parked(), 1, where);
      assert.equal(
        [await count(house, bought, 'DisputeSettled'), await count(house, bought, 'ProviderRefundSettled')],
        [2, 1],
        where,
      );
      return doomed.dead;
    });
    assert.ok(deaths >= 10, `it has ${deaths} effects`);
  });
}

test.run();

/** Disputes and refunds made at the provider: gifts blocked, freed and cancelled durably, whatever dies. */
import * as assert from 'uvu/assert';
import { recordProviderEvent } from '../../../src/commands/recordProviderEvent.js';
import type { ProviderEvent } from '../../../src/domain/purchase/providerEvent.js';
import { ConflictError, type EventStore } from '../../../src/ports/eventStore.js';
import type { TestInstallation } from '../../support/service/installation.js';
import type { Bought } from '../../support/service/testLog.js';
import { installationSuite } from '../../support/service/installationSuite.js';
import { everyKillPoint } from '../../support/faults/killPoints.js';
import { crashable } from '../../support/faults/crashable.js';

const test = installationSuite('disputes and external refunds');
test.before.each(async ({ installation }) => {
  await installation.work();
});

const provider = 'simulated';
let serial = 0;
async function tell(installation: TestInstallation, { transactionId }: Bought, news: Untold): Promise<string> {
  return recordProviderEvent(
    installation.events,
    transactionId,
    { charge_id: `ch_simulated_${transactionId}`, ...news } as ProviderEvent,
    {
      commandId: `stripe-evt_${++serial}`,
      correlationId: installation.correlationId,
      by: { user: 'system:payment-provider' },
      now: new Date().toISOString(),
    },
  );
}
/** Without the charge, which is that of the purchase that it is told of. */
type Untold = ProviderEvent extends infer N
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
const count = async (installation: TestInstallation, { transactionId }: Bought, type: string): Promise<number> =>
  (await installation.types(`transaction-${transactionId}`)).filter((one) => one === type).length;
const gifts = (installation: TestInstallation, { giftIds }: Bought): Promise<string[]> =>
  Promise.all(giftIds.map(async (id) => (await installation.types(`gift-${id}`)).slice(1).join()));
const redeemed = (installation: TestInstallation, giftId = ''): Promise<void> =>
  installation.append(`gift-${giftId}`, 'GiftRedeemed', {
    redemption_id: 'r',
    location_id: 'l',
    location_merchant_id: 'm',
    merchant_id: 'm',
    brand_id: 'b',
    product_id: 'p',
    value: 250,
  });
const vouchered = (installation: TestInstallation, giftId = ''): Promise<void> =>
  installation.append(`gift-${giftId}`, 'VoucherAssigned', {
    voucher_id: 'v',
    code: 'c',
    pin: null,
    segment_id: 's',
    expires_at: '2099-01-01T00:00:00.000Z',
  });
/** Bought and issued. */
async function issued(installation: TestInstallation, receivers: number): Promise<Bought> {
  const bought = await installation.buy(Array.from({ length: receivers }, () => ({})));
  await installation.until(async () =>
    (await Promise.all(bought.giftIds.map((id) => installation.types(`gift-${id}`)))).every(
      (types) => types.length > 0,
    ),
  );
  return bought;
}
const causes = async (installation: TestInstallation): Promise<string[]> =>
  (await installation.all('WorkParked')).map(({ data }) => (data as { cause: string }).cause);

test('each dispute blocks by itself: a gift is free only once all are won', async ({ installation }) => {
  installation.process();
  const bought = await issued(installation, 2);
  await tell(installation, bought, opened('dp_1'));
  await tell(installation, bought, opened('dp_2'));
  await installation.until(async () => (await count(installation, bought, 'DisputeSettled')) === 2);
  assert.equal(await gifts(installation, bought), ['GiftBlocked,GiftBlocked', 'GiftBlocked,GiftBlocked']);
  await tell(installation, bought, closed('won', 'dp_2'));
  await installation.until(async () => (await count(installation, bought, 'DisputeSettled')) === 3);
  await tell(installation, bought, closed('lost', 'dp_1'));
  assert.equal(
    (await installation.all('GiftUnblocked')).map(({ data }) => (data as { cause: string }).cause),
    ['dispute:dp_2', 'dispute:dp_2'],
  );
  const settled = (await installation.all('DisputeSettled')).map(({ data }) => data as { dispute_id: string });
  // The first two in whatever order.
  assert.equal(
    settled.slice(0, 2).toSorted((one, other) => (one.dispute_id < other.dispute_id ? -1 : 1)),
    ['dp_1', 'dp_2'].map((dispute_id) => ({ dispute_id, blocked: true, gifts: 2 })),
  );
  assert.equal(settled.slice(2), [{ dispute_id: 'dp_2', blocked: false, gifts: 0 }]);
  assert.is(await tell(installation, bought, closed('lost', 'dp_1')), 'known', 'the end is told once');
  assert.is(await tell(installation, bought, closed('won', 'dp_1')), 'recorded', 'won on appeal');
  await installation.until(async () => (await count(installation, bought, 'DisputeSettled')) === 4);
  assert.is((await installation.all('GiftUnblocked')).length, 4);
  assert.is(await tell(installation, bought, closed('lost', 'dp_1')), 'known', 'late');
});

test('a dispute about a charge that bought nothing leaves the gifts as they are', async ({ installation }) => {
  installation.process();
  const bought = await issued(installation, 1);
  await tell(installation, bought, { provider, kind: 'succeeded', charge_id: 'ch_second', amount: 250 } as Untold);
  await installation.until(async () => (await count(installation, bought, 'RefundStarted')) === 1);
  const second = { charge_id: 'ch_second' };
  assert.equal(
    [
      await tell(installation, bought, { ...opened(), ...second }),
      await tell(installation, bought, { ...closed('lost'), ...second }),
    ],
    ['known', 'known'],
  );
  assert.is(await tell(installation, bought, opened()), 'recorded');
});

test('makes up for a shortfall on a retry after a gift was unredeemed', async ({ installation }) => {
  installation.process();
  const bought = await issued(installation, 1);
  const [gift = ''] = bought.giftIds;
  await redeemed(installation, gift);
  await tell(installation, bought, back(bought, 250));
  await installation.until(async () => (await causes(installation)).length === 1);
  const retry = async (): Promise<void> =>
    installation.append('parked-refund', 'WorkRetried', {
      entity: bought.transactionId,
      transaction_id: bought.transactionId,
      step: 'provider refund',
      times: 1,
      reason: 'x',
    });
  await retry();
  await installation.until(async () => (await causes(installation)).length === 2);
  await installation.append(`gift-${gift}`, 'GiftUnredeemed', { redemption_id: 'r' });
  await retry();
  await installation.until(async () => (await count(installation, bought, 'ProviderRefundSettled')) === 2);
  assert.equal(
    (await installation.all('ProviderRefundSettled')).map(({ data }) => (data as { difference: number }).difference),
    [250, 0],
  );
  const lastRetry = (await installation.all('WorkRetried')).at(-1);
  for (const type of ['ProviderRefundSettled', 'GiftCancelled'])
    assert.is(
      (await installation.all(type)).at(-1)?.metadata.causationId,
      lastRetry?.id,
      'who handed it back, and why',
    );
  assert.match((await gifts(installation, bought)).join(), /GiftUnredeemed,GiftCancelled/);
  assert.is((await causes(installation)).length, 2);
});

test('waits for the charge before it answers a dispute; blocks nothing where it was declined', async ({
  installation,
}) => {
  const early = await installation.buy([{}]);
  await tell(installation, early, opened());
  await tell(installation, early, back(early, 250));
  const declined = await installation.buy([{}], { reference: 'pm_card_chargeDeclined' });
  await tell(installation, declined, opened('dp_2'));
  await tell(installation, declined, back(declined, 250));
  installation.process();
  await installation.until(
    async () =>
      (await count(installation, early, 'DisputeSettled')) === 1 &&
      (await count(installation, early, 'ProviderRefundSettled')) === 1 &&
      (await count(installation, declined, 'DisputeSettled')) === 1 &&
      (await count(installation, declined, 'ProviderRefundSettled')) === 1,
  );
  const [types = ''] = await gifts(installation, early);
  assert.match(types, 'GiftCancelled');
  assert.equal(await gifts(installation, declined), ['']);
});

test('blocks the gifts of a dispute whose end comes first', async ({ installation }) => {
  installation.process();
  const bought = await issued(installation, 1);
  assert.is(await tell(installation, bought, closed('lost')), 'recorded');
  await installation.until(async () => (await count(installation, bought, 'DisputeSettled')) === 1);
  assert.equal(
    (await installation.all('GiftBlocked')).map(({ data }) => data),
    [{ cause: 'dispute:dp_1', reason: 'the payment is disputed: fraudulent' }],
  );
  assert.is(await tell(installation, bought, opened()), 'known');
  assert.is(await tell(installation, bought, closed('won', 'dp_2')), 'recorded');
  await installation.until(async () => (await count(installation, bought, 'DisputeSettled')) === 2);
  assert.equal(await gifts(installation, bought), ['GiftBlocked']);
});

test('a gift that is not issued yet is issued and blocked in one', async ({ installation }) => {
  const bought = await installation.buy([{}, {}]);
  await installation.append(`transaction-${bought.transactionId}`, 'PaymentCharged', {
    amount: 500,
    provider,
    charge_id: `ch_simulated_${bought.transactionId}`,
  });
  await tell(installation, bought, opened());
  installation.process();
  await installation.until(async () => (await count(installation, bought, 'DisputeSettled')) === 1);
  for (const giftId of bought.giftIds)
    assert.equal(await installation.types(`gift-${giftId}`), ['GiftIssued', 'GiftBlocked']);
});

test('parks a shortfall, and codes that are out, once with the cause', async ({ installation }) => {
  const first = installation.process();
  const bought = await issued(installation, 4);
  await redeemed(installation, bought.giftIds[0]);
  await vouchered(installation, bought.giftIds[3]);
  await tell(installation, bought, back(bought, 500));
  await installation.until(async () => (await count(installation, bought, 'ProviderRefundSettled')) === 1);
  assert.equal(
    await gifts(installation, bought),
    ['GiftRedeemed', 'GiftCancelled', 'GiftCancelled', 'VoucherAssigned'],
    'those whose code is out come last',
  );
  assert.equal(await causes(installation), []);
  await tell(installation, bought, back(bought, 1000));
  await installation.until(async () => (await causes(installation)).length === 1);
  assert.equal(await causes(installation), [
    '£10.00 was given back at the provider; 3 gifts are cancelled for it; the codes of 1 of them are out; £2.50 of it no unredeemed gift makes up for',
  ]);
  assert.equal(
    (await installation.all('WorkParked')).map(({ stream, data }) => [
      stream,
      (data as { entity: string }).entity,
      (data as { step: string }).step,
    ]),
    [['parked-refund', bought.transactionId, 'provider refund']],
  );
  // Decided from the stream: starting anew changes nothing.
  await first.close();
  for (const { key } of await installation.deps.records.list('checkpoint')) await installation.deps.records.delete(key);
  const end = await installation.events.end();
  const second = installation.process();
  await installation.until(
    async () => installation.lines.filter(({ msg }) => msg === 'process managers have caught up').length === 2,
  );
  await second.close();
  assert.equal(await installation.events.end(), end);
  const checkpoint = (await installation.deps.records.get<{ position: string }>('checkpoint/process-managers'))?.value
    .position;
  assert.is(checkpoint, end, 'nothing is left open');
});

test('parks a shortfall in the next process where the first died before', async ({ installation }) => {
  const bought = await installation.buy([{}]);
  const stream = `transaction-${bought.transactionId}`;
  await installation.append(stream, 'PaymentCharged', {
    amount: 250,
    provider,
    charge_id: `ch_simulated_${bought.transactionId}`,
  });
  await tell(installation, bought, back(bought, 250));
  await installation.append(stream, 'ProviderRefundSettled', {
    total: 250,
    cancelled: 0,
    vouchered: 0,
    difference: 250,
  });
  const processors = installation.process();
  await installation.until(async () => processors.status().caughtUp && processors.status().open === 0);
  assert.equal(await causes(installation), [
    '£2.50 was given back at the provider; 0 gifts are cancelled for it; £2.50 of it no unredeemed gift makes up for',
  ]);
  assert.equal((await installation.types(stream)).filter((type) => type === 'ProviderRefundSettled').length, 1);
});

test('names the event that asked as the cause, not the last one', async ({ installation }) => {
  const bought = await issuedBy(installation, 2);
  await tell(installation, bought, back(bought, 250));
  await tell(installation, bought, opened('dp_1'));
  await tell(installation, bought, opened('dp_2'));
  installation.process();
  await installation.until(
    async () =>
      (await count(installation, bought, 'DisputeSettled')) === 2 &&
      (await count(installation, bought, 'ProviderRefundSettled')) === 1,
  );
  const [back1] = await installation.all('RefundedAtProvider');
  const disputes = new Map(
    (await installation.all('DisputeOpened')).map(({ id, data }) => [(data as { dispute_id: string }).dispute_id, id]),
  );
  for (const { metadata } of await installation.all('GiftCancelled', 'ProviderRefundSettled'))
    assert.is(metadata.causationId, back1?.id);
  const answers = [
    ...(await installation.all('GiftBlocked')).map(
      (event) => [event, (event.data as { cause: string }).cause.slice('dispute:'.length)] as const,
    ),
    ...(await installation.all('DisputeSettled')).map(
      (event) => [event, (event.data as { dispute_id: string }).dispute_id] as const,
    ),
  ];
  assert.ok(answers.length >= 4);
  for (const [{ metadata }, dispute] of answers) assert.is(metadata.causationId, disputes.get(dispute));
});

test('cancels another gift where one was refunded by us', async ({ installation }) => {
  installation.process();
  const bought = await issued(installation, 2);
  await installation.append(`transaction-${bought.transactionId}`, 'RefundRequested', {
    refund_id: 'r1',
    gift_ids: bought.giftIds.slice(0, 1),
    voided: false,
    reason: 'wrong product',
  });
  await installation.until(async () => (await count(installation, bought, 'GiftsRefunded')) === 1);
  await tell(installation, bought, back(bought, 500));
  await installation.until(async () => (await count(installation, bought, 'ProviderRefundSettled')) === 1);
  assert.equal(await gifts(installation, bought), ['GiftCancelled', 'GiftCancelled']);
  assert.equal(
    (await installation.all('ProviderRefundSettled')).map(({ data }) => data),
    [{ total: 250, cancelled: 1, vouchered: 0, difference: 0 }],
  );
});

test('a price that the money is no multiple of', async ({ installation }) => {
  installation.process();
  const bought = await issued(installation, 2);
  await tell(installation, bought, back(bought, 300));
  await installation.until(async () => (await causes(installation)).length === 1);
  assert.equal(await causes(installation), [
    '£3.00 was given back at the provider; 1 gifts are cancelled for it; £0.50 of it no unredeemed gift makes up for',
  ]);
});

test('takes another gift where a redemption wins the race', async ({ installation }) => {
  const bought = await issuedBy(installation, 3);
  let raced = false;
  const events: EventStore = {
    ...installation.events,
    async append(stream, appended, expected) {
      if (!raced && stream === `gift-${bought.giftIds[2]}` && appended[0]?.type === 'GiftCancelled') {
        raced = true;
        await redeemed(installation, bought.giftIds[2]);
      }
      return installation.events.append(stream, appended, expected);
    },
  };
  await tell(installation, bought, back(bought, 500));
  installation.process({ events });
  await installation.until(async () => (await count(installation, bought, 'ProviderRefundSettled')) === 1);
  assert.equal(await gifts(installation, bought), ['GiftCancelled', 'GiftCancelled', 'GiftRedeemed']);
});

async function issuedBy(installation: TestInstallation, receivers: number): Promise<Bought> {
  const process = installation.process();
  const bought = await issued(installation, receivers);
  await process.close();
  return bought;
}

test('races lost without end are parked, each for itself', async ({ installation }) => {
  const bought = await issuedBy(installation, 1);
  const events: EventStore = {
    ...installation.events,
    async append(stream, appended, expected) {
      if (stream.startsWith('gift-')) throw new ConflictError(stream, expected, 7);
      return installation.events.append(stream, appended, expected);
    },
  };
  await tell(installation, bought, opened('dp_7'));
  await tell(installation, bought, back(bought, 250));
  const process = installation.process({ events, retryPolicy: { ...installation.deps.retryPolicy, attempts: 2 } });
  await installation.until(async () => (await causes(installation)).length === 2);
  const parked = (await installation.all('WorkParked')).map(
    ({ stream, data }) => `${stream} ${(data as { entity: string }).entity} ${(data as { step: string }).step}`,
  );
  const requested = new Map(
    (await installation.all('DisputeOpened', 'RefundedAtProvider')).map(({ id, type }) => [id, type]),
  );
  assert.equal(
    (await installation.all('WorkParked'))
      .map(({ stream, data }) => `${stream} ${requested.get((data as { event_id: string }).event_id)}`)
      .toSorted(),
    ['parked-dispute DisputeOpened', 'parked-refund RefundedAtProvider'],
  );
  assert.equal(parked.toSorted(), [
    'parked-dispute dp_7 dispute',
    `parked-refund ${bought.transactionId} provider refund`,
  ]);
  await process.close();
  // What comes up anew is tried anew.
  installation.process();
  await tell(installation, bought, closed('won', 'dp_7'));
  await installation.until(async () => (await count(installation, bought, 'DisputeSettled')) === 1);
});

test('a purchase of thousands: blocked and freed, its processes dying on the way', async ({ installation }) => {
  const bought = await installation.buy(Array.from({ length: 2_000 }, () => ({})));
  await installation.append(`transaction-${bought.transactionId}`, 'PaymentCharged', {
    amount: 500_000,
    provider,
    charge_id: `ch_simulated_${bought.transactionId}`,
  });
  await tell(installation, bought, opened());
  const doomed = crashable(installation.deps, 1_500, 'after');
  const first = installation.process({ ...doomed.deps, leaseMs: 500 });
  await installation.until(async () => doomed.dead);
  const second = installation.process({ leaseMs: 500 });
  await installation.until(async () => (await count(installation, bought, 'DisputeSettled')) === 1);
  assert.is((await installation.all('GiftBlocked')).length, 2_000);
  await tell(installation, bought, closed('won'));
  await installation.until(async () => (await count(installation, bought, 'DisputeSettled')) === 2);
  assert.is((await installation.all('GiftUnblocked')).length, 2_000);
  await Promise.all([first.close(), second.close()]);
});

for (const moment of ['before', 'after'] as const) {
  test(`blocks, frees, cancels and parks once when dying ${moment} any effect`, async ({ installation }) => {
    const deaths = await everyKillPoint(installation, async (part, at) => {
      const bought = await issuedBy(part, 3);
      await redeemed(part, bought.giftIds[0]);
      const dispute = `dp_${moment}_${at}`;
      const doomed = crashable(part.deps, at, moment);
      const first = part.process({ ...doomed.deps, leaseMs: 90 });
      let second: ReturnType<TestInstallation['process']> | undefined;
      const until = async (holds: () => Promise<boolean>): Promise<void> => {
        await installation.until(async () => doomed.dead || holds());
        if (doomed.dead) second ??= part.process({ leaseMs: 90 });
        await installation.until(holds);
      };
      const settled = (times: number) => async (): Promise<boolean> =>
        (await count(installation, bought, 'DisputeSettled')) === times;
      const parked = async (): Promise<number> =>
        (await installation.all('WorkParked')).filter(
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
      assert.equal(
        await gifts(installation, bought),
        ['GiftRedeemed,GiftBlocked,GiftUnblocked', cancelled, cancelled],
        where,
      );
      assert.is(await parked(), 1, where);
      assert.equal(
        [
          await count(installation, bought, 'DisputeSettled'),
          await count(installation, bought, 'ProviderRefundSettled'),
        ],
        [2, 1],
        where,
      );
      return doomed.dead;
    });
    assert.ok(deaths >= 10, `it has ${deaths} effects`);
  });
}

test.run();

/**
 * Purchases with the real providers' libraries, against stand-ins that fail; what counts in the end is the stand-ins'
 * own ledgers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { chances, faultyBus, seeds } from '../support/faults/faultyBus.js';
import { type Bought, hoursAgo, type House, phone } from '../support/service/house.js';
import { houseWithProvidersSuite } from '../support/service/houseSuite.js';
import { buyForThree as buy, checkLedgers, checkParked, isSettled } from '../support/providers/ledgers.js';
import { faultsByChance } from '../support/providers/realProviders.js';
import type { Asked, Fault } from '../support/providers/standIn.js';

const test = houseWithProvidersSuite('purchases by the real providers');

async function untilSettled(house: House, bought: readonly Bought[]): Promise<void> {
  for (const one of bought) await house.until(() => isSettled(house, one));
}

for (const seed of seeds(1, 2)) {
  test(`does everything once under faults of real providers and the bus (seed ${seed})`, async ({
    house,
    providers,
  }) => {
    providers.fault(faultsByChance(chances(seed)));
    await house.work(await providers.workers(house.deps.records));
    await house.work(await providers.workers(house.deps.records));
    house.process({ bus: faultyBus(house.bus, seed) });
    house.process({ bus: faultyBus(house.bus, seed + 100) });
    const isDeclined = (n: number): boolean => n % 4 === 0;
    const bought = await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        buy(house, n, isDeclined(n) ? 'pm_card_chargeDeclinedInsufficientFunds' : 'pm_card_visa'),
      ),
    );
    await untilSettled(house, bought);
    // What the bus delays is still to come.
    await sleep(100);
    for (const [n, one] of bought.entries())
      await checkLedgers(house, providers, one, n, isDeclined(n), `purchase ${n}`);
    assert.is(providers.stripe.intents.length, bought.length);
    await checkParked(house, providers);
  });
}

for (const when of ['done', 'undone'] as const) {
  test(`a provider that falls silent at any one request, ${when}: everything once`, async ({ house, providers }) => {
    await house.work(await providers.workers(house.deps.records));
    house.process();
    const fallingSilentAt = async (at: number): Promise<boolean> => {
      let requests = 0;
      const silence: Fault = { kind: 'silence', when };
      providers.fault(() => (++requests === at ? silence : undefined));
      const [good, bad] = [at * 2, at * 2 + 1];
      const bought = await Promise.all([buy(house, good), buy(house, bad, 'pm_card_chargeDeclined')]);
      await untilSettled(house, bought);
      for (const [index, one] of bought.entries())
        await checkLedgers(house, providers, one, index === 0 ? good : bad, index === 1, `silent at request ${at}`);
      return requests >= at;
    };
    let at = 1;
    while (await fallingSilentAt(at)) at++;
    assert.ok(at > 5, `a purchase has ${at - 1} requests`);
    await checkParked(house, providers);
    // Only where Twilio fell silent instead of sending.
    assert.is((await house.all('WorkParked')).length, when === 'done' ? 0 : 1);
  });
}

test('parks what the provider refuses at once, and stops nothing else', async ({ house, providers }) => {
  await house.work(await providers.workers(house.deps.records));
  house.process();
  const refusal = { type: 'invalid_request_error', code: 'livemode_mismatch' };
  providers.stripe.fault = ({ body }) =>
    body.includes('pm_card_mastercard')
      ? { kind: 'answer', answer: { status: 400, body: { error: refusal } } }
      : undefined;
  const wrong = await buy(house, 1, 'pm_card_mastercard');
  const right = await buy(house, 2);
  await untilSettled(house, [right]);
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  const [parked] = (await house.all('WorkParked')).map(({ data }) => data as { entity: string; cause: string });
  assert.is(parked?.entity, wrong.transactionId);
  assert.match(parked?.cause ?? '', /Stripe refuses the request \(HTTP 400, livemode_mismatch/);
  const creates = providers.stripe.asked.filter(
    ({ method, body }) => method === 'POST' && body.includes(wrong.transactionId),
  );
  assert.is(creates.length, 1);
});

test('a purchase that the provider can never take is declined, and stops nothing else', async ({
  house,
  providers,
}) => {
  await house.work(await providers.workers(house.deps.records));
  house.process();
  const never = await buy(house, 1, 'card-of-nobody');
  await untilSettled(house, [await buy(house, 2)]);
  await house.until(async () => (await house.all('PaymentDeclined')).length === 1);
  const [declined] = (await house.all('PaymentDeclined')).map(({ stream, data }) => ({
    stream,
    ...(data as { code: string }),
  }));
  assert.equal([declined?.stream, declined?.code], [`transaction-${never.transactionId}`, 'resource_missing']);
  assert.equal(await house.all('WorkParked'), []);
});

test('Retry-After is waited for, by everybody', async ({ house, providers }) => {
  await house.work(await providers.workers(house.deps.records));
  house.process();
  let limited = 0;
  providers.stripe.fault = () => (limited++ === 0 ? { kind: 'limited', retryAfter: '1' } : undefined);
  const began = performance.now();
  const bought = await Promise.all([1, 2, 3].map((n) => buy(house, n)));
  await untilSettled(house, bought);
  assert.ok(performance.now() - began >= 1_000);
  for (const [index, one] of bought.entries()) await checkLedgers(house, providers, one, index + 1, false);
});

test('stops calling a failing provider alone, and notifies each once afterwards', async ({ house, providers }) => {
  await house.work(await providers.workers(house.deps.records));
  house.process();
  providers.fcm.fault = () => ({ kind: 'error', when: 'undone' });
  const bought = await Promise.all(Array.from({ length: 30 }, (_, n) => buy(house, n)));
  await house.until(async () => (await house.all('NotificationSent')).length === 30);
  assert.is(providers.twilio.messages.length, 30);
  const asked = providers.fcm.asked.length;
  await sleep(400);
  const more = providers.fcm.asked.length - asked;
  assert.ok(more <= 8, `asked ${more} times by 30 who try every 40 ms`);
  assert.is(providers.fcm.messages.length, 0);
  providers.fcm.fault = () => undefined;
  await untilSettled(house, bought);
  for (const [n, one] of bought.entries()) await checkLedgers(house, providers, one, n, false, `purchase ${n}`);
  assert.equal(await house.all('WorkParked'), []);
});

test('notifies later what a limit holds back, and never gives it up', async ({ house, providers }) => {
  await house.work(await providers.workers(house.deps.records, { perNumber: 1, perBuyer: 100, windowMs: 700 }));
  house.process({ retryPolicy: { ...house.deps.retryPolicy, giveUpMs: 1 } });
  const bought = [];
  for (let n = 0; n < 3; n++) bought.push(await house.buy([phone(7)]));
  await house.until(async () => (await house.all('NotificationSent')).length === 3);
  for (const { giftIds } of bought) assert.is(providers.twilio.sent(house.deps.launchUrl(giftIds[0] ?? '')), 1);
  assert.equal(await house.all('WorkParked'), []);
});

test('a purchase found only after a day is looked up, never charged again', async ({ house, providers }) => {
  const hours = 3_600_000;
  const { transactionId } = await house.buy([{}], { at: new Date(Date.now() - 26 * hours).toISOString() });
  await house.append(
    `transaction-${transactionId}`,
    'ChargeStarted',
    { amount: 250, payment_reference: 'pm_card_visa' },
    new Date(Date.now() - 25 * hours).toISOString(),
  );
  const { payments, notifications } = await providers.workers(house.deps.records);
  const request = {
    transaction_id: transactionId,
    amount: 250,
    payment_reference: 'pm_card_visa',
    customer: null,
    started_at: new Date().toISOString(),
  };
  await payments.charge(request);
  providers.stripe.advance(25 * hours);
  const isCreate = ({ method, path }: Asked): boolean => method === 'POST' && path === '/v1/payment_intents';
  await house.work({ payments, notifications });
  house.process();
  await house.until(async () => (await house.types(`transaction-${transactionId}`)).includes('PaymentCharged'));
  assert.is(providers.stripe.charges(transactionId), 1);
  assert.is(providers.stripe.asked.filter(isCreate).length, 1);
});

test('asks for free purchases however late', async ({ house, providers }) => {
  const bought = await house.buy([{}], { price: 0 });
  const stream = `transaction-${bought.transactionId}`;
  await house.append(
    stream,
    'ChargeStarted',
    { amount: 0, payment_reference: 'pm_card_visa', kind: 'card', prepaid: false },
    hoursAgo(21),
  );
  await house.work(await providers.workers(house.deps.records));
  house.process();
  await house.until(async () => (await house.all('PaymentCharged', 'WorkParked')).length > 0);
  assert.equal(await house.types(stream), ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged']);
  assert.equal(providers.stripe.intents, []);
});

test.run();

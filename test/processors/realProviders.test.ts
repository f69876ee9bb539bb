/**
 * Purchases with the real providers' libraries, against stand-ins that fail; what counts in the end is the stand-ins'
 * own ledgers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { chances, faultyBus, seeds } from '../support/faults/faultyBus.js';
import { type TestInstallation, phone } from '../support/service/installation.js';
import { type Bought, hoursAgo } from '../support/service/testLog.js';
import { installationWithProvidersSuite } from '../support/service/installationSuite.js';
import { buyForThree as buy, checkLedgers, checkParked, isSettled } from '../support/providers/ledgers.js';
import { faultsByChance } from '../support/providers/realProviders.js';
import type { Requested, Fault } from '../support/providers/standIn.js';

const test = installationWithProvidersSuite('purchases by the real providers');

async function untilSettled(installation: TestInstallation, bought: readonly Bought[]): Promise<void> {
  for (const one of bought) await installation.until(() => isSettled(installation, one));
}

for (const seed of seeds(1, 2)) {
  test(`does everything once under faults of real providers and the bus (seed ${seed})`, async ({
    installation,
    providers,
  }) => {
    providers.fault(faultsByChance(chances(seed)));
    await installation.work(await providers.workers(installation.deps.records));
    await installation.work(await providers.workers(installation.deps.records));
    installation.process({ bus: faultyBus(installation.bus, seed) });
    installation.process({ bus: faultyBus(installation.bus, seed + 100) });
    const isDeclined = (n: number): boolean => n % 4 === 0;
    const bought = await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        buy(installation, n, isDeclined(n) ? 'pm_card_chargeDeclinedInsufficientFunds' : 'pm_card_visa'),
      ),
    );
    await untilSettled(installation, bought);
    // What the bus delays is still to come.
    await sleep(100);
    for (const [n, one] of bought.entries())
      await checkLedgers(installation, providers, one, n, isDeclined(n), `purchase ${n}`);
    assert.is(providers.stripe.intents.length, bought.length);
    await checkParked(installation, providers);
  });
}

for (const when of ['done', 'undone'] as const) {
  test(`a provider that falls silent at any one request, ${when}: everything once`, async ({
    installation,
    providers,
  }) => {
    await installation.work(await providers.workers(installation.deps.records));
    installation.process();
    const fallingSilentAt = async (at: number): Promise<boolean> => {
      let requests = 0;
      const silence: Fault = { kind: 'silence', when };
      providers.fault(() => (++requests === at ? silence : undefined));
      const [good, bad] = [at * 2, at * 2 + 1];
      const bought = await Promise.all([buy(installation, good), buy(installation, bad, 'pm_card_chargeDeclined')]);
      await untilSettled(installation, bought);
      for (const [index, one] of bought.entries())
        await checkLedgers(
          installation,
          providers,
          one,
          index === 0 ? good : bad,
          index === 1,
          `silent at request ${at}`,
        );
      return requests >= at;
    };
    let at = 1;
    while (await fallingSilentAt(at)) at++;
    assert.ok(at > 5, `a purchase has ${at - 1} requests`);
    await checkParked(installation, providers);
    // Only where Twilio fell silent instead of sending.
    assert.is((await installation.all('WorkParked')).length, when === 'done' ? 0 : 1);
  });
}

test('parks what the provider refuses at once, and stops nothing else', async ({ installation, providers }) => {
  await installation.work(await providers.workers(installation.deps.records));
  installation.process();
  const refusal = { type: 'invalid_request_error', code: 'livemode_mismatch' };
  providers.stripe.fault = ({ body }) =>
    body.includes('pm_card_mastercard')
      ? { kind: 'answer', answer: { status: 400, body: { error: refusal } } }
      : undefined;
  const wrong = await buy(installation, 1, 'pm_card_mastercard');
  const right = await buy(installation, 2);
  await untilSettled(installation, [right]);
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  const [parked] = (await installation.all('WorkParked')).map(({ data }) => data as { entity: string; cause: string });
  assert.is(parked?.entity, wrong.transactionId);
  assert.match(parked?.cause ?? '', /Stripe refuses the request \(HTTP 400, livemode_mismatch/);
  const creates = providers.stripe.requested.filter(
    ({ method, body }) => method === 'POST' && body.includes(wrong.transactionId),
  );
  assert.is(creates.length, 1);
});

test('a purchase that the provider can never take is declined, and stops nothing else', async ({
  installation,
  providers,
}) => {
  await installation.work(await providers.workers(installation.deps.records));
  installation.process();
  const never = await buy(installation, 1, 'card-of-nobody');
  await untilSettled(installation, [await buy(installation, 2)]);
  await installation.until(async () => (await installation.all('PaymentDeclined')).length === 1);
  const [declined] = (await installation.all('PaymentDeclined')).map(({ stream, data }) => ({
    stream,
    ...(data as { code: string }),
  }));
  assert.equal([declined?.stream, declined?.code], [`transaction-${never.transactionId}`, 'resource_missing']);
  assert.equal(await installation.all('WorkParked'), []);
});

test('Retry-After is waited for, by everybody', async ({ installation, providers }) => {
  await installation.work(await providers.workers(installation.deps.records));
  installation.process();
  let limited = 0;
  providers.stripe.fault = () => (limited++ === 0 ? { kind: 'limited', retryAfter: '1' } : undefined);
  const began = performance.now();
  const bought = await Promise.all([1, 2, 3].map((n) => buy(installation, n)));
  await untilSettled(installation, bought);
  assert.ok(performance.now() - began >= 1_000);
  for (const [index, one] of bought.entries()) await checkLedgers(installation, providers, one, index + 1, false);
});

test('stops calling a failing provider alone, and notifies each once afterwards', async ({
  installation,
  providers,
}) => {
  await installation.work(await providers.workers(installation.deps.records));
  installation.process();
  providers.fcm.fault = () => ({ kind: 'error', when: 'undone' });
  const bought = await Promise.all(Array.from({ length: 30 }, (_, n) => buy(installation, n)));
  await installation.until(async () => (await installation.all('NotificationSent')).length === 30);
  assert.is(providers.twilio.messages.length, 30);
  const requested = providers.fcm.requested.length;
  const since = performance.now();
  await sleep(400);
  const more = providers.fcm.requested.length - requested;
  const took = performance.now() - since;
  assert.ok(more <= Math.max(8, took / 50), `asked ${more} times in ${took} ms by 30 who try every 40 ms`);
  assert.is(providers.fcm.messages.length, 0);
  providers.fcm.fault = () => undefined;
  await untilSettled(installation, bought);
  for (const [n, one] of bought.entries()) await checkLedgers(installation, providers, one, n, false, `purchase ${n}`);
  assert.equal(await installation.all('WorkParked'), []);
});

test('notifies later what a limit holds back, and never gives it up', async ({ installation, providers }) => {
  await installation.work(
    await providers.workers(installation.deps.records, { perNumber: 1, perBuyer: 100, windowMs: 700 }),
  );
  installation.process({ retryPolicy: { ...installation.deps.retryPolicy, giveUpMs: 1 } });
  const bought = [];
  for (let n = 0; n < 3; n++) bought.push(await installation.buy([phone(7)]));
  await installation.until(async () => (await installation.all('NotificationSent')).length === 3);
  for (const { giftIds } of bought) assert.is(providers.twilio.sent(installation.deps.launchUrl(giftIds[0] ?? '')), 1);
  assert.equal(await installation.all('WorkParked'), []);
});

test('does not count as stuck what a limit of our own holds back', async ({ installation, providers }) => {
  await installation.work(
    await providers.workers(installation.deps.records, { perNumber: 1, perBuyer: 100, windowMs: 3_600_000 }),
  );
  const process = installation.process();
  for (let n = 0; n < 2; n++) await installation.buy([phone(7)]);
  await installation.until(async () => (await installation.all('NotificationSent')).length === 1);
  await installation.until(async () => process.status().steps.get('notify')?.failed === 1);
  const { open, oldestAt } = process.status();
  assert.equal([open, oldestAt], [1, undefined]);
});

test('a purchase found only after a day is looked up, never charged again', async ({ installation, providers }) => {
  const hours = 3_600_000;
  const { transactionId } = await installation.buy([{}], { at: new Date(Date.now() - 26 * hours).toISOString() });
  await installation.append(
    `transaction-${transactionId}`,
    'ChargeStarted',
    { amount: 250, payment_reference: 'pm_card_visa' },
    new Date(Date.now() - 25 * hours).toISOString(),
  );
  const { payments, notifications } = await providers.workers(installation.deps.records);
  const request = {
    transaction_id: transactionId,
    amount: 250,
    payment_reference: 'pm_card_visa',
    customer: null,
    started_at: new Date().toISOString(),
  };
  await payments.charge(request);
  providers.stripe.advance(25 * hours);
  const isCreate = ({ method, path }: Requested): boolean => method === 'POST' && path === '/v1/payment_intents';
  await installation.work({ payments, notifications });
  installation.process();
  await installation.until(async () =>
    (await installation.types(`transaction-${transactionId}`)).includes('PaymentCharged'),
  );
  assert.is(providers.stripe.charges(transactionId), 1);
  assert.is(providers.stripe.requested.filter(isCreate).length, 1);
});

test('asks for free purchases however late', async ({ installation, providers }) => {
  const bought = await installation.buy([{}], { price: 0 });
  const stream = `transaction-${bought.transactionId}`;
  await installation.append(
    stream,
    'ChargeStarted',
    { amount: 0, payment_reference: 'pm_card_visa', kind: 'card', prepaid: false },
    hoursAgo(21),
  );
  await installation.work(await providers.workers(installation.deps.records));
  installation.process();
  await installation.until(async () => (await installation.all('PaymentCharged', 'WorkParked')).length > 0);
  assert.equal(await installation.types(stream), ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged']);
  assert.equal(providers.stripe.intents, []);
});

test.run();

/**
 * Purchases whose buyer must prove who they are, with Stripe's library against a stand-in: what counts in the end is
 * the stand-in's own ledger.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { notePaymentNews } from '../../src/commands/notePaymentNews.js';
import type { PaymentNews } from '../../src/domain/paymentNews.js';
import { AUTHENTICATION_MS } from '../../src/domain/purchase/decisions.js';
import type { ProcessorDeps } from '../../src/processors/managers.js';
import { SUBJECTS } from '../support/providers/subjects.js';
import { chances, faultyBus, seeds } from '../support/faults/faultyBus.js';
import type { House } from '../support/service/house.js';
import { houseWithProvidersSuite } from '../support/service/houseSuite.js';
import { everyKillPoint } from '../support/faults/killPoints.js';
import { mortal } from '../support/faults/mortal.js';
import { faultsByChance, type RealProviders } from '../support/providers/realProviders.js';
import type { StripeIntent } from '../support/providers/stripeServer.js';

const test = houseWithProvidersSuite('buyers who must prove who they are');

const reference = 'pm_card_authenticationRequired';
const intentOf = ({ stripe }: RealProviders, transactionId: string): StripeIntent | undefined =>
  stripe.intents.find(({ metadata }) => metadata['transaction_id'] === transactionId);
const waits = (providers: RealProviders, transactionId: string): boolean =>
  intentOf(providers, transactionId)?.status === 'requires_action';
const quick = (house: House, more: Partial<ProcessorDeps['retryPolicy']> = {}): Pick<ProcessorDeps, 'retryPolicy'> => ({
  retryPolicy: { ...house.deps.retryPolicy, lookMs: 15, ...more },
});
const isSettled = async (house: House, transactionId: string): Promise<boolean> =>
  (await house.types(`transaction-${transactionId}`)).some(
    (type) => type === 'PaymentCharged' || type === 'PaymentDeclined',
  );

let serial = 0;
/** As the webhook notes it. */
async function tell(house: House, transactionId: string, news: PaymentNews, id = `evt_${++serial}`): Promise<string> {
  return notePaymentNews(house.events, transactionId, news, {
    commandId: `stripe-${id}`,
    correlationId: house.correlationId,
    by: { user: 'system:payment-provider' },
    now: new Date().toISOString(),
  });
}
const succeeded = ({ id, amount }: StripeIntent): PaymentNews => ({
  provider: 'stripe',
  kind: 'succeeded',
  charge_id: id,
  amount,
});

const CHARGED = ['GiftsPurchased', 'ChargeStarted', 'PaymentAuthenticationRequired', 'PaymentCharged'];
const DECLINED = ['GiftsPurchased', 'ChargeStarted', 'PaymentAuthenticationRequired', 'PaymentDeclined'];

test('looks a payment up without any webhook', async ({ house, providers }) => {
  await house.work(await providers.workers(house.deps.records));
  house.process(quick(house));
  const { transactionId, giftIds } = await house.buy([{}], { reference });
  await house.until(async () => waits(providers, transactionId));
  await house.until(async () => (await house.types(`transaction-${transactionId}`)).length === 3);
  await sleep(100);
  assert.equal(await house.types(`transaction-${transactionId}`), CHARGED.slice(0, 3));
  assert.equal(await house.types(`gift-${giftIds[0]}`), []);
  providers.stripe.authenticate(intentOf(providers, transactionId)?.id ?? '', true);
  await house.until(async () => (await house.types(`gift-${giftIds[0]}`)).length > 0);
  assert.equal(await house.types(`transaction-${transactionId}`), CHARGED);
  assert.is(providers.stripe.charges(transactionId), 1);
});

test('looked up less and less often', async ({ house, providers }) => {
  await house.work(await providers.workers(house.deps.records));
  house.process(quick(house, { lookMs: 20 }));
  await house.buy([{}], { reference });
  await house.until(async () => (await house.all('PaymentAuthenticationRequired')).length === 1);
  const since = performance.now();
  await house.until(async () => providers.stripe.asked.filter(({ method }) => method === 'GET').length >= 4);
  // After 20, 60, 180 and 540 ms.
  assert.ok(performance.now() - since > 400, `four looks within ${performance.now() - since} ms`);
  assert.equal(
    house.lines.filter(({ msg }) => msg === 'not done at the first attempt'),
    [],
  );
});

test('settles a payment by its webhook without a look-up', async ({ house, providers }) => {
  await house.work(await providers.workers(house.deps.records));
  house.process(quick(house, { lookMs: 600_000 }));
  const good = await house.buy([{}], { reference });
  const bad = await house.buy([{}], { reference });
  await house.until(async () => (await house.all('PaymentAuthenticationRequired')).length === 2);
  const [paid, failed] = [good, bad].map(({ transactionId }, index) =>
    providers.stripe.authenticate(intentOf(providers, transactionId)?.id ?? '', index === 0),
  );
  if (paid === undefined || failed === undefined) throw new Error('no intents');
  assert.is(await tell(house, good.transactionId, succeeded(paid), 'evt_paid'), 'recorded');
  assert.is(await tell(house, good.transactionId, succeeded(paid), 'evt_paid'), 'known', 'the same message');
  assert.is(await tell(house, good.transactionId, succeeded(paid)), 'known', 'the same in another message');
  const news: PaymentNews = {
    provider: 'stripe',
    kind: 'failed',
    charge_id: failed.id,
    code: 'payment_intent_authentication_failure',
  };
  assert.is(await tell(house, bad.transactionId, { ...news, charge_id: 'pi_other' }), 'known', 'another payment');
  assert.is(await tell(house, bad.transactionId, news), 'recorded');
  assert.is(await tell(house, bad.transactionId, news), 'known');
  await house.until(async () => (await isSettled(house, good.transactionId)) && isSettled(house, bad.transactionId));
  assert.equal(await house.types(`transaction-${good.transactionId}`), CHARGED);
  assert.equal(await house.types(`transaction-${bad.transactionId}`), [
    ...DECLINED.slice(0, 3),
    'PaymentAuthenticationFailed',
    'PaymentDeclined',
  ]);
  assert.equal(
    (await house.all('PaymentDeclined')).map(({ data }) => data),
    [{ provider: 'stripe', code: 'payment_intent_authentication_failure' }],
  );
  assert.is(failed.status, 'canceled');
  assert.equal([providers.stripe.charges(good.transactionId), providers.stripe.charges(bad.transactionId)], [1, 0]);
});

test('goes on from the stream where a webhook comes during the look-up', async ({ house }) => {
  const asked: string[] = [];
  const answers: Readonly<Record<string, object>> = {
    [SUBJECTS.charge]: {
      outcome: 'authentication',
      provider: 'stripe',
      payment_id: 'pi_1',
      action: 'redirect',
      simulated: false,
    },
    [SUBJECTS.lookUpCharge]: { outcome: 'unknown' },
    [SUBJECTS.cancelCharge]: { outcome: 'declined', provider: 'stripe', code: 'card_declined', simulated: false },
  };
  const { transactionId } = await house.buy([{}]);
  const bus: ProcessorDeps['bus'] = {
    ...house.bus,
    request: async <R>(subject: string) => {
      asked.push(subject);
      if (subject === SUBJECTS.lookUpCharge && asked.filter((one) => one === subject).length === 1) {
        await house.append(`transaction-${transactionId}`, 'PaymentAuthenticationFailed', {
          provider: 'stripe',
          payment_id: 'pi_1',
          code: 'card_declined',
        });
        const end = await house.events.end();
        await house.until(async () => (processors.status().position ?? '') >= (end ?? ''));
      }
      return answers[subject] as R;
    },
  };
  const processors = house.process({ ...quick(house), bus });
  await house.until(() => isSettled(house, transactionId));
  assert.equal(await house.types(`transaction-${transactionId}`), [
    ...DECLINED.slice(0, 3),
    'PaymentAuthenticationFailed',
    'PaymentDeclined',
  ]);
  assert.equal(asked, [SUBJECTS.charge, SUBJECTS.lookUpCharge, SUBJECTS.cancelCharge]);
});

test("cancels payment and gifts after the buyer's time, also where no process ran then", async ({
  house,
  providers,
}) => {
  await house.work(await providers.workers(house.deps.records));
  const first = house.process(quick(house, { authenticationMs: 200 }));
  const { transactionId, giftIds } = await house.buy([{}], { reference });
  await house.until(async () => (await house.all('PaymentAuthenticationRequired')).length === 1);
  await first.close();
  await sleep(250);
  assert.ok(!(await isSettled(house, transactionId)));
  house.process(quick(house));
  await house.until(() => isSettled(house, transactionId));
  assert.equal(await house.types(`transaction-${transactionId}`), DECLINED);
  assert.is(intentOf(providers, transactionId)?.status, 'canceled');
  assert.equal(await house.types(`gift-${giftIds[0]}`), []);
});

test('they have fifteen minutes, and are heard until the last millisecond of it', async ({ house, providers }) => {
  let now = Date.now();
  await house.work(await providers.workers(house.deps.records));
  house.process({ ...quick(house), now: () => now });
  const [quickEnough, tooLate] = [await house.buy([{}], { reference }), await house.buy([{}], { reference })];
  await house.until(async () => (await house.all('PaymentAuthenticationRequired')).length === 2);
  for (const { at, data } of await house.all('PaymentAuthenticationRequired'))
    assert.is(Date.parse((data as { until: string }).until) - Date.parse(at), 15 * 60_000);
  now += 15 * 60_000 - 1;
  const looks = (): number => providers.stripe.asked.filter(({ method }) => method === 'GET').length;
  const before = looks();
  await house.until(async () => looks() > before + 4);
  assert.ok(!(await isSettled(house, quickEnough.transactionId)) && !(await isSettled(house, tooLate.transactionId)));
  providers.stripe.authenticate(intentOf(providers, quickEnough.transactionId)?.id ?? '', true);
  await house.until(() => isSettled(house, quickEnough.transactionId));
  now += 1;
  await house.until(() => isSettled(house, tooLate.transactionId));
  assert.equal(
    [
      await house.types(`transaction-${quickEnough.transactionId}`),
      await house.types(`transaction-${tooLate.transactionId}`),
    ],
    [CHARGED, DECLINED],
  );
  assert.equal(
    (await house.all('PaymentDeclined')).map(({ data }) => data),
    [{ provider: 'stripe', code: 'authentication_required' }],
  );
  assert.is(intentOf(providers, tooLate.transactionId)?.status, 'canceled');
  assert.throws(
    () => providers.stripe.authenticate(intentOf(providers, tooLate.transactionId)?.id ?? '', true),
    /no challenge/,
  );
});

for (const [ahead, words] of [
  [5 * 60_000, 'some minutes: looked up as before'],
  [30 * 86_400_000, 'more than a timer can wait: over, rather than open for as long as the clock was ahead'],
] as const) {
  test(`a clock that is set back while a buyer is waited for, by ${words}`, async ({ house }) => {
    const asked: string[] = [];
    const waiting = {
      outcome: 'authentication',
      provider: 'stripe',
      payment_id: 'pi_1',
      action: 'redirect',
      simulated: false,
    };
    let isSetBack = false;
    let since = 0;
    const answers: Readonly<Record<string, () => object>> = {
      [SUBJECTS.charge]: () => waiting,
      [SUBJECTS.lookUpCharge]: () =>
        isSetBack && ++since === 8
          ? { outcome: 'charged', provider: 'stripe', charge_id: 'pi_1', simulated: false }
          : waiting,
      [SUBJECTS.cancelCharge]: () => ({
        outcome: 'declined',
        provider: 'stripe',
        code: 'authentication_required',
        simulated: false,
      }),
    };
    const bus = {
      ...house.bus,
      request: async <R>(subject: string) => (asked.push(subject), answers[subject]?.() as R),
    };
    house.process({ ...quick(house, { lookMs: 1 }), bus, now: () => Date.now() + (isSetBack ? 0 : ahead) });
    const { transactionId } = await house.buy([{}]);
    await house.until(async () => asked.includes(SUBJECTS.lookUpCharge));
    const looks = asked.length;
    isSetBack = true;
    await house.until(() => isSettled(house, transactionId));
    const last = ahead > AUTHENTICATION_MS ? SUBJECTS.cancelCharge : SUBJECTS.lookUpCharge;
    assert.equal([asked.slice(looks).at(-1), asked.length - looks <= 9], [last, true], asked.join());
    assert.equal(
      await house.types(`transaction-${transactionId}`),
      last === SUBJECTS.cancelCharge ? DECLINED : CHARGED,
    );
  });
}

for (const proves of [true, false]) {
  for (const moment of ['before', 'after'] as const) {
    test(`has one outcome when dying ${moment} any effect, ${proves ? 'authenticated' : 'buyer absent'}`, async ({
      house,
      providers,
    }) => {
      await house.work(await providers.workers(house.deps.records));
      const deaths = await everyKillPoint(house, async (part, at) => {
        const doomed = mortal(part.deps, at, moment);
        const retryPolicy = quick(house, { lookMs: 10, authenticationMs: proves ? 60_000 : 60 });
        const first = part.process({ ...doomed.deps, ...retryPolicy, leaseMs: 90 });
        const { transactionId } = await part.buy([{}], { reference });
        const advance = (): void => {
          const intent = intentOf(providers, transactionId);
          if (proves && intent?.status === 'requires_action') providers.stripe.authenticate(intent.id, true);
        };
        await house.until(async () => {
          advance();
          return doomed.dead || isSettled(house, transactionId);
        });
        const died = doomed.dead;
        const second = part.process({ ...retryPolicy, leaseMs: 90 });
        await house.until(async () => {
          advance();
          return isSettled(house, transactionId);
        });
        await Promise.all([first.close(), second.close()]);
        const where = `died ${moment} effect ${at}`;
        // A buyer who was quick is found charged at once, before anybody waits for them.
        const types = (await house.types(`transaction-${transactionId}`)).filter(
          (type) => type !== 'PaymentAuthenticationRequired',
        );
        assert.equal(types, ['GiftsPurchased', 'ChargeStarted', proves ? 'PaymentCharged' : 'PaymentDeclined'], where);
        assert.is(providers.stripe.charges(transactionId), proves ? 1 : 0, where);
        assert.equal(
          providers.stripe.intents
            .filter(({ metadata }) => metadata['transaction_id'] === transactionId)
            .map(({ status }) => status),
          [proves ? 'succeeded' : 'canceled'],
          where,
        );
        return died;
      });
      assert.ok(deaths >= 4, `a purchase has ${deaths} effects`);
      assert.equal(await house.all('WorkParked'), []);
    });
  }
}

for (const seed of seeds(1, 2)) {
  test(`pays or cancels each under faults at the end of the buyers' time (seed ${seed})`, async ({
    house,
    providers,
  }) => {
    const chance = chances(seed);
    providers.fault(faultsByChance(chances(seed + 50)));
    await house.work(await providers.workers(house.deps.records));
    await house.work(await providers.workers(house.deps.records));
    const retryPolicy = quick(house, { lookMs: 40, authenticationMs: 300 });
    house.process({ bus: faultyBus(house.bus, seed), ...retryPolicy });
    house.process({ bus: faultyBus(house.bus, seed + 100), ...retryPolicy });
    const bought = await Promise.all(Array.from({ length: 16 }, () => house.buy([{}], { reference })));
    const buyer = async (transactionId: string): Promise<void> => {
      await house.until(async () => intentOf(providers, transactionId) !== undefined);
      await sleep(chance() * 500);
      const intent = intentOf(providers, transactionId);
      if (intent?.status !== 'requires_action' || chance() < 0.2) return;
      const proves = chance() < 0.7;
      providers.stripe.authenticate(intent.id, proves);
      const news: PaymentNews = proves
        ? succeeded(intent)
        : { provider: 'stripe', kind: 'failed', charge_id: intent.id, code: 'payment_intent_authentication_failure' };
      // Each message is lost, sent once, or sent twice at once.
      await Promise.all(
        Array.from({ length: Math.floor(chance() * 3) }, () =>
          tell(house, transactionId, news, `evt_of_${transactionId}`),
        ),
      );
    };
    await Promise.all(bought.map(({ transactionId }) => buyer(transactionId)));
    for (const { transactionId } of bought) {
      await house.until(() => isSettled(house, transactionId));
      const types = await house.types(`transaction-${transactionId}`);
      const paid = types.includes('PaymentCharged');
      assert.is(
        types.filter((type) => type === 'PaymentCharged' || type === 'PaymentDeclined').length,
        1,
        types.join(),
      );
      assert.is(providers.stripe.charges(transactionId), paid ? 1 : 0, types.join());
      assert.is(providers.stripe.refunded(transactionId), 0);
      assert.equal(
        providers.stripe.intents
          .filter(({ metadata }) => metadata['transaction_id'] === transactionId)
          .map(({ status }) => status),
        [paid ? 'succeeded' : 'canceled'],
      );
    }
    assert.equal(await house.all('WorkParked'), []);
  });
}

for (const moment of ['before', 'after'] as const) {
  test(`gives a late success back once when dying ${moment} any effect`, async ({ house, providers }) => {
    await house.work(await providers.workers(house.deps.records));
    const deaths = await everyKillPoint(house, async (part, at) => {
      const prelude = part.process({ leaseMs: 90 });
      const { transactionId } = await part.buy([{}], { reference: 'pm_card_chargeDeclined' });
      await house.until(() => isSettled(house, transactionId));
      await prelude.close();
      const intent = intentOf(providers, transactionId);
      if (intent === undefined) throw new Error('no intent');
      intent.status = 'succeeded';
      const doomed = mortal(part.deps, at, moment);
      const first = part.process({ ...doomed.deps, leaseMs: 90 });
      await Promise.all(
        ['a', 'b', 'a'].map((id) => tell(part, transactionId, succeeded(intent), `evt_${transactionId}_${id}`)),
      );
      const over = async (): Promise<boolean> =>
        (await house.types(`transaction-${transactionId}`)).includes('GiftsRefunded');
      await house.until(async () => doomed.dead || over());
      const died = doomed.dead;
      const second = part.process({ leaseMs: 90 });
      await house.until(over);
      await Promise.all([first.close(), second.close()]);
      const where = `died ${moment} effect ${at}`;
      assert.equal(
        (await house.types(`transaction-${transactionId}`)).slice(-3),
        ['PaymentDeclined', 'RefundStarted', 'GiftsRefunded'],
        where,
      );
      assert.equal(
        providers.stripe.refunds
          .filter(({ payment_intent }) => payment_intent === intent.id)
          .map(({ amount }) => amount),
        [intent.amount],
        where,
      );
      return died;
    });
    assert.ok(deaths >= 2, `a refund has ${deaths} effects`);
    assert.equal(await house.all('WorkParked'), []);
  });
}

test.run();

/**
 * Purchases whose buyer must prove who they are, with Stripe's library against a stand-in: what counts in the end is
 * the stand-in's own ledger.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { recordProviderEvent } from '../../src/commands/recordProviderEvent.js';
import type { ProviderEvent } from '../../src/domain/purchase/providerEvent.js';
import { AUTHENTICATION_MS } from '../../src/domain/purchase/decisions.js';
import type { ProcessorDeps } from '../../src/processors/managers.js';
import { SUBJECTS } from '../support/providers/subjects.js';
import { chances, faultyBus, seeds } from '../support/faults/faultyBus.js';
import type { TestInstallation } from '../support/service/installation.js';
import { installationWithProvidersSuite } from '../support/service/installationSuite.js';
import { everyKillPoint } from '../support/faults/killPoints.js';
import { crashable } from '../support/faults/crashable.js';
import { faultsByChance, type RealProviders } from '../support/providers/realProviders.js';
import type { StripeIntent } from '../support/providers/stripeServer.js';

const test = installationWithProvidersSuite('buyers who must prove who they are');

const reference = 'pm_card_authenticationRequired';
const intentOf = ({ stripe }: RealProviders, transactionId: string): StripeIntent | undefined =>
  stripe.intents.find(({ metadata }) => metadata['transaction_id'] === transactionId);
const waits = (providers: RealProviders, transactionId: string): boolean =>
  intentOf(providers, transactionId)?.status === 'requires_action';
const quick = (
  installation: TestInstallation,
  more: Partial<ProcessorDeps['retryPolicy']> = {},
): Pick<ProcessorDeps, 'retryPolicy'> => ({
  retryPolicy: { ...installation.deps.retryPolicy, pollMs: 15, ...more },
});
const isSettled = async (installation: TestInstallation, transactionId: string): Promise<boolean> =>
  (await installation.types(`transaction-${transactionId}`)).some(
    (type) => type === 'PaymentCharged' || type === 'PaymentDeclined',
  );

let serial = 0;
/** As the webhook notes it. */
async function tell(
  installation: TestInstallation,
  transactionId: string,
  news: ProviderEvent,
  id = `evt_${++serial}`,
): Promise<string> {
  return recordProviderEvent(installation.events, transactionId, news, {
    commandId: `stripe-${id}`,
    correlationId: installation.correlationId,
    by: { user: 'system:payment-provider' },
    now: new Date().toISOString(),
  });
}
const succeeded = ({ id, amount }: StripeIntent): ProviderEvent => ({
  provider: 'stripe',
  kind: 'succeeded',
  charge_id: id,
  amount,
});

const CHARGED = ['GiftsPurchased', 'ChargeStarted', 'PaymentAuthenticationRequired', 'PaymentCharged'];
const DECLINED = ['GiftsPurchased', 'ChargeStarted', 'PaymentAuthenticationRequired', 'PaymentDeclined'];

test('looks a payment up without any webhook', async ({ installation, providers }) => {
  await installation.work(await providers.workers(installation.deps.records));
  installation.process(quick(installation));
  const { transactionId, giftIds } = await installation.buy([{}], { reference });
  await installation.until(async () => waits(providers, transactionId));
  await installation.until(async () => (await installation.types(`transaction-${transactionId}`)).length === 3);
  await sleep(100);
  assert.equal(await installation.types(`transaction-${transactionId}`), CHARGED.slice(0, 3));
  assert.equal(await installation.types(`gift-${giftIds[0]}`), []);
  providers.stripe.authenticate(intentOf(providers, transactionId)?.id ?? '', true);
  await installation.until(async () => (await installation.types(`gift-${giftIds[0]}`)).length > 0);
  assert.equal(await installation.types(`transaction-${transactionId}`), CHARGED);
  assert.is(providers.stripe.charges(transactionId), 1);
});

test('looked up less and less often', async ({ installation, providers }) => {
  await installation.work(await providers.workers(installation.deps.records));
  installation.process(quick(installation, { pollMs: 20 }));
  await installation.buy([{}], { reference });
  await installation.until(async () => (await installation.all('PaymentAuthenticationRequired')).length === 1);
  const since = performance.now();
  await installation.until(async () => providers.stripe.requested.filter(({ method }) => method === 'GET').length >= 4);
  // After 20, 60, 180 and 540 ms.
  assert.ok(performance.now() - since > 400, `four looks within ${performance.now() - since} ms`);
  assert.equal(
    installation.lines.filter(({ msg }) => msg === 'not done at the first attempt'),
    [],
  );
});

test('settles a payment by its webhook without a look-up', async ({ installation, providers }) => {
  await installation.work(await providers.workers(installation.deps.records));
  installation.process(quick(installation, { pollMs: 600_000 }));
  const good = await installation.buy([{}], { reference });
  const bad = await installation.buy([{}], { reference });
  await installation.until(async () => (await installation.all('PaymentAuthenticationRequired')).length === 2);
  const [paid, failed] = [good, bad].map(({ transactionId }, index) =>
    providers.stripe.authenticate(intentOf(providers, transactionId)?.id ?? '', index === 0),
  );
  if (paid === undefined || failed === undefined) throw new Error('no intents');
  assert.is(await tell(installation, good.transactionId, succeeded(paid), 'evt_paid'), 'recorded');
  assert.is(await tell(installation, good.transactionId, succeeded(paid), 'evt_paid'), 'known', 'the same message');
  assert.is(await tell(installation, good.transactionId, succeeded(paid)), 'known', 'the same in another message');
  const news: ProviderEvent = {
    provider: 'stripe',
    kind: 'failed',
    charge_id: failed.id,
    code: 'payment_intent_authentication_failure',
  };
  assert.is(
    await tell(installation, bad.transactionId, { ...news, charge_id: 'pi_other' }),
    'known',
    'another payment',
  );
  assert.is(await tell(installation, bad.transactionId, news), 'recorded');
  assert.is(await tell(installation, bad.transactionId, news), 'known');
  await installation.until(
    async () => (await isSettled(installation, good.transactionId)) && isSettled(installation, bad.transactionId),
  );
  assert.equal(await installation.types(`transaction-${good.transactionId}`), CHARGED);
  assert.equal(await installation.types(`transaction-${bad.transactionId}`), [
    ...DECLINED.slice(0, 3),
    'PaymentAuthenticationFailed',
    'PaymentDeclined',
  ]);
  assert.equal(
    (await installation.all('PaymentDeclined')).map(({ data }) => data),
    [{ provider: 'stripe', code: 'payment_intent_authentication_failure' }],
  );
  assert.is(failed.status, 'canceled');
  assert.equal([providers.stripe.charges(good.transactionId), providers.stripe.charges(bad.transactionId)], [1, 0]);
});

test('goes on from the stream where a webhook comes during the look-up', async ({ installation }) => {
  const requested: string[] = [];
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
  const { transactionId } = await installation.buy([{}]);
  const bus: ProcessorDeps['bus'] = {
    ...installation.bus,
    request: async <R>(subject: string) => {
      requested.push(subject);
      if (subject === SUBJECTS.lookUpCharge && requested.filter((one) => one === subject).length === 1) {
        await installation.append(`transaction-${transactionId}`, 'PaymentAuthenticationFailed', {
          provider: 'stripe',
          payment_id: 'pi_1',
          code: 'card_declined',
        });
        const end = await installation.events.end();
        await installation.until(async () => (processors.status().position ?? '') >= (end ?? ''));
      }
      return answers[subject] as R;
    },
  };
  const processors = installation.process({ ...quick(installation), bus });
  await installation.until(() => isSettled(installation, transactionId));
  assert.equal(await installation.types(`transaction-${transactionId}`), [
    ...DECLINED.slice(0, 3),
    'PaymentAuthenticationFailed',
    'PaymentDeclined',
  ]);
  assert.equal(requested, [SUBJECTS.charge, SUBJECTS.lookUpCharge, SUBJECTS.cancelCharge]);
});

test("cancels payment and gifts after the buyer's time, also where no process ran then", async ({
  installation,
  providers,
}) => {
  await installation.work(await providers.workers(installation.deps.records));
  const first = installation.process(quick(installation, { authenticationMs: 200 }));
  const { transactionId, giftIds } = await installation.buy([{}], { reference });
  await installation.until(async () => (await installation.all('PaymentAuthenticationRequired')).length === 1);
  await first.close();
  await sleep(250);
  assert.ok(!(await isSettled(installation, transactionId)));
  installation.process(quick(installation));
  await installation.until(() => isSettled(installation, transactionId));
  assert.equal(await installation.types(`transaction-${transactionId}`), DECLINED);
  assert.is(intentOf(providers, transactionId)?.status, 'canceled');
  assert.equal(await installation.types(`gift-${giftIds[0]}`), []);
});

test('they have fifteen minutes, and are heard until the last millisecond of it', async ({
  installation,
  providers,
}) => {
  let now = Date.now();
  await installation.work(await providers.workers(installation.deps.records));
  installation.process({ ...quick(installation), now: () => now });
  const [quickEnough, tooLate] = [
    await installation.buy([{}], { reference }),
    await installation.buy([{}], { reference }),
  ];
  await installation.until(async () => (await installation.all('PaymentAuthenticationRequired')).length === 2);
  for (const { at, data } of await installation.all('PaymentAuthenticationRequired'))
    assert.is(Date.parse((data as { until: string }).until) - Date.parse(at), 15 * 60_000);
  now += 15 * 60_000 - 1;
  const looks = (): number => providers.stripe.requested.filter(({ method }) => method === 'GET').length;
  const before = looks();
  await installation.until(async () => looks() > before + 4);
  assert.ok(
    !(await isSettled(installation, quickEnough.transactionId)) &&
      !(await isSettled(installation, tooLate.transactionId)),
  );
  providers.stripe.authenticate(intentOf(providers, quickEnough.transactionId)?.id ?? '', true);
  await installation.until(() => isSettled(installation, quickEnough.transactionId));
  now += 1;
  await installation.until(() => isSettled(installation, tooLate.transactionId));
  assert.equal(
    [
      await installation.types(`transaction-${quickEnough.transactionId}`),
      await installation.types(`transaction-${tooLate.transactionId}`),
    ],
    [CHARGED, DECLINED],
  );
  assert.equal(
    (await installation.all('PaymentDeclined')).map(({ data }) => data),
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
  test(`a clock that is set back while a buyer is waited for, by ${words}`, async ({ installation }) => {
    const requested: string[] = [];
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
      ...installation.bus,
      request: async <R>(subject: string) => (requested.push(subject), answers[subject]?.() as R),
    };
    installation.process({
      ...quick(installation, { pollMs: 1 }),
      bus,
      now: () => Date.now() + (isSetBack ? 0 : ahead),
    });
    const { transactionId } = await installation.buy([{}]);
    await installation.until(async () => requested.includes(SUBJECTS.lookUpCharge));
    const looks = requested.length;
    isSetBack = true;
    await installation.until(() => isSettled(installation, transactionId));
    const last = ahead > AUTHENTICATION_MS ? SUBJECTS.cancelCharge : SUBJECTS.lookUpCharge;
    assert.equal([requested.slice(looks).at(-1), requested.length - looks <= 9], [last, true], requested.join());
    assert.equal(
      await installation.types(`transaction-${transactionId}`),
      last === SUBJECTS.cancelCharge ? DECLINED : CHARGED,
    );
  });
}

for (const proves of [true, false]) {
  for (const moment of ['before', 'after'] as const) {
    test(`has one outcome when dying ${moment} any effect, ${proves ? 'authenticated' : 'buyer absent'}`, async ({
      installation,
      providers,
    }) => {
      await installation.work(await providers.workers(installation.deps.records));
      const deaths = await everyKillPoint(installation, async (part, at) => {
        const doomed = crashable(part.deps, at, moment);
        const retryPolicy = quick(installation, { pollMs: 10, authenticationMs: proves ? 60_000 : 60 });
        const first = part.process({ ...doomed.deps, ...retryPolicy, leaseMs: 90 });
        const { transactionId } = await part.buy([{}], { reference });
        const advance = (): void => {
          const intent = intentOf(providers, transactionId);
          if (proves && intent?.status === 'requires_action') providers.stripe.authenticate(intent.id, true);
        };
        await installation.until(async () => {
          advance();
          return doomed.dead || isSettled(installation, transactionId);
        });
        const died = doomed.dead;
        const second = part.process({ ...retryPolicy, leaseMs: 90 });
        await installation.until(async () => {
          advance();
          return isSettled(installation, transactionId);
        });
        await Promise.all([first.close(), second.close()]);
        const where = `died ${moment} effect ${at}`;
        // A buyer who was quick is found charged at once, before anybody waits for them.
        const types = (await installation.types(`transaction-${transactionId}`)).filter(
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
      assert.equal(await installation.all('WorkParked'), []);
    });
  }
}

for (const seed of seeds(1, 2)) {
  test(`pays or cancels each under faults at the end of the buyers' time (seed ${seed})`, async ({
    installation,
    providers,
  }) => {
    const chance = chances(seed);
    providers.fault(faultsByChance(chances(seed + 50)));
    await installation.work(await providers.workers(installation.deps.records));
    await installation.work(await providers.workers(installation.deps.records));
    const retryPolicy = quick(installation, { pollMs: 40, authenticationMs: 300 });
    installation.process({ bus: faultyBus(installation.bus, seed), ...retryPolicy });
    installation.process({ bus: faultyBus(installation.bus, seed + 100), ...retryPolicy });
    const bought = await Promise.all(Array.from({ length: 16 }, () => installation.buy([{}], { reference })));
    const buyer = async (transactionId: string): Promise<void> => {
      await installation.until(async () => intentOf(providers, transactionId) !== undefined);
      await sleep(chance() * 500);
      const intent = intentOf(providers, transactionId);
      if (intent?.status !== 'requires_action' || chance() < 0.2) return;
      const proves = chance() < 0.7;
      providers.stripe.authenticate(intent.id, proves);
      const news: ProviderEvent = proves
        ? succeeded(intent)
        : { provider: 'stripe', kind: 'failed', charge_id: intent.id, code: 'payment_intent_authentication_failure' };
      // Each message is lost, sent once, or sent twice at once.
      await Promise.all(
        Array.from({ length: Math.floor(chance() * 3) }, () =>
          tell(installation, transactionId, news, `evt_of_${transactionId}`),
        ),
      );
    };
    await Promise.all(bought.map(({ transactionId }) => buyer(transactionId)));
    for (const { transactionId } of bought) {
      await installation.until(() => isSettled(installation, transactionId));
      const types = await installation.types(`transaction-${transactionId}`);
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
    assert.equal(await installation.all('WorkParked'), []);
  });
}

for (const moment of ['before', 'after'] as const) {
  test(`gives a late success back once when dying ${moment} any effect`, async ({ installation, providers }) => {
    await installation.work(await providers.workers(installation.deps.records));
    const deaths = await everyKillPoint(installation, async (part, at) => {
      const prelude = part.process({ leaseMs: 90 });
      const { transactionId } = await part.buy([{}], { reference: 'pm_card_chargeDeclined' });
      await installation.until(() => isSettled(installation, transactionId));
      await prelude.close();
      const intent = intentOf(providers, transactionId);
      if (intent === undefined) throw new Error('no intent');
      intent.status = 'succeeded';
      const doomed = crashable(part.deps, at, moment);
      const first = part.process({ ...doomed.deps, leaseMs: 90 });
      await Promise.all(
        ['a', 'b', 'a'].map((id) => tell(part, transactionId, succeeded(intent), `evt_${transactionId}_${id}`)),
      );
      const over = async (): Promise<boolean> =>
        (await installation.types(`transaction-${transactionId}`)).includes('GiftsRefunded');
      await installation.until(async () => doomed.dead || over());
      const died = doomed.dead;
      const second = part.process({ leaseMs: 90 });
      await installation.until(over);
      await Promise.all([first.close(), second.close()]);
      const where = `died ${moment} effect ${at}`;
      assert.equal(
        (await installation.types(`transaction-${transactionId}`)).slice(-3),
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
    assert.equal(await installation.all('WorkParked'), []);
  });
}

test.run();

import * as assert from 'uvu/assert';
import type { PaymentMethod } from '../../../src/domain/account.js';
import { fold, type Happened } from '../../../src/domain/decider.js';
import { walletAggregate, type WalletEvent } from '../../../src/domain/wallet.js';
import type { Bus } from '../../../src/ports/bus.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import type { TestInstallation } from '../../support/service/installation.js';
import { installationSuite } from '../../support/service/installationSuite.js';
import { everyKillPoint } from '../../support/faults/killPoints.js';
import { crashable } from '../../support/faults/crashable.js';

const test = installationSuite('wallets');
test.before.each(({ installation }) => {
  installation.methods.set('prepaid', { kind: 'wallet', prepaid: true, customer: null });
  installation.methods.set('invoiced', { kind: 'wallet', prepaid: false, customer: null });
});

const topUp = (installation: TestInstallation, id: string, amount: number): Promise<void> =>
  installation.append('wallet-prepaid', 'WalletToppedUp', { top_up_id: id, amount });
const balance = async (installation: TestInstallation): Promise<number> =>
  fold(walletAggregate, (await installation.events.read('wallet-prepaid')) as Happened<WalletEvent>[]).balance;

test('a prepaid wallet pays while there is enough, and declines then', async ({ installation }) => {
  await topUp(installation, 'a', 600);
  installation.process();
  await Promise.all(Array.from({ length: 5 }, () => installation.buy([{}], { reference: 'prepaid', price: 250 })));
  await installation.until(async () => (await installation.all('PaymentCharged', 'PaymentDeclined')).length === 5);
  const charged = await installation.all('PaymentCharged');
  assert.is(charged.length, 2);
  assert.match(JSON.stringify(charged[0]?.data), '"provider":"wallet"');
  assert.is(charged[0]?.metadata.simulated, undefined);
  for (const { data } of await installation.all('PaymentDeclined'))
    assert.equal(data, { provider: 'wallet', code: 'insufficient_funds' });
  assert.is(await balance(installation), 100);
});

test('a wallet settled by invoice pays without a provider', async ({ installation }) => {
  installation.process();
  const { transactionId } = await installation.buy([{}], { reference: 'invoiced' });
  await installation.until(async () => (await installation.all('PaymentCharged')).length === 1);
  assert.equal((await installation.all('PaymentCharged'))[0]?.data, {
    amount: 250,
    provider: 'invoice',
    charge_id: `invoice-${transactionId}`,
  });
});

test('asks the same payer again after an import changed the payment method', async ({ installation }) => {
  await topUp(installation, 'a', 1_000);
  await installation.work();
  const become: Readonly<Record<string, Pick<PaymentMethod, 'kind' | 'prepaid' | 'customer'>>> = {
    prepaid: { kind: 'card', prepaid: false, customer: null },
    invoiced: { kind: 'card', prepaid: false, customer: null },
    pm_card_visa: { kind: 'wallet', prepaid: true, customer: null },
  };
  let requested = 0;
  const bus: Bus = {
    ...installation.bus,
    request: async (subject, payload, options) => {
      if (subject === SUBJECTS.charge) requested++;
      return installation.bus.request(subject, payload, options);
    },
  };
  const lost = new Set<string>();
  const events: EventStore = {
    ...installation.events,
    append: async (stream, appended, expected) => {
      // The money is taken, and the answer is not recorded; then the methods change.
      if (appended[0]?.type === 'PaymentCharged' && !lost.has(stream)) {
        lost.add(stream);
        for (const [reference, method] of Object.entries(become)) installation.methods.set(reference, method);
        throw new UnavailableError('full');
      }
      return installation.events.append(stream, appended, expected);
    },
  };
  const bought = await Promise.all(Object.keys(become).map((reference) => installation.buy([{}], { reference })));
  // All are asked for before any method changes.
  let looked = 0;
  const paymentMethod: TestInstallation['deps']['paymentMethod'] = async (...named) => {
    const method = await installation.deps.paymentMethod(...named);
    looked++;
    await installation.until(async () => looked >= bought.length);
    return method;
  };
  installation.process({ bus, events, paymentMethod });
  await installation.until(async () => (await installation.all('PaymentCharged')).length === 3);
  assert.is(lost.size, 3);
  const charged = await installation.all('PaymentCharged');
  const paidBy = bought.map(
    ({ transactionId }) =>
      (
        charged.find(({ stream }) => stream === `transaction-${transactionId}`)?.data as
          { provider: string } | undefined
      )?.provider,
  );
  assert.equal(paidBy, ['wallet', 'invoice', 'simulated']);
  assert.equal(
    [await installation.types('wallet-prepaid'), await installation.types('wallet-pm_card_visa')],
    [['WalletToppedUp', 'WalletDebited'], []],
  );
  assert.is(requested, 2, 'the card alone, once more');
  assert.equal((await installation.events.read(`transaction-${bought[0]?.transactionId}`))[1]?.data, {
    amount: 250,
    payment_reference: 'prepaid',
    kind: 'wallet',
    prepaid: true,
  });
});

for (const moment of ['before', 'after'] as const) {
  test(`its process dying ${moment} any one effect: paid once, declined for good, given back once`, async ({
    installation,
  }) => {
    const deaths = await everyKillPoint(installation, async (part, at) => {
      const reference = `prepaid-${at}`;
      installation.methods.set(reference, { kind: 'wallet', prepaid: true, customer: null });
      await installation.append(`wallet-${reference}`, 'WalletToppedUp', { top_up_id: 'a', amount: 600 });
      const doomed = crashable(part.deps, at, moment);
      const processes = [part.process({ ...doomed.deps, leaseMs: 90 })];
      const until = async (holds: () => Promise<boolean>): Promise<void> => {
        await installation.until(async () => doomed.dead || holds());
        if (doomed.dead && processes.length === 1) processes.push(part.process({ leaseMs: 90 }));
        await installation.until(holds);
      };
      const has = (transactionId: string, type: string) => async (): Promise<boolean> =>
        (await installation.types(`transaction-${transactionId}`)).includes(type);
      const good = await part.buy([{}, {}], { reference });
      await until(async () =>
        (await Promise.all(good.giftIds.map((id) => installation.types(`gift-${id}`)))).every(
          (types) => types.length > 0,
        ),
      );
      const bad = await part.buy([{}], { reference, price: 101 });
      await until(has(bad.transactionId, 'PaymentDeclined'));
      await part.append(`transaction-${good.transactionId}`, 'RefundRequested', {
        refund_id: `r${at}`,
        gift_ids: good.giftIds,
        voided: false,
        reason: 'x',
      });
      await until(has(good.transactionId, 'GiftsRefunded'));
      const where = `died ${moment} effect ${at}`;
      assert.equal(
        await installation.types(`wallet-${reference}`),
        ['WalletToppedUp', 'WalletDebited', 'WalletDebitRefused', 'WalletCredited'],
        where,
      );
      assert.equal(
        await installation.types(`transaction-${good.transactionId}`),
        ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged', 'RefundRequested', 'RefundStarted', 'GiftsRefunded'],
        where,
      );
      assert.equal(
        await installation.types(`transaction-${bad.transactionId}`),
        ['GiftsPurchased', 'ChargeStarted', 'PaymentDeclined'],
        where,
      );
      for (const id of good.giftIds)
        assert.equal(await installation.types(`gift-${id}`), ['GiftIssued', 'GiftCancelled'], where);
      await Promise.all(processes.map((one) => one.close()));
      return doomed.dead;
    });
    assert.ok(deaths >= 12, `they have ${deaths} effects`);
    assert.equal(await installation.all('WorkParked'), []);
  });
}

test.run();

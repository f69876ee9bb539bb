import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { PaymentMethod } from '../../../src/domain/account.js';
import { fold, type Happened } from '../../../src/domain/decider.js';
import { walletAggregate, type WalletEvent } from '../../../src/domain/wallet.js';
import type { Bus } from '../../../src/ports/bus.js';
import { ConflictError, type EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { walletPayments } from '../../../src/processors/purchase/walletPayments.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import type { TestInstallation } from '../../support/service/installation.js';
import { installationSuite } from '../../support/service/installationSuite.js';
import { everyKillPoint } from '../../support/faults/killPoints.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';
import { crashable } from '../../support/faults/crashable.js';

const test = installationSuite('wallets');
test.before.each(({ installation }) => {
  installation.methods.set('prepaid', { kind: 'wallet', prepaid: true, customer: null });
  installation.methods.set('invoiced', { kind: 'wallet', prepaid: false, customer: null });
});

const topUp = (installation: TestInstallation, id: string, amount: number): Promise<void> =>
  installation.append('wallet-prepaid', 'WalletToppedUp', { top_up_id: id, amount });
const reason = { commandId: 'c', cause: { id: 'e', at: '', revision: 0, correlationId: 'r' } };
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
  const paymentMethod: TestInstallation['deps']['paymentMethod'] = async (reference) => {
    const method = await installation.deps.paymentMethod(reference);
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

test('finds an earlier debit, and keeps a refused debit refused after a top-up', async ({ installation }) => {
  const pay = (transaction: string): Promise<string> =>
    walletPayments(installation.events, openWriter(installation.events, Date.now)).pay(
      'prepaid',
      transaction,
      100,
      reason,
    );
  assert.is(await pay('t1'), 'refused');
  await topUp(installation, 'a', 150);
  assert.is(await pay('t1'), 'refused');
  assert.is(await pay('t2'), 'debited');
  assert.is(await pay('t2'), 'debited');
  assert.is(await balance(installation), 50);
});

test('the balance never goes below zero, however many debit it at once', async ({ installation }) => {
  await topUp(installation, 'a', 1_000);
  const payers = Array.from({ length: 3 }, () =>
    walletPayments(installation.events, openWriter(installation.events, Date.now)),
  );
  const outcomes = await Promise.all(
    Array.from({ length: 45 }, (_, n) => payers[n % 3]!.pay('prepaid', `t${n % 30}`, 70, reason)),
  );
  let lowest = 0;
  let at = 0;
  for (const { type, data } of await installation.events.read('wallet-prepaid')) {
    const { amount } = data as { amount: number };
    at += type === 'WalletToppedUp' ? amount : type === 'WalletDebited' ? -amount : 0;
    lowest = Math.min(lowest, at);
  }
  assert.is(lowest, 0);
  assert.is(at, 1_000 - 14 * 70);
  for (let n = 0; n < 15; n++) assert.is(outcomes[n], outcomes[n + 30], 'the same transaction has the same outcome');
});

/** Anything that anybody does to one wallet. `by`: the process. */
const doing = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('pay' as const), by: fc.nat(2), of: fc.nat(5) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('refund' as const),
      by: fc.nat(2),
      of: fc.nat(5),
      nth: fc.nat(2),
      amount: fc.integer({ min: 1, max: 90 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('topUp' as const),
      by: fc.nat(2),
      id: fc.nat(4),
      amount: fc.integer({ min: 1, max: 150 }),
    }),
  },
);

test('keeps balances right for three processes in any interleaving (property)', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(doing, { maxLength: 24 }),
      fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 6, maxLength: 6 }),
      fc.array(fc.nat(9), { minLength: 40, maxLength: 40 }),
      async (scheduler, doings, prices, faults) => {
        const log = memoryEvents();
        let appends = 0;
        const events: EventStore = {
          ...log,
          read: scheduler.scheduleFunction(log.read),
          append: scheduler.scheduleFunction(async (...args: Parameters<EventStore['append']>) => {
            const done = await log.append(...args);
            // Done, and nobody heard of it.
            if (faults[appends++ % faults.length] === 0) throw new UnavailableError('lost', { outcomeUnknown: true });
            return done;
          }),
        };
        const payers = Array.from({ length: 3 }, () =>
          walletPayments(
            events,
            openWriter(events, () => 0),
          ),
        );
        // As the import does.
        const payIn = async (id: string, amount: number): Promise<void> => {
          for (;;) {
            const history = await events.read('wallet-w');
            if ((history as WalletEvent[]).some(({ type, data }) => type === 'WalletToppedUp' && data.top_up_id === id))
              return;
            const event = {
              id: randomUUID(),
              type: 'WalletToppedUp',
              data: { top_up_id: id, amount },
              at: '2026-01-01T00:00:00.000Z',
              metadata: { commandId: 'c', correlationId: 'c', by: {} },
            };
            await events.append('wallet-w', [event], history.at(-1)?.revision ?? 'none').catch(() => undefined);
          }
        };
        const outcomes = doings.map(async (one) => {
          const payer = payers[one.by]!;
          if (one.kind === 'topUp') return payIn(`in${one.id}`, one.amount);
          if (one.kind === 'pay')
            return [`t${one.of}`, await payer.pay('w', `t${one.of}`, prices[one.of]!, reason)] as const;
          const refund = `r${one.of}-${one.nth}`;
          return [refund, await payer.refund('w', `t${one.of}`, one.amount, refund, reason)] as const;
        });
        const told = (await scheduler.waitFor(Promise.all(outcomes))).filter((one) => one !== undefined);

        let balance = 0;
        const decided = new Map<string, string>();
        const left = new Map<string, number>();
        const once = (name: string, outcome: string): void => {
          assert.not(decided.has(name), `${name} is decided once`);
          decided.set(name, outcome);
        };
        for (const event of log.log as unknown as WalletEvent[]) {
          const { amount } = event.data;
          if (event.type === 'WalletToppedUp') once(event.data.top_up_id, 'in');
          else if (event.type === 'WalletCredited') once(event.data.cause, 'credited');
          else once(event.data.transaction_id, event.type === 'WalletDebited' ? 'debited' : 'refused');
          if (event.type === 'WalletDebitRefused') assert.ok(amount > balance, 'refused only where it was too little');
          if (event.type === 'WalletDebited') left.set(event.data.transaction_id, amount);
          if (event.type === 'WalletCredited')
            left.set(event.data.transaction_id, (left.get(event.data.transaction_id) ?? 0) - amount);
          balance += event.type === 'WalletDebited' ? -amount : event.type === 'WalletDebitRefused' ? 0 : amount;
          assert.ok(balance >= 0, 'never below zero');
        }
        for (const rest of left.values()) assert.ok(rest >= 0, 'never more is given back than was taken');
        // A refund that is refused may be asked for again, once there is something to give back.
        for (const [name, outcome] of told)
          if (!name.startsWith('r') || outcome === 'credited') assert.is(outcome, decided.get(name), name);
      },
    ),
    { numRuns: 300, seed: 6 },
  );
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

test('credits a refund once, and never more than was debited', async ({ installation }) => {
  await topUp(installation, 'a', 500);
  const payers = Array.from({ length: 3 }, () =>
    walletPayments(installation.events, openWriter(installation.events, Date.now)),
  );
  await payers[0]!.pay('prepaid', 't1', 400, reason);
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, (_, n) => payers[n % 3]!.refund('prepaid', 't1', 100, `r${n % 5}`, reason)),
  );
  assert.is(await balance(installation), 500);
  for (let n = 0; n < 5; n++)
    assert.is(new Set(outcomes.filter((_, at) => at % 5 === n)).size, 1, 'the same refund has the same outcome');
  assert.is(outcomes.filter((outcome) => outcome === 'refused').length, 6);
});

test('remembers a hundred wallets, and knows the others all the same', async ({ installation }) => {
  const payments = walletPayments(installation.events, openWriter(installation.events, Date.now));
  const references = Array.from({ length: 102 }, (_, n) => `w${n}`);
  await Promise.all(
    references.map((reference) =>
      installation.append(`wallet-${reference}`, 'WalletToppedUp', { top_up_id: 'a', amount: 100 }),
    ),
  );
  await Promise.all(
    references.map(async (reference) => assert.is(await payments.pay(reference, 't1', 60, reason), 'debited')),
  );
  await Promise.all(
    references.map(async (reference) => assert.is(await payments.pay(reference, 't2', 60, reason), 'refused')),
  );
});

test('gives up after many lost races, and goes on with the next', async ({ installation }) => {
  const losing: EventStore = {
    ...installation.events,
    append: async (stream, _batch, expected) => {
      throw new ConflictError(stream, expected, 1);
    },
  };
  const payments = walletPayments(losing, openWriter(losing, Date.now));
  const outcomes = await Promise.allSettled([
    payments.pay('prepaid', 't1', 1, reason),
    payments.pay('prepaid', 't2', 1, reason),
  ]);
  assert.equal(
    outcomes.map((outcome) => (outcome.status === 'rejected' ? (outcome.reason as Error).name : '')),
    ['ConflictError', 'ConflictError'],
  );
});

test.run();

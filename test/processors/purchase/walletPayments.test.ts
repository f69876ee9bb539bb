/** Payments by one wallet, of several processes at once. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { fold, type Happened } from '../../../src/domain/decider.js';
import { walletAggregate, type WalletEvent } from '../../../src/domain/wallet.js';
import { ConflictError, type EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { walletPayments } from '../../../src/processors/purchase/walletPayments.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';
import { logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('payments by wallets');

const topUp = (log: TestLog, id: string, amount: number): Promise<void> =>
  log.append('wallet-prepaid', 'WalletToppedUp', { top_up_id: id, amount });
const reason = { commandId: 'c', cause: { id: 'e', at: '', revision: 0, correlationId: 'r' } };
const balance = async ({ events }: TestLog): Promise<number> =>
  fold(walletAggregate, (await events.read('wallet-prepaid')) as Happened<WalletEvent>[]).balance;

test('finds an earlier debit, and keeps a refused debit refused after a top-up', async ({ log }) => {
  const pay = (transaction: string): Promise<string> =>
    walletPayments(log.events, openWriter(log.events, Date.now)).pay('prepaid', transaction, 100, reason);
  assert.is(await pay('t1'), 'refused');
  await topUp(log, 'a', 150);
  assert.is(await pay('t1'), 'refused');
  assert.is(await pay('t2'), 'debited');
  assert.is(await pay('t2'), 'debited');
  assert.is(await balance(log), 50);
});

test('the balance never goes below zero, however many debit it at once', async ({ log }) => {
  await topUp(log, 'a', 1_000);
  const payers = Array.from({ length: 3 }, () => walletPayments(log.events, openWriter(log.events, Date.now)));
  const outcomes = await Promise.all(
    Array.from({ length: 45 }, (_, n) => payers[n % 3]!.pay('prepaid', `t${n % 30}`, 70, reason)),
  );
  let lowest = 0;
  let at = 0;
  for (const { type, data } of await log.events.read('wallet-prepaid')) {
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
        const stored = memoryEvents();
        let appends = 0;
        const events: EventStore = {
          ...stored,
          read: scheduler.scheduleFunction(stored.read),
          append: scheduler.scheduleFunction(async (...args: Parameters<EventStore['append']>) => {
            const done = await stored.append(...args);
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
        for (const event of stored.log as unknown as WalletEvent[]) {
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

test('credits a refund once, and never more than was debited', async ({ log }) => {
  await topUp(log, 'a', 500);
  const payers = Array.from({ length: 3 }, () => walletPayments(log.events, openWriter(log.events, Date.now)));
  await payers[0]!.pay('prepaid', 't1', 400, reason);
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, (_, n) => payers[n % 3]!.refund('prepaid', 't1', 100, `r${n % 5}`, reason)),
  );
  assert.is(await balance(log), 500);
  for (let n = 0; n < 5; n++)
    assert.is(new Set(outcomes.filter((_, at) => at % 5 === n)).size, 1, 'the same refund has the same outcome');
  assert.is(outcomes.filter((outcome) => outcome === 'refused').length, 6);
});

test('remembers a hundred wallets, and knows the others all the same', async ({ log }) => {
  const payments = walletPayments(log.events, openWriter(log.events, Date.now));
  const references = Array.from({ length: 102 }, (_, n) => `w${n}`);
  await Promise.all(
    references.map((reference) => log.append(`wallet-${reference}`, 'WalletToppedUp', { top_up_id: 'a', amount: 100 })),
  );
  await Promise.all(
    references.map(async (reference) => assert.is(await payments.pay(reference, 't1', 60, reason), 'debited')),
  );
  await Promise.all(
    references.map(async (reference) => assert.is(await payments.pay(reference, 't2', 60, reason), 'refused')),
  );
});

test('gives up after many lost races, and goes on with the next', async ({ log }) => {
  const losing: EventStore = {
    ...log.events,
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

test('reads a wallet in use only from its last known event on, and its debits one after the other', async ({ log }) => {
  await topUp(log, 'a', 1_000);
  const read: unknown[] = [];
  const expectations: unknown[] = [];
  const events: EventStore = {
    ...log.events,
    append: async (stream, made, expected) => {
      expectations.push(expected);
      return log.events.append(stream, made, expected);
    },
    read: async (stream, options) => {
      read.push([stream, options?.from]);
      return log.events.read(stream, options);
    },
  };
  const payments = walletPayments(events, openWriter(events, Date.now));
  const pay = (transaction: string): Promise<string> => payments.pay('prepaid', transaction, 100, reason);
  const [first, second] = [pay('t1'), pay('t2')];
  await first;
  assert.equal(await Promise.all([first, second, pay('t3')]), ['debited', 'debited', 'debited']);
  assert.equal(
    read,
    [0, 2, 3].map((from) => ['wallet-prepaid', from]),
    'no race is lost',
  );
  await topUp(log, 'b', 50);
  assert.equal([await pay('t1'), await balance(log)], ['debited', 750]);
  assert.is(await payments.refund('prepaid', 't1', 100, 'r1', reason), 'credited');
  assert.is(await payments.refund('prepaid', 't1', 1, 'r2', reason), 'refused', 'nothing is left of the debit');
  assert.equal([await balance(log), read.length], [850, 6]);
  assert.is(await payments.pay('new', 't4', 1, reason), 'refused');
  assert.equal(expectations, [0, 1, 2, 4, 'none']);
});

test.run();

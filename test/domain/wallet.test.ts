import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fold, type Happened } from '../../src/domain/decider.js';
import {
  credit,
  debit,
  debitOf,
  giveUpDebit,
  isCredited,
  leftOf,
  type Wallet,
  walletAggregate,
  type WalletEvent,
  walletStream,
} from '../../src/domain/wallet.js';

const test = suite('wallet');

const given = (...events: readonly WalletEvent[]): Wallet =>
  fold(
    walletAggregate,
    events.map((event): Happened<WalletEvent> => ({ ...event, at: '2026-01-01T00:00:00.000Z' })),
  );
const toppedUp = (top_up_id: string, amount: number): WalletEvent => ({
  type: 'WalletToppedUp',
  data: { top_up_id, amount },
});
const debited = (transaction_id: string, amount: number): WalletEvent => ({
  type: 'WalletDebited',
  data: { transaction_id, amount },
});
const refused = (transaction_id: string, amount: number): WalletEvent => ({
  type: 'WalletDebitRefused',
  data: { transaction_id, amount },
});

test('its stream is named by its reference', () => assert.is(walletStream('w1'), 'wallet-w1'));

test('pays down to zero, not below', () => {
  assert.equal(debit(given(toppedUp('a', 5)), { transaction_id: 't', amount: 5 }), [debited('t', 5)]);
  assert.equal(debit(given(toppedUp('a', 5)), { transaction_id: 't', amount: 6 }), [refused('t', 6)]);
  assert.equal(debit(given(), { transaction_id: 't', amount: 0 }), [debited('t', 0)]);
});

test('keeps what was decided for a transaction', () => {
  assert.equal(debit(given(toppedUp('a', 5), debited('t', 5)), { transaction_id: 't', amount: 5 }), []);
  assert.equal(debit(given(refused('t', 5), toppedUp('t', 5)), { transaction_id: 't', amount: 5 }), []);
  assert.is(debitOf(given(toppedUp('t', 5), refused('t', 5)), 't'), 'refused');
  assert.is(debitOf(given(toppedUp('t', 5)), 't'), undefined);
});

test('lets credited money be spent', () => {
  const wallet = given(toppedUp('a', 5), debited('t', 5), {
    type: 'WalletCredited',
    data: { transaction_id: 't', amount: 5, cause: 'refund' },
  });
  assert.is(wallet.balance, 5);
  assert.equal(debit(wallet, { transaction_id: 'u', amount: 5 }), [debited('u', 5)]);
  assert.equal(debit(wallet, { transaction_id: 't', amount: 5 }), [], 'the transaction has had its debit');
});

test('the balance is what came in less what went out, never below zero', () => {
  const step = fc.record({
    kind: fc.constantFrom('topUp', 'debit'),
    id: fc.integer({ min: 0, max: 9 }),
    amount: fc.integer({ min: 0, max: 100 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const events: WalletEvent[] = [];
      for (const { kind, id, amount } of steps) {
        const wallet = given(...events);
        events.push(
          ...(kind === 'topUp' ? [toppedUp(`${id}`, amount)] : debit(wallet, { transaction_id: `${id}`, amount })),
        );
        const expected = events.reduce(
          (sum, event) =>
            sum +
            (event.type === 'WalletToppedUp'
              ? event.data.amount
              : event.type === 'WalletDebited'
                ? -event.data.amount
                : 0),
          0,
        );
        assert.is(given(...events).balance, expected);
        assert.ok(expected >= 0);
      }
      const once = events.flatMap((event) => (event.type === 'WalletToppedUp' ? [] : [event.data.transaction_id]));
      assert.is(new Set(once).size, once.length);
    }),
  );
});

test('gives back what is left of a debit, each refund once', () => {
  const credited = (transaction_id: string, amount: number, cause: string): WalletEvent => ({
    type: 'WalletCredited',
    data: { transaction_id, amount, cause },
  });
  const paid = [toppedUp('a', 9), debited('t', 5), debited('u', 4)];
  assert.equal(credit(given(...paid), { transaction_id: 't', amount: 5, cause: 'r1' }), [credited('t', 5, 'r1')]);
  const after = given(...paid, credited('t', 2, 'r1'), credited('u', 4, 'r2'));
  assert.is(after.balance, 6);
  assert.is(leftOf(after, 't'), 3);
  assert.equal([isCredited(after, 'r1'), isCredited(after, 'r3'), isCredited(after, 't')], [true, false, false]);
  assert.equal(credit(after, { transaction_id: 't', amount: 1, cause: 'r1' }), [], 'this refund has been made');
  assert.equal(credit(after, { transaction_id: 't', amount: 4, cause: 'r3' }), [], 'more than is left');
  assert.equal(credit(after, { transaction_id: 't', amount: 3, cause: 'r3' }), [credited('t', 3, 'r3')]);
  assert.equal(credit(after, { transaction_id: 'v', amount: 1, cause: 'r4' }), [], 'never debited');
  assert.equal(
    credit(given(refused('t', 5), toppedUp('a', 9)), { transaction_id: 't', amount: 5, cause: 'r1' }),
    [],
    'a debit that was refused took nothing',
  );
  assert.is(debitOf(after, 'r1'), undefined);
});

test('leaves a purchase unpaid that was given up, whatever had been decided', () => {
  const requested = { transaction_id: 't1', amount: 300 };
  const credited: WalletEvent = { type: 'WalletCredited', data: { ...requested, cause: 'discarded-t1' } };
  const after = (...events: readonly WalletEvent[]): WalletEvent[] =>
    giveUpDebit(given(toppedUp('x', 500), ...events), requested);
  assert.equal(after(), [refused('t1', 300)]);
  assert.equal(after(refused('t1', 300)), []);
  assert.equal(debit(given(toppedUp('x', 500), refused('t1', 300)), requested), []);
  assert.equal(after(debited('t1', 300)), [credited]);
  assert.equal(after(debited('t1', 300), credited), []);
});

test.run();

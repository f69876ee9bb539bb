import assert from 'node:assert/strict';
import { suite } from 'uvu';
import {
  closeDispute,
  evolveReversals,
  fallsShort,
  isDisputed,
  type Reversals,
  type ReversalEvent,
  reversalSteps,
  NO_REVERSALS,
  noteProviderRefund,
  settleDispute,
} from '../../../src/domain/purchase/disputes.js';

const test = suite('disputes and external refunds');

const provider = 'stripe';
const opened: ReversalEvent = {
  type: 'DisputeOpened',
  data: { provider, dispute_id: 'dp', amount: 750, reason: 'fraudulent' },
};
const closed = (outcome: 'won' | 'lost', dispute_id = 'dp'): ReversalEvent => ({
  type: 'DisputeClosed',
  data: { provider, dispute_id, outcome },
});
const settled: ReversalEvent = { type: 'DisputeSettled', data: { dispute_id: 'dp', blocked: true, gifts: 3 } };
const after = (...events: readonly ReversalEvent[]): Reversals => events.reduce(evolveReversals, NO_REVERSALS);

test('counts a payment as disputed until every dispute about it is won', () => {
  assert.equal(isDisputed(after()), false);
  assert.equal(isDisputed(after(opened)), true);
  assert.equal(isDisputed(after(opened, settled, closed('lost'))), true);
  assert.equal(isDisputed(after(opened, closed('won'))), false);
  assert.equal(isDisputed(after(opened, closed('lost', 'other'), closed('won'))), true);
});

test('falls short where no gift makes up for the money, or codes of cancelled gifts are out', () => {
  assert.equal(fallsShort({ total: 500, cancelled: 2, vouchered: 0, difference: 0 }), false);
  assert.equal(fallsShort({ total: 500, cancelled: 1, vouchered: 0, difference: 250 }), true);
  assert.equal(fallsShort({ total: 500, cancelled: 2, vouchered: 1, difference: 0 }), true);
});

test('records once that a dispute’s gifts are settled, and again when it ends another way', () => {
  const standing = { dispute_id: 'dp', blocked: true, gifts: 3 };
  assert.deepEqual(settleDispute(after(opened), standing), [settled]);
  assert.deepEqual(settleDispute(after(opened, settled), standing), []);
  assert.deepEqual(settleDispute(after(opened, settled, closed('won')), { ...standing, blocked: false }), [
    { type: 'DisputeSettled', data: { ...standing, blocked: false } },
  ]);
});

test('a dispute ends once, but a lost dispute may be won on appeal', () => {
  const ends = (outcome: 'won' | 'lost', ...before: readonly ReversalEvent[]): ReversalEvent[] =>
    closeDispute(after(...before), { provider, dispute_id: 'dp', outcome });
  for (const outcome of ['won', 'lost'] as const)
    assert.deepEqual([ends(outcome, opened), ends(outcome, opened, closed(outcome))], [[closed(outcome)], []]);
  assert.deepEqual([ends('won', opened, closed('lost')), ends('lost', opened, closed('won'))], [[closed('won')], []]);
});

test('each dispute of a purchase is answered by itself', () => {
  const other: ReversalEvent = {
    type: 'DisputeOpened',
    data: { provider, dispute_id: 'other', amount: 250, reason: 'duplicate' },
  };
  const keys = (...events: readonly ReversalEvent[]): readonly string[] =>
    reversalSteps(after(...events)).map(({ key }) => key);
  assert.deepEqual(keys(opened, other), ['dispute:dp', 'dispute:other']);
  assert.deepEqual(keys(opened, other, settled), ['dispute:other']);
  assert.deepEqual(keys(opened, other, settled, closed('won')), ['dispute:other', 'dispute:dp']);
});

test('a dispute that ended keeps its reason; the gifts of one that was lost unopened are still to be blocked', () => {
  assert.equal(after(opened, closed('lost')).disputes[0]?.reason, 'fraudulent');
  assert.deepEqual(
    reversalSteps(after(closed('lost'))).map(({ key }) => key),
    ['dispute:dp'],
  );
});

test('a second external refund is recorded, and its gifts cancelled, after the first was settled', () => {
  const refunded = (amount: number, total: number): ReversalEvent => ({
    type: 'RefundedAtProvider',
    data: { provider, charge_id: 'pi_1', amount, total },
  });
  const first: ReversalEvent = {
    type: 'ProviderRefundSettled',
    data: { total: 250, cancelled: 1, vouchered: 0, difference: 0 },
  };
  const state = after(refunded(250, 250), first);
  assert.deepEqual(reversalSteps(state), []);
  const second = noteProviderRefund(state, { provider, charge_id: 'pi_1', total: 500, ours: 0 });
  assert.deepEqual(second, [refunded(250, 500)]);
  assert.deepEqual(
    reversalSteps(after(refunded(250, 250), first, ...second)).map((step) => 'total' in step && step.total),
    [500],
  );
});

test.run();

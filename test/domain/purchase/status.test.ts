import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Happened } from '../../../src/domain/decider.js';
import {
  evolveRefundedMoney,
  type RefundedMoney,
  type RefundedMoneyEvent,
  transactionStatus,
} from '../../../src/domain/purchase/status.js';
import type { GiftsRefunded } from '../../../src/domain/purchase/refund.js';

const test = suite('domain/purchase/status');

const refunded = (refund_id: string, gifts: number, amount = gifts * 350): GiftsRefunded => ({
  type: 'GiftsRefunded',
  data: {
    refund_id,
    attempt: 1,
    gift_ids: Array.from({ length: gifts }, (_, index) => `g${index}`),
    amount,
    provider: 'simulated',
    refund_ref: 're',
  },
});
const failed = (refund_id: string): RefundedMoneyEvent => ({
  type: 'RefundFailed',
  data: { ...refunded(refund_id, 1).data, code: 'account_closed' },
});
const external = (total: number): RefundedMoneyEvent => ({
  type: 'RefundedAtProvider',
  data: { provider: 'simulated', charge_id: 'ch', amount: 1, total },
});
const opened = (dispute_id: string): RefundedMoneyEvent => ({
  type: 'DisputeOpened',
  data: { provider: 'simulated', dispute_id, amount: 700, reason: 'fraudulent' },
});
const closed = (dispute_id: string, outcome: 'won' | 'lost'): RefundedMoneyEvent => ({
  type: 'DisputeClosed',
  data: { provider: 'simulated', dispute_id, outcome },
});

function after(...events: readonly RefundedMoneyEvent[]): RefundedMoney | undefined {
  let state: RefundedMoney | undefined;
  for (const event of events) state = evolveRefundedMoney(state, event as Happened<RefundedMoneyEvent>);
  return state;
}
const two = { payment: 'charged', total: 700, count: 2 } as const;
const statusAfter = (...events: readonly RefundedMoneyEvent[]): string => transactionStatus(two, after(...events));

test('says what the charge came to where nothing was given back', () => {
  for (const payment of ['pending', 'charged', 'declined'] as const)
    assert.is(transactionStatus({ ...two, payment }, undefined), payment);
});

test('adds refunds of ours up with those made at the provider', () => {
  assert.is(statusAfter(refunded('a', 1)), 'partially_refunded');
  assert.is(statusAfter(refunded('a', 1), refunded('b', 1)), 'refunded');
  assert.is(statusAfter(external(1)), 'partially_refunded');
  assert.is(statusAfter(external(100), external(350), refunded('a', 1)), 'refunded');
});

test('counts a repeated attempt once, and none that failed', () => {
  assert.is(statusAfter(refunded('a', 1), failed('a')), 'charged');
  assert.is(statusAfter(refunded('a', 1), failed('a'), refunded('a', 1)), 'partially_refunded');
});

test('passes over the refund of a charge that bought nothing', () => {
  assert.is(statusAfter(refunded('late-ch', 0, 700)), 'charged');
  assert.is(transactionStatus({ ...two, payment: 'declined' }, after(refunded('late-ch', 0, 700))), 'declined');
});

test('shows a dispute until it is won, before a part and behind a whole refund', () => {
  assert.is(statusAfter(opened('d')), 'disputed');
  assert.is(statusAfter(opened('d'), closed('d', 'won')), 'charged');
  assert.is(statusAfter(opened('d'), closed('d', 'lost')), 'disputed');
  assert.is(statusAfter(opened('d'), refunded('a', 1)), 'disputed');
  assert.is(statusAfter(opened('d'), refunded('a', 2)), 'refunded');
  assert.is(statusAfter(opened('d'), closed('d', 'won'), opened('e')), 'disputed');
});

test('stores each dispute with its status', () => {
  assert.equal(after(opened('d'), opened('e'), closed('e', 'lost')), {
    refunds: {},
    external: 0,
    disputes: { d: 'open', e: 'lost' },
  });
});

test('counts the gifts where they cost nothing', () => {
  const free = { payment: 'charged', total: 0, count: 2 } as const;
  assert.is(transactionStatus(free, after(refunded('a', 1, 0))), 'partially_refunded');
  assert.is(transactionStatus(free, after(refunded('a', 2, 0))), 'refunded');
});

test.run();

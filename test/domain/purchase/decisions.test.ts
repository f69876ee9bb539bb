import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import {
  type ChargeStarted,
  type GiftsPurchased,
  type PaymentCharged,
  type PaymentDeclined,
  type PurchaseEvent,
  transactionStream,
} from '../../../src/domain/purchase/events.js';
import { type MadePurchase, type Purchase, purchaseAggregate } from '../../../src/domain/purchase/state.js';
import {
  brokenCardLimit,
  issueGifts,
  leftOfCharge,
  receiverOf,
  requestRefund,
  settleCharge,
  startCharge,
  startRefund,
} from '../../../src/domain/purchase/decisions.js';
import { GIVEN_AT, given, happened } from '../../support/assertions/givenWhenThen.js';
import { giftsPurchased } from '../../support/fixtures/giftEvents.js';

const test = suite('purchase');

const bought = giftsPurchased({
  transaction_id: 't',
  seed: '01'.repeat(32),
  total: 1050,
  expires_on: '2027-03-01',
  receivers: [{ phone_id: 'h' }, { user_id: 'bob' }, {}],
});
const started: ChargeStarted = {
  type: 'ChargeStarted',
  data: { amount: 1050, payment_reference: 'pm', kind: 'wallet', prepaid: true },
};
const start = (state: Purchase): ChargeStarted[] => startCharge(state, { kind: 'wallet', prepaid: true });
const charged: PaymentCharged = { type: 'PaymentCharged', data: { amount: 1050, provider: 'p', charge_id: 'c' } };
const declined: PaymentDeclined = { type: 'PaymentDeclined', data: { provider: 'p', code: 'card_declined' } };

test('a charge is started once', () => {
  given(purchaseAggregate, bought).when(start).then(started);
  given(purchaseAggregate, bought, started).when(start).then();
  given(purchaseAggregate, bought, started, charged).when(start).then();
  given(purchaseAggregate).when(start).then();
});

test('settles a charge once, by the first answer', () => {
  given(purchaseAggregate, bought, started)
    .when((state) => settleCharge(state, charged))
    .then(charged);
  given(purchaseAggregate, bought, started, charged)
    .when((state) => settleCharge(state, declined))
    .then();
  given(purchaseAggregate, bought, started, declined)
    .when((state) => settleCharge(state, charged))
    .then();
});

test('folds its state', () => {
  const state = (...events: PurchaseEvent[]): object => given(purchaseAggregate, ...events).state;
  assert.deepEqual(state(charged), { status: 'none' });
  assert.deepEqual(state(bought), {
    status: 'pending',
    purchase: bought.data,
    purchasedAt: GIVEN_AT,
    refunds: new Map(),
  });
  const later = happened(started, '2026-03-01T10:00:00.000Z');
  assert.deepEqual(given(purchaseAggregate, bought, started, later).state, {
    status: 'pending',
    purchase: bought.data,
    purchasedAt: GIVEN_AT,
    refunds: new Map(),
    chargeStartedAt: GIVEN_AT,
    chargeBy: { kind: 'wallet', prepaid: true },
  });
  assert.deepEqual(state(bought, declined), {
    status: 'declined',
    purchase: bought.data,
    purchasedAt: GIVEN_AT,
    refunds: new Map(),
  });
  const before = given(purchaseAggregate, bought).state;
  assert.equal(
    purchaseAggregate.evolve(before, happened({ type: 'SomethingLater', data: {} } as unknown as PurchaseEvent)),
    before,
  );
});

test('issuing gives each gift its own id and receiver, and no phone number', () => {
  const all = [...issueGifts(bought.data, GIVEN_AT)];
  assert.deepEqual(
    all.map(({ giftId }) => giftId),
    deriveGiftIds(bought.data.seed, 3).map(({ gift_id }) => gift_id),
  );
  assert.deepEqual(
    all.map(({ event }) => event.data.receiver),
    [{ phone_id: 'h' }, { user_id: 'bob' }, {}],
  );
  assert.deepEqual(all[1]?.event.data, {
    transaction_id: 't',
    index: 1,
    message_id: deriveGiftIds(bought.data.seed, 2)[1]?.message_id,
    product_id: 'latte',
    brand_id: 'bean',
    value: 350,
    sender_id: 'ann',
    receiver: { user_id: 'bob' },
    purchased_at: GIVEN_AT,
    expires_on: '2027-03-01',
  });
  assert.ok(!JSON.stringify(all).includes('+44'));
  assert.deepEqual(receiverOf(undefined), {});
  assert.equal(transactionStream('t'), 'transaction-t');
});

test('a card is charged nothing, or 30 pence to £999,999.99', () => {
  assert.deepEqual([0, 30, 99_999_999].map(brokenCardLimit), [undefined, undefined, undefined]);
  assert.deepEqual([1, 29].map(brokenCardLimit), ['amount_too_small', 'amount_too_small']);
  assert.equal(brokenCardLimit(100_000_000), 'amount_too_large');
});

test('of a purchase to be sent later, the gifts that have a receiver are held back', () => {
  const later = { ...bought.data, send_at: '2026-04-01T09:00:00.000Z' };
  const scheduled = (data: GiftsPurchased['data']): unknown[] =>
    [...issueGifts(data, GIVEN_AT)].map(({ event }) => event.data.scheduled);
  assert.deepEqual(scheduled(later), [true, true, undefined]);
  assert.deepEqual(scheduled(bought.data), [undefined, undefined, undefined]);
});

test('a gift in place of another one is marked, and its purchase is not refunded', () => {
  const data = { ...bought.data, replaces: { gift_id: 'g', transaction_id: 'o' } };
  assert.deepEqual(
    [...issueGifts(data as GiftsPurchased['data'], GIVEN_AT)].map(({ event }) => event.data.replacement),
    [true, true, true],
  );
  given(purchaseAggregate, { ...bought, data } as GiftsPurchased, charged)
    .when((state) => requestRefund(state as MadePurchase, { refund_id: 'r', voided: false, reason: 'x' }))
    .refused('gift_is_replacement');
});

test('starts no refund, and has no money left, of a purchase that was not paid for or not made', () => {
  for (const events of [[], [bought], [bought, declined]]) {
    const purchase = given(purchaseAggregate, ...events);
    purchase.when((state) => startRefund(state, 'r', ['g'], {})).then();
    assert.equal(leftOfCharge(purchase.state), 0);
  }
  given(purchaseAggregate, bought, charged)
    .when((state) => startRefund(state, 'unknown', ['g'], {}))
    .then();
});

test.run();

import { NO_TEXT } from '../../../src/lib/seal.js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { GiftEvent } from '../../../src/domain/gift/events.js';
import { giftAggregate, type IssuedGift } from '../../../src/domain/gift/state.js';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import type { GiftsPurchased, PurchaseEvent } from '../../../src/domain/purchase/events.js';
import { type Purchase, purchaseAggregate } from '../../../src/domain/purchase/state.js';
import { leftOfCharge, requestRefund, startRefund } from '../../../src/domain/purchase/decisions.js';
import {
  cancelForRefund,
  giftsInRefunds,
  madeByHand,
  settleRefund,
  startAgain,
} from '../../../src/domain/purchase/refund.js';
import { given } from '../../support/assertions/givenWhenThen.js';
import { giftIssued } from '../../support/fixtures/giftEvents.js';

const test = suite('refunds');

const seed = 'ab'.repeat(32);
const [a, b, c] = deriveGiftIds(seed, 3).map(({ gift_id }) => gift_id) as [string, string, string];
const purchased: GiftsPurchased = {
  type: 'GiftsPurchased',
  data: {
    transaction_id: 't1',
    seed,
    buyer_id: 'ann',
    product_id: 'mocha',
    brand_id: 'bean',
    product_name: 'Mocha',
    sale_price: 250,
    total: 750,
    payment_reference: 'pm_card_visa',
    expires_on: '2099-01-01',
    message: NO_TEXT,
    receivers: [{}, {}, {}],
  },
};
const charged: PurchaseEvent = { type: 'PaymentCharged', data: { amount: 750, provider: 'stripe', charge_id: 'pi_1' } };
const requested = (refund_id: string, ...gift_ids: string[]): PurchaseEvent => ({
  type: 'RefundRequested',
  data: { refund_id, gift_ids, voided: false, reason: 'wrong product' },
});
const started = (refund_id: string, ...gift_ids: string[]): PurchaseEvent => ({
  type: 'RefundStarted',
  data: {
    refund_id,
    attempt: 1,
    gift_ids,
    kept: {},
    amount: 250 * gift_ids.length,
    provider: 'stripe',
    charge_id: 'pi_1',
    payment_reference: 'pm_card_visa',
  },
});
const ask = (refund_id: string, gift_ids?: string[]) => (state: Purchase) => {
  if (state.status === 'none') throw new Error('no purchase');
  return requestRefund(state, {
    refund_id,
    voided: false,
    reason: 'wrong product',
    ...(gift_ids === undefined ? {} : { gift_ids }),
  });
};
const purchase = (...events: PurchaseEvent[]) => given(purchaseAggregate, purchased, ...events);
const refundsOf = (state: Purchase) => (state.status === 'none' ? new Map<string, never>() : state.refunds);

test('asks for all gifts without a refund, or for those named, each once', () => {
  purchase(charged)
    .when(ask('r1'))
    .then(requested('r1', a, b, c) as never);
  purchase(charged)
    .when(ask('r1', [b, b]))
    .then(requested('r1', b) as never);
  purchase(charged, requested('r1', b))
    .when(ask('r2'))
    .then(requested('r2', a, c) as never);
  purchase(charged, requested('r1', b)).when(ask('r1')).then();
  purchase(charged, requested('r1', b), started('r1', b))
    .when(ask('r2', [a, b]))
    .refused('gift_already_refunded');
  purchase(charged, requested('r1', a, b, c))
    .when(ask('r2'))
    .refused('nothing_to_refund');
  purchase(charged)
    .when(ask('r1', ['f'.repeat(20)]))
    .refused('gift_not_in_transaction');
});

test('asks again for gifts that a refund has skipped', () => {
  const nothing: PurchaseEvent = { type: 'NothingRefunded', data: { refund_id: 'r1', kept: { redeemed: [a] } } };
  purchase(charged, requested('r1', a), nothing)
    .when(ask('r2', [a]))
    .then(requested('r2', a) as never);
  purchase(charged, requested('r1', a, b), started('r1', b))
    .when(ask('r2', [a]))
    .then(requested('r2', a) as never);
});

test('refuses a refund of an unsettled or declined purchase', () => {
  purchase().when(ask('r1')).refused('transaction_pending');
  purchase({ type: 'PaymentDeclined', data: { provider: 'stripe', code: 'lost_card' } })
    .when(ask('r1'))
    .refused('nothing_to_refund');
});

test('refunds exactly the price of the cancelled gifts, by who took the money', () => {
  purchase(charged, requested('r1', a, b, c))
    .when((state) => startRefund(state, 'r1', [a, c], { redeemed: [b] }))
    .then({ ...started('r1', a, c), data: { ...started('r1', a, c).data, kept: { redeemed: [b] } } } as never);
  purchase(charged, requested('r1', a))
    .when((state) => startRefund(state, 'r1', [], { code_out: [a] }))
    .then({ type: 'NothingRefunded', data: { refund_id: 'r1', kept: { code_out: [a] } } });
  purchase(charged, requested('r1', a), started('r1', a))
    .when((state) => startRefund(state, 'r1', [a], {}))
    .then();
  purchase(requested('r1', a))
    .when((state) => startRefund(state, 'r1', [a], {}))
    .then();
  assert.is(leftOfCharge(purchase(charged, requested('r1', a, b), started('r1', a, b)).state), 250);
  assert.is(leftOfCharge({ status: 'none' }), 0);
  assert.is(leftOfCharge(purchase().state), 0);
});

test('keeps the first answer, and retries only a refused refund, under another key', () => {
  const refunded = { outcome: 'refunded', provider: 'stripe', refund_ref: 're_1' } as const;
  const refused = { outcome: 'refused', provider: 'stripe', code: 'charge_disputed' } as const;
  const given1: PurchaseEvent = {
    type: 'GiftsRefunded',
    data: { refund_id: 'r1', attempt: 1, gift_ids: [a], amount: 250, provider: 'stripe', refund_ref: 're_1' },
  };
  const refused1: PurchaseEvent = {
    type: 'RefundRefused',
    data: { refund_id: 'r1', attempt: 1, amount: 250, provider: 'stripe', code: 'charge_disputed' },
  };
  const open = purchase(charged, requested('r1', a), started('r1', a));
  open.when((state) => settleRefund(refundsOf(state).get('r1'), refunded)).then(given1 as never);
  open.when((state) => settleRefund(refundsOf(state).get('r1'), refused)).then(refused1 as never);
  const done = purchase(charged, requested('r1', a), started('r1', a), given1);
  done.when((state) => settleRefund(refundsOf(state).get('r1'), refused)).then();
  done.when((state) => startAgain(refundsOf(state).get('r1'))).then();
  const failed = purchase(charged, requested('r1', a), started('r1', a), refused1);
  failed.when((state) => settleRefund(refundsOf(state).get('r1'), refunded)).then();
  failed
    .when((state) => startAgain(refundsOf(state).get('r1')))
    .then({ type: 'RefundStarted', data: { ...(started('r1', a).data as object), attempt: 2 } } as never);
  assert.equal([...giftsInRefunds(refundsOf(failed.state))], [a]);
  assert.equal(startAgain(undefined), []);
  assert.equal(settleRefund(undefined, refunded), []);
  const odd = purchase(charged, given1, refused1);
  assert.is(refundsOf(odd.state).size, 0, 'an answer to nothing is none');
});

test('counts external refunds for a refund only where the provider had refused it before', () => {
  const outside: PurchaseEvent = {
    type: 'RefundedAtProvider',
    data: { provider: 'stripe', charge_id: 'pi_1', amount: 250, total: 250 },
  };
  const refused: PurchaseEvent = {
    type: 'RefundRefused',
    data: { refund_id: 'r1', attempt: 1, amount: 250, provider: 'stripe', code: 'charge_disputed' },
  };
  const made: PurchaseEvent = {
    type: 'GiftsRefunded',
    data: { refund_id: 'r1', attempt: 1, gift_ids: [a], amount: 250, provider: 'stripe', refund_ref: 're_1' },
  };
  const byHand = (...events: PurchaseEvent[]): boolean =>
    madeByHand(refundsOf(purchase(charged, requested('r1', a), started('r1', a), ...events).state).get('r1'));
  assert.is(byHand(refused, outside), true);
  assert.is(byHand(refused), false, 'nobody gave anything back');
  assert.is(byHand(outside, made), false, 'it was made by us, and that is other money');
  assert.is(madeByHand(undefined), false);
  const unsent = purchase(charged, requested('r1', a), outside).state;
  assert.is(madeByHand(refundsOf(unsent).get('r1')), false, 'the provider was not asked yet');
});

test('cancels a gift unless it is used, vouchered, disputed or cancelled already', () => {
  const issued = giftIssued({
    transaction_id: 't1',
    product_id: 'mocha',
    value: 250,
    receiver: {},
    purchased_at: '2026-01-01T00:00:00.000Z',
    expires_on: '2026-02-01',
  });
  const redeemed: GiftEvent = {
    type: 'GiftRedeemed',
    data: {
      redemption_id: 'x',
      location_id: 'l',
      location_merchant_id: 'm',
      merchant_id: 'm',
      brand_id: 'bean',
      product_id: 'mocha',
      value: 250,
    },
  };
  const unredeemed: GiftEvent = {
    type: 'GiftUnredeemed',
    data: { redemption_id: 'x', location_id: 'l', merchant_id: 'm' },
  };
  const vouchered: GiftEvent = {
    type: 'VoucherAssigned',
    data: { voucher_id: 'v', code: 'c', pin: null, segment_id: 's', expires_at: '' },
  };
  const blocked = (cause: string): GiftEvent => ({ type: 'GiftBlocked', data: { cause, reason: '' } });
  const cancelled = (refund_id?: string): GiftEvent => ({
    type: 'GiftCancelled',
    data: { reason: 'x', ...(refund_id === undefined ? {} : { refund_id }) },
  });
  const decide = (voided: boolean, ...events: GiftEvent[]): object =>
    cancelForRefund(given(giftAggregate, issued, ...events).state as IssuedGift, {
      refund_id: 'r1',
      voided,
    });
  const cancel = { cancel: { type: 'GiftCancelled', data: { reason: 'refunded', refund_id: 'r1' } } };
  assert.equal(decide(false), cancel);
  assert.equal(decide(false, redeemed, unredeemed), cancel);
  assert.equal(decide(false, blocked('support')), cancel);
  assert.equal(decide(true, redeemed), { kept: 'redeemed' });
  assert.equal(decide(true, blocked('dispute:dp_1')), { kept: 'disputed' });
  assert.equal(decide(false, vouchered), { kept: 'code_out' });
  assert.equal(decide(true, vouchered), cancel);
  assert.equal(decide(true, cancelled('r1')), { already: true });
  assert.equal(decide(true, cancelled('r0')), { kept: 'cancelled' });
  assert.equal(decide(true, cancelled()), { kept: 'cancelled' });
});

test.run();

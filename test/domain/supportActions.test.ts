import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { fold } from '../../src/domain/decider.js';
import type { GiftEvent } from '../../src/domain/gift/events.js';
import { type Gift, type IssuedGift, giftAggregate } from '../../src/domain/gift/state.js';
import { type GiftFacts, assignVoucher, ownerOf, refuseUnlessMayRedeem } from '../../src/domain/gift/decisions.js';
import {
  declinedFor,
  declineReplacement,
  extend,
  reassign,
  replace,
  unredeemForSupport,
} from '../../src/domain/supportActions.js';
import { given, happened } from '../support/assertions/givenWhenThen.js';
import { refusal } from '../support/assertions/rejects.js';
import { giftIssued, giftRedeemed } from '../support/fixtures/giftEvents.js';

const test = suite('domain/supportActions');
const issued = (receiver: object = { user_id: 'bob' }): GiftEvent => giftIssued({ receiver });
const redeemed = giftRedeemed('r');
const unredeemed: GiftEvent = {
  type: 'GiftUnredeemed',
  data: { redemption_id: 'r', location_id: 'l', merchant_id: null },
};
const cancelled: GiftEvent = { type: 'GiftCancelled', data: { reason: 'x' } };
const blocked: GiftEvent = { type: 'GiftBlocked', data: { cause: 'support', reason: 'x' } };
const voucher: GiftEvent = {
  type: 'VoucherAssigned',
  data: { voucher_id: 'v', code: 'C', pin: null, segment_id: 's', expires_at: '2026-03-31T09:00:00.000Z' },
};
const NOW = '2026-03-02T10:00:00.000Z';
const LATE = '2026-07-01T00:00:00.000Z';

const to =
  (user_id: string, payment: GiftFacts['payment'] = 'charged', now = NOW) =>
  (gift: Gift): readonly GiftEvent[] =>
    reassign(gift as IssuedGift, { now, payment }, { receiver: { user_id }, reason: 'wrong person' });
const given_to = (user_id: string): GiftEvent => ({
  type: 'GiftReassigned',
  data: { transaction_id: 't', receiver: { user_id }, reason: 'wrong person' },
});

test('a gift goes to another receiver, whatever receiver it had', () => {
  given(giftAggregate, issued()).when(to('cat')).then(given_to('cat'));
  given(giftAggregate, issued({})).when(to('cat')).then(given_to('cat'));
  given(giftAggregate, issued({ phone_id: 'h' }))
    .when(to('cat'))
    .then(given_to('cat'));
  given(giftAggregate, issued(), blocked).when(to('cat')).then(given_to('cat'));
  given(giftAggregate, issued(), redeemed, unredeemed).when(to('cat')).then(given_to('cat'));
  given(giftAggregate, issued()).when(to('bob')).then();
  given(giftAggregate, issued(), given_to('cat')).when(to('cat')).then();
  given(giftAggregate, issued(), given_to('cat')).when(to('bob')).then(given_to('bob'));
});

test('refuses to reassign an unpaid, cancelled, used, expired or vouchered gift', () => {
  given(giftAggregate, issued()).when(to('cat', 'pending')).refused('gift_not_paid');
  given(giftAggregate, issued()).when(to('cat', 'declined')).refused('gift_cancelled');
  given(giftAggregate, issued(), cancelled).when(to('cat')).refused('gift_cancelled');
  given(giftAggregate, issued(), redeemed).when(to('cat')).refused('gift_already_redeemed');
  given(giftAggregate, issued(), voucher).when(to('cat')).refused('gift_has_voucher');
  given(giftAggregate, issued())
    .when(to('cat', 'charged', LATE))
    .refused('gift_expired');
});

test('support reverses the latest redemption of a gift, also of one that is blocked', () => {
  const reverse =
    (payment: GiftFacts['payment'] = 'charged') =>
    (gift: Gift): readonly GiftEvent[] =>
      unredeemForSupport(gift as IssuedGift, { payment }, 'not by the receiver');
  const reversed: GiftEvent = {
    type: 'GiftUnredeemed',
    data: {
      redemption_id: 'r',
      location_id: giftRedeemed('r').data.location_id,
      location_merchant_id: giftRedeemed('r').data.location_merchant_id,
      merchant_id: giftRedeemed('r').data.merchant_id,
      by_support: true,
      reason: 'not by the receiver',
    },
  };
  given(giftAggregate, issued(), redeemed).when(reverse()).then(reversed);
  given(giftAggregate, issued(), giftRedeemed('q'), unredeemed, redeemed).when(reverse()).then(reversed);
  given(giftAggregate, issued(), redeemed, blocked).when(reverse()).then(reversed);
  given(giftAggregate, issued()).when(reverse()).refused('gift_not_redeemed');
  given(giftAggregate, issued(), redeemed, reversed).when(reverse()).refused('gift_not_redeemed');
  given(giftAggregate, issued(), cancelled).when(reverse()).refused('gift_cancelled');
  given(giftAggregate, issued()).when(reverse('pending')).refused('gift_not_paid');
});

const by =
  (id: string, { payment = 'charged', now = NOW, voided = false }: Partial<GiftFacts & { voided: boolean }> = {}) =>
  (gift: Gift): readonly GiftEvent[] =>
    replace(
      gift as IssuedGift,
      { now, payment },
      { replaced_by: { gift_id: `g-${id}`, transaction_id: id }, reason: 'lost', voided },
    );
const replaced_by = (id: string): GiftEvent => ({
  type: 'GiftReplaced',
  data: { replaced_by: { gift_id: `g-${id}`, transaction_id: id }, reason: 'lost' },
});

test('a gift is replaced once: an unused, blocked or redeemed one, or one whose code is worthless', () => {
  given(giftAggregate, issued()).when(by('n')).then(replaced_by('n'));
  given(giftAggregate, issued(), blocked).when(by('n')).then(replaced_by('n'));
  given(giftAggregate, issued(), redeemed).when(by('n')).then(replaced_by('n'));
  given(giftAggregate, issued(), voucher)
    .when(by('n', { voided: true }))
    .then(replaced_by('n'));
  given(giftAggregate, issued(), replaced_by('n')).when(by('n')).then();
  given(giftAggregate, issued(), redeemed, replaced_by('n'), unredeemed).when(by('o')).refused('gift_already_replaced');
});

test('refuses to replace a gift whose money or value is elsewhere', () => {
  const dispute: GiftEvent = { type: 'GiftBlocked', data: { cause: 'dispute:d', reason: 'x' } };
  given(giftAggregate, issued())
    .when(by('n', { payment: 'pending' }))
    .refused('gift_not_paid');
  given(giftAggregate, issued())
    .when(by('n', { payment: 'declined' }))
    .refused('gift_cancelled');
  given(giftAggregate, issued(), cancelled).when(by('n')).refused('gift_cancelled');
  given(giftAggregate, issued(), redeemed, dispute).when(by('n')).refused('gift_disputed');
  given(giftAggregate, issued(), voucher).when(by('n')).refused('gift_code_out');
  given(giftAggregate, issued())
    .when(by('n', { now: LATE }))
    .refused('gift_expired');
  given(giftAggregate, giftIssued({ replacement: true }))
    .when(by('n'))
    .refused('gift_is_replacement');
  given(giftAggregate, giftIssued({ scheduled: true, receiver: { user_id: 'bob' } }))
    .when(by('n'))
    .refused('notification_pending');
});

test('a replaced gift is cancelled, also one whose redemption is reversed later', () => {
  const stateAfter = (...events: readonly GiftEvent[]): Gift['status'] =>
    fold(
      giftAggregate,
      events.map((event) => happened(event)),
    ).status;
  assert.equal(stateAfter(issued(), replaced_by('n')), 'cancelled');
  assert.equal(stateAfter(issued(), redeemed, replaced_by('n')), 'redeemed');
  assert.equal(stateAfter(issued(), redeemed, replaced_by('n'), unredeemed), 'cancelled');
});

test('declines each replacement once, of a gift that could still be given up', () => {
  const event = (transaction_id: string): GiftEvent => ({
    type: 'ReplacementDeclined',
    data: { replaced_by: { gift_id: 'h', transaction_id }, code: 'gift_disputed' },
  });
  const decline =
    (transaction_id: string) =>
    (gift: Gift): readonly GiftEvent[] =>
      declineReplacement(gift as IssuedGift, { replaced_by: { gift_id: 'h', transaction_id }, code: 'gift_disputed' });
  const replaced: GiftEvent = {
    type: 'GiftReplaced',
    data: { replaced_by: { gift_id: 'h', transaction_id: 'a' }, reason: 'x' },
  };
  for (const before of [[issued()], [issued(), redeemed], [issued(), event('b')]])
    given(giftAggregate, ...before)
      .when(decline('a'))
      .then(event('a'));
  for (const before of [
    [issued(), event('a'), event('b')],
    [issued(), cancelled],
    [issued(), replaced],
    [issued(), redeemed, replaced],
  ])
    given(giftAggregate, ...before)
      .when(decline('a'))
      .then();
  const gift = fold(giftAggregate, [happened(issued()), happened(event('a'))]) as IssuedGift;
  assert.deepEqual([declinedFor(gift, 'a'), declinedFor(gift, 'b')], ['gift_disputed', undefined]);
});

test('makes the new receiver the owner and takes the gift from the previous one', () => {
  const claimed: GiftEvent = { type: 'GiftClaimed', data: { user_id: 'dan' } };
  for (const before of [[issued()], [issued({}), claimed], [issued({})], [issued({ phone_id: 'h' })]]) {
    const gift = given(giftAggregate, ...before, happened(given_to('cat'), NOW)).state as IssuedGift;
    assert.equal(ownerOf(gift, undefined), 'cat');
    assert.equal(gift.receiverSince, NOW);
    for (const user_id of ['ann', 'bob', 'dan'])
      assert.throws(() => refuseUnlessMayRedeem(gift, { caller: { user_id } }), refusal('cannot_redeem'));
    refuseUnlessMayRedeem(gift, { caller: { user_id: 'cat' } });
  }
  const number =
    (phone_id: string) =>
    (gift: Gift): readonly GiftEvent[] =>
      reassign(gift as IssuedGift, { now: NOW, payment: 'charged' }, { receiver: { phone_id }, reason: 'x' });
  given(giftAggregate, issued({ phone_id: 'old' }))
    .when(number('old'))
    .then();
  given(giftAggregate, issued({ phone_id: 'old' }))
    .when(number('new'))
    .then({
      type: 'GiftReassigned',
      data: { transaction_id: 't', receiver: { phone_id: 'new' }, reason: 'x' },
    });
  const byNumber: GiftEvent = {
    type: 'GiftReassigned',
    data: { transaction_id: 't', receiver: { phone_id: 'new' }, reason: 'x' },
  };
  assert.equal(ownerOf(given(giftAggregate, issued(), byNumber).state as IssuedGift, 'eve'), 'eve');
});

const until =
  (expires_on: string, now = NOW, payment: GiftFacts['payment'] = 'charged', segmentDays?: number) =>
  (gift: Gift): readonly GiftEvent[] =>
    extend(gift as IssuedGift, { now, payment }, { expires_on, reason: 'shop was closed', segmentDays });
const extended = (expires_on: string, voucher_expires_at: string | null = null): GiftEvent => ({
  type: 'GiftExtended',
  data: { expires_on, voucher_expires_at, reason: 'shop was closed' },
});

test('extends a gift to a later day, an expired or used one too', () => {
  given(giftAggregate, issued()).when(until('2026-07-31')).then(extended('2026-07-31'));
  given(giftAggregate, issued()).when(until('2026-07-31', LATE)).then(extended('2026-07-31'));
  given(giftAggregate, issued()).when(until('2026-07-01', LATE)).then(extended('2026-07-01'));
  given(giftAggregate, issued(), redeemed).when(until('2026-07-31')).then(extended('2026-07-31'));
  given(giftAggregate, issued(), extended('2026-07-31')).when(until('2026-07-31')).then();
  given(giftAggregate, issued(), extended('2026-07-31'))
    .when(to('cat', 'charged', LATE))
    .then(given_to('cat'));
});

test('refuses an earlier or past day, and one too far ahead', () => {
  given(giftAggregate, issued()).when(until('2026-06-29')).refused('invalid_expiry_date');
  given(giftAggregate, issued(), extended('2026-07-31')).when(until('2026-07-30')).refused('invalid_expiry_date');
  given(giftAggregate, issued()).when(until('2026-07-01', '2026-07-02T00:00:00.000Z')).refused('invalid_expiry_date');
  given(giftAggregate, issued()).when(until('2036-03-02')).then(extended('2036-03-02'));
  given(giftAggregate, issued()).when(until('2036-03-03')).refused('invalid_expiry_date');
  given(giftAggregate, issued())
    .when(until('2026-07-31', NOW, 'pending'))
    .refused('gift_not_paid');
  given(giftAggregate, issued(), cancelled).when(until('2026-07-31')).refused('gift_cancelled');
});

test('extends the voucher to the new day or by the segment’s days, and never shortens it', () => {
  const made = happened(voucher, '2026-03-01T09:00:00.000Z');
  given(giftAggregate, issued(), made)
    .when(until('2026-07-31', NOW, 'charged', 365))
    .then(extended('2026-07-31', '2026-07-31T23:59:59.999Z'));
  given(giftAggregate, issued(), made)
    .when(until('2026-07-31', NOW, 'charged', 40))
    .then(extended('2026-07-31', '2026-04-10T09:00:00.000Z'));
  given(giftAggregate, issued(), made)
    .when(until('2026-07-31', NOW, 'charged', 10))
    .then(extended('2026-07-31', '2026-03-31T09:00:00.000Z'));
  given(giftAggregate, issued(), made)
    .when(until('2026-07-31', NOW))
    .then(extended('2026-07-31', '2026-03-31T09:00:00.000Z'));
  const state = given(giftAggregate, issued(), made, extended('2026-07-31', '2026-04-10T09:00:00.000Z'))
    .state as IssuedGift;
  assert.equal(state.voucher?.expires_at, '2026-04-10T09:00:00.000Z');
  assert.deepEqual(
    assignVoucher(state, { now: LATE, payment: 'charged', caller: { user_id: 'bob' } }, voucher.data as never),
    [],
  );
});

test.run();

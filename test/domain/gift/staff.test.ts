import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { receiverKind, type GiftEvent } from '../../../src/domain/gift/events.js';
import { giftAggregate, type Gift, type IssuedGift } from '../../../src/domain/gift/state.js';
import { assignVoucher, claim, type GiftCaller, presentReceiver, redeem } from '../../../src/domain/gift/decisions.js';
import { given } from '../../support/assertions/givenWhenThen.js';
import { giftIssued, giftRedeemed } from '../../support/fixtures/giftEvents.js';

const test = suite('staff and receivers of a gift');

const permissions = ['redeem'];
const staff: GiftCaller = { user_id: 'bob', staff: true };
const staffOfCoffee: GiftCaller = { ...staff, merchant: { id: 'coffee', valid: true, permissions } };
const facts = (caller: GiftCaller) => ({ now: '2026-03-02T10:00:00.000Z', payment: 'charged', caller }) as const;
const at =
  (merchant_id: string, caller: GiftCaller) =>
  (gift: Gift): readonly GiftEvent[] =>
    redeem(gift as IssuedGift, {
      ...facts(caller),
      location: { id: 'soho', merchant_id, valid: true },
      redemptionId: 'r',
    });
const claimBy =
  (caller: GiftCaller) =>
  (gift: Gift): readonly GiftEvent[] =>
    claim(gift as IssuedGift, facts(caller));
const voucherFor =
  (caller: GiftCaller) =>
  (gift: Gift): readonly GiftEvent[] =>
    assignVoucher(gift as IssuedGift, facts(caller), {
      voucher_id: 'v',
      code: 'C',
      pin: null,
      segment_id: 's',
      expires_at: '2026-04-01T00:00:00.000Z',
    });

test('staff redeem no gift of their own', () => {
  given(giftAggregate, giftIssued()).when(at('coffee', staff)).refused('staff_receives_no_gifts');
  given(giftAggregate, giftIssued())
    .when(at('coffee', { ...staff, user_id: 'ann' }))
    .refused('cannot_redeem');
});

test('staff of a merchant redeem at its locations, and nowhere else, not even a gift of their own', () => {
  given(giftAggregate, giftIssued()).when(at('coffee', staffOfCoffee)).then(giftRedeemed('r'));
  given(giftAggregate, giftIssued()).when(at('cinema', staffOfCoffee)).refused('invalid_location');
  given(giftAggregate, giftIssued())
    .when(at('cinema', { ...staffOfCoffee, staff: false }))
    .then({ type: 'GiftRedeemed', data: { ...giftRedeemed('r', 'cinema').data } });
});

test('staff claim no gift, and get no code, not even where they redeem for a merchant', () => {
  given(giftAggregate, giftIssued({ receiver: {} }))
    .when(claimBy(staff))
    .refused('staff_receives_no_gifts');
  for (const caller of [staff, staffOfCoffee])
    given(giftAggregate, giftIssued()).when(voucherFor(caller)).refused('staff_receives_no_gifts');
});

test('the present receiver is the one whom the buyer or support named, else who claimed the gift', () => {
  const of = (...events: GiftEvent[]): object => presentReceiver(given(giftAggregate, ...events).state as IssuedGift);
  const claimed: GiftEvent = { type: 'GiftClaimed', data: { user_id: 'eve' } };
  const reassigned: GiftEvent = {
    type: 'GiftReassigned',
    data: { transaction_id: 't', receiver: { phone_id: 'h' }, reason: 'x' },
  };
  assert.deepEqual(of(giftIssued()), { user_id: 'bob' });
  assert.deepEqual(of(giftIssued({ receiver: {} })), {});
  assert.deepEqual(of(giftIssued({ receiver: {} }), claimed), { user_id: 'eve' });
  assert.deepEqual(of(giftIssued({ receiver: {} }), claimed, reassigned), { phone_id: 'h' });
});

test('a receiver is shown as a user, as a phone number, or as nobody', () => {
  assert.equal(receiverKind({ user_id: 'bob' }), 'user');
  assert.equal(receiverKind({ phone_id: 'h' }), 'phone number');
  assert.equal(receiverKind({}), 'nobody');
});

test.run();

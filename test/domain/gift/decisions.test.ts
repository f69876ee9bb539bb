import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite } from 'uvu';
import { fold } from '../../../src/domain/decider.js';
import { type GiftEvent, type GiftIssued, type VoucherAssigned, giftStream } from '../../../src/domain/gift/events.js';
import { type Gift, type IssuedGift, giftAggregate } from '../../../src/domain/gift/state.js';
import {
  type GiftCaller,
  type GiftFacts,
  assignVoucher,
  cancel,
  claim,
  isExpired,
  mayCancel,
  mayUnredeem,
  ownerOf,
  redeem,
  release,
  refuseNewVoucher,
  reverseOrVoid,
  unredeem,
} from '../../../src/domain/gift/decisions.js';
import { block, unblock } from '../../../src/domain/supportActions.js';
import { Refusal } from '../../../src/domain/refusal.js';
import { given, happened } from '../../support/assertions/givenWhenThen.js';
import { giftIssued as issued, giftRedeemed as redeemed } from '../../support/fixtures/giftEvents.js';

const test = suite('gift');

const unredeemed = (id: string, merchant?: string | null): GiftEvent => {
  const { location_id, location_merchant_id, merchant_id } = redeemed(id, merchant).data;
  return { type: 'GiftUnredeemed', data: { redemption_id: id, location_id, location_merchant_id, merchant_id } };
};
const voucher: VoucherAssigned = {
  type: 'VoucherAssigned',
  data: { voucher_id: 'v', code: 'C', pin: null, segment_id: 's', expires_at: '2026-04-01T00:00:00.000Z' },
};

const bob: GiftCaller = { user_id: 'bob' };
const till = (
  merchant = 'coffee',
  valid = true,
  permissions: readonly string[] = ['redeem', 'unredeem'],
): GiftCaller => ({ user_id: 'till', merchant: { id: merchant, valid, permissions } });
const facts = (more: Partial<GiftFacts> = {}): GiftFacts => ({
  now: '2026-03-02T10:00:00.000Z',
  payment: 'charged',
  caller: bob,
  ...more,
});
const soho = { id: 'soho', merchant_id: 'coffee', valid: true };
const at =
  (location: typeof soho | undefined, more: Partial<GiftFacts> = {}, redemptionId = 'r1') =>
  (gift: Gift): readonly GiftEvent[] =>
    redeem(gift as IssuedGift, { ...facts(more), location, redemptionId });
const reverse =
  (caller: GiftCaller, redemptionId = 'latest') =>
  (gift: Gift): readonly GiftEvent[] =>
    unredeem(gift as IssuedGift, { ...facts({ caller }), redemptionId });

const cancelKey =
  (more: Partial<GiftFacts> = {}, commandPart = 'r1') =>
  (gift: Gift): readonly GiftEvent[] =>
    reverseOrVoid(gift as IssuedGift, { ...facts({ caller: till(), ...more }), commandPart });
const voided = (redemption_id: string): GiftEvent => ({ type: 'RedemptionVoided', data: { redemption_id } });

test('its stream', () => assert.equal(giftStream('a'), 'gift-a'));

test('lets the owner redeem anywhere and records the facts of the day', () => {
  given(giftAggregate, issued()).when(at(soho)).then(redeemed('r1'));
  given(giftAggregate, issued())
    .when(at({ id: 'soho', merchant_id: 'other', valid: false }))
    .then(redeemed('r1', null));
});

test('lets a till redeem at its own locations only', () => {
  given(giftAggregate, issued())
    .when(at(soho, { caller: till() }))
    .then(redeemed('r1'));
  given(giftAggregate, issued())
    .when(at({ ...soho, merchant_id: 'cinema' }, { caller: till() }))
    .refused('invalid_location');
  given(giftAggregate, issued())
    .when(at(undefined, { caller: till() }))
    .refused('invalid_location');
});

test('refuses a redemption by anyone else', () => {
  for (const caller of [{ user_id: 'ann' }, till('coffee', false), till('coffee', true, ['unredeem'])])
    given(giftAggregate, issued()).when(at(soho, { caller })).refused('cannot_redeem');
  given(giftAggregate, issued())
    .when(at(undefined, { caller: { user_id: 'ann' } }))
    .refused('cannot_redeem');
});

test('refuses in the order payment, cancelled, redeemed, expired', () => {
  const late = '2026-07-01T00:00:00.000Z';
  given(giftAggregate, issued())
    .when(at(soho, { payment: 'pending', now: late }))
    .refused('gift_not_paid');
  given(giftAggregate, issued())
    .when(at(soho, { payment: 'declined', now: late }))
    .refused('gift_cancelled');
  given(giftAggregate, issued(), { type: 'GiftCancelled', data: { reason: 'refund' } })
    .when(at(soho, { now: late }))
    .refused('gift_cancelled');
  given(giftAggregate, issued(), redeemed('r0'))
    .when(at(soho, { now: late }))
    .refused('gift_already_redeemed');
  given(giftAggregate, issued(), redeemed('r0'), unredeemed('r0'))
    .when(at(soho, { now: late }))
    .refused('gift_expired');
  given(giftAggregate, issued())
    .when(at(soho, { now: late }))
    .refused('gift_expired');
  given(giftAggregate, issued())
    .when(at(soho, { now: '2026-06-30T23:59:59.999Z' }))
    .then(redeemed('r1'));
});

test('an unredeemed gift is redeemed again', () => {
  given(giftAggregate, issued(), redeemed('r0'), unredeemed('r0')).when(at(soho)).then(redeemed('r1'));
});

test('reverses the latest redemption, by name or by id', () => {
  given(giftAggregate, issued(), redeemed('r0')).when(reverse(till())).then(unredeemed('r0'));
  given(giftAggregate, issued(), redeemed('r0')).when(reverse(till(), 'r0')).then(unredeemed('r0'));
  given(giftAggregate, issued(), redeemed('r0'), unredeemed('r0'), redeemed('r1'))
    .when(reverse(till(), 'r0'))
    .refused('gift_not_redeemed');
  given(giftAggregate, issued(), redeemed('r0'), unredeemed('r0')).when(reverse(till())).refused('gift_not_redeemed');
  given(giftAggregate, issued()).when(reverse(till())).refused('gift_not_found');
  given(giftAggregate, issued()).when(reverse(till(), 'nonsense')).refused('redemption_not_found');
});

test('lets the redeeming merchant reverse, or any valid merchant after a redemption elsewhere', () => {
  given(giftAggregate, issued(), redeemed('r0'))
    .when(reverse(till('coffee', false)))
    .then(unredeemed('r0'));
  given(giftAggregate, issued(), redeemed('r0'))
    .when(reverse(till('cinema', true)))
    .refused('cannot_unredeem');
  given(giftAggregate, issued(), redeemed('r0', null))
    .when(reverse(till('cinema', true)))
    .then(unredeemed('r0', null));
  given(giftAggregate, issued(), redeemed('r0', null))
    .when(reverse(till('cinema', false)))
    .refused('cannot_unredeem');
  for (const caller of [bob, till('coffee', true, ['redeem'])])
    given(giftAggregate, issued(), redeemed('r0')).when(reverse(caller)).refused('cannot_unredeem');
  const { state } = given(giftAggregate, issued(), redeemed('r0'));
  assert.equal(mayUnredeem(state as IssuedGift, till('coffee', false), 'nonsense'), true);
  assert.equal(mayUnredeem(state as IssuedGift, till('cinema', false), 'nonsense'), false);
});

test('finds the owner of a gift', () => {
  const of = (more: Partial<GiftIssued['data']>, phoneOwner?: string, claimedBy?: string): string | undefined =>
    ownerOf({ issued: issued(more).data, ...(claimedBy === undefined ? {} : { claimedBy }) }, phoneOwner);
  assert.equal(of({}), 'bob');
  assert.equal(of({ receiver: { phone_id: 'h' } }), undefined);
  assert.equal(of({ receiver: { phone_id: 'h' } }, 'cat'), 'cat');
  assert.equal(of({ receiver: {} }), 'ann');
  assert.equal(of({ receiver: {} }, undefined, 'dan'), 'dan');
});

test('lets the first claim win, and changes nothing for the owner', () => {
  const shared = issued({ receiver: {} });
  const byBob = (gift: Gift): readonly GiftEvent[] => claim(gift as IssuedGift, facts());
  const claimed = (user_id: string): GiftEvent => ({ type: 'GiftClaimed', data: { user_id } });
  given(giftAggregate, shared).when(byBob).then(claimed('bob'));
  given(giftAggregate, shared, claimed('bob'), redeemed('r0')).when(byBob).then();
  given(giftAggregate, shared, claimed('cat'), redeemed('r0')).when(byBob).refused('gift_already_claimed');
  given(giftAggregate, issued()).when(byBob).refused('cannot_claim');
  given(giftAggregate, issued({ receiver: { phone_id: 'h' } }))
    .when(byBob)
    .refused('cannot_claim');
  given(giftAggregate, shared, redeemed('r0')).when(byBob).refused('gift_already_redeemed');
  given(giftAggregate, shared)
    .when((gift) => claim(gift as IssuedGift, facts({ payment: 'pending' })))
    .refused('gift_not_paid');
});

test('assigns a gift one voucher', () => {
  const assign =
    (more: Partial<GiftFacts> = {}) =>
    (gift: Gift): readonly GiftEvent[] =>
      assignVoucher(gift as IssuedGift, facts(more), voucher.data);
  given(giftAggregate, issued()).when(assign()).then(voucher);
  given(giftAggregate, issued(), voucher, redeemed('r0')).when(assign()).then();
  given(giftAggregate, issued(), redeemed('r0')).when(assign()).refused('gift_already_redeemed');
  given(giftAggregate, issued())
    .when(assign({ caller: { user_id: 'ann' } }))
    .refused('cannot_redeem');
  given(giftAggregate, issued())
    .when(assign({ payment: 'pending' }))
    .refused('gift_not_paid');
  given(giftAggregate, issued(), voucher).when(at(soho)).then(redeemed('r1'));
  assert.doesNotThrow(() => refuseNewVoucher(given(giftAggregate, issued()).state as IssuedGift, facts()));
});

test('cancels only a gift that is neither redeemed nor cancelled', () => {
  const cancelIt = (gift: Gift): readonly GiftEvent[] => cancel(gift as IssuedGift, { reason: 'refund' });
  given(giftAggregate, issued())
    .when(cancelIt)
    .then({ type: 'GiftCancelled', data: { reason: 'refund' } });
  given(giftAggregate, issued(), redeemed('r0')).when(cancelIt).then();
  given(giftAggregate, issued(), { type: 'GiftCancelled', data: { reason: 'x' } })
    .when(cancelIt)
    .then();
});

const blocked = (cause: string): GiftEvent => ({ type: 'GiftBlocked', data: { cause, reason: 'why' } });
const freed = (cause: string): GiftEvent => ({
  type: 'GiftUnblocked',
  data: { cause, reason: 'won', transaction_id: 't' },
});

test('refuses use of a blocked gift until its last cause is freed', () => {
  const assign = (gift: Gift): readonly GiftEvent[] => assignVoucher(gift as IssuedGift, facts(), voucher.data);
  given(giftAggregate, issued(), blocked('support')).when(at(soho)).refused('gift_blocked');
  given(giftAggregate, issued(), blocked('support'))
    .when(at(soho, { caller: till() }))
    .refused('gift_blocked');
  given(giftAggregate, issued(), blocked('support')).when(assign).refused('gift_blocked');
  given(giftAggregate, issued({ receiver: {} }), blocked('support'))
    .when((gift) => claim(gift as IssuedGift, facts()))
    .refused('gift_blocked');
  given(giftAggregate, issued(), blocked('support'), blocked('dispute:d'), freed('support'))
    .when(at(soho))
    .refused('gift_blocked');
  given(giftAggregate, issued(), blocked('support'), blocked('dispute:d'), freed('dispute:d'), freed('support'))
    .when(at(soho))
    .then(redeemed('r1'));
});

test('refuses for final reasons before it refuses for a block', () => {
  const held = blocked('support');
  const late = '2026-07-01T00:00:00.000Z';
  given(giftAggregate, issued(), held, redeemed('r0')).when(at(soho)).refused('gift_already_redeemed');
  given(giftAggregate, issued(), held)
    .when(at(soho, { now: late }))
    .refused('gift_expired');
  given(giftAggregate, issued(), held, { type: 'GiftCancelled', data: { reason: 'x' } })
    .when(at(soho))
    .refused('gift_cancelled');
  given(giftAggregate, issued(), held)
    .when(at(soho, { caller: { user_id: 'ann' } }))
    .refused('cannot_redeem');
  given(giftAggregate, issued(), held).when(at(undefined)).refused('invalid_location');
});

test('leaves voucher, owner and reversal alone while a gift is blocked', () => {
  given(giftAggregate, issued(), voucher, blocked('support'))
    .when((gift) => assignVoucher(gift as IssuedGift, facts(), voucher.data))
    .then();
  given(giftAggregate, issued({ receiver: {} }), { type: 'GiftClaimed', data: { user_id: 'bob' } }, blocked('support'))
    .when((gift) => claim(gift as IssuedGift, facts()))
    .then();
  given(giftAggregate, issued(), redeemed('r0'), blocked('support')).when(reverse(till())).then(unredeemed('r0'));
  given(giftAggregate, issued(), redeemed('r0'), blocked('support'), unredeemed('r0'))
    .when(at(soho))
    .refused('gift_blocked');
});

test('each cause blocks once, and is freed by itself', () => {
  const hold =
    (payment: GiftFacts['payment'] = 'charged') =>
    (gift: Gift): readonly GiftEvent[] =>
      block(gift as IssuedGift, { payment }, { cause: 'dispute:d', reason: 'why' });
  const free = (gift: Gift): readonly GiftEvent[] => unblock(gift as IssuedGift, { cause: 'dispute:d', reason: 'won' });
  given(giftAggregate, issued()).when(hold()).then(blocked('dispute:d'));
  given(giftAggregate, issued(), redeemed('r0')).when(hold()).then(blocked('dispute:d'));
  given(giftAggregate, issued(), blocked('support')).when(hold()).then(blocked('dispute:d'));
  given(giftAggregate, issued(), blocked('dispute:d')).when(hold()).then();
  given(giftAggregate, issued(), blocked('dispute:d'), freed('dispute:d')).when(hold()).then(blocked('dispute:d'));
  given(giftAggregate, issued(), { type: 'GiftCancelled', data: { reason: 'x' } })
    .when(hold())
    .then();
  given(giftAggregate, issued()).when(hold('pending')).refused('gift_not_paid');
  given(giftAggregate, issued()).when(hold('declined')).then();
  given(giftAggregate, issued(), blocked('dispute:d')).when(free).then(freed('dispute:d'));
  given(giftAggregate, issued(), blocked('support')).when(free).then();
  given(giftAggregate, issued()).when(free).then();
  given(giftAggregate, issued(), freed('dispute:d')).when(at(soho)).then(redeemed('r1'));
});

test('ignores unknown events, and those before the issue', () => {
  assert.deepEqual(given(giftAggregate, redeemed('r0')).state, { status: 'none' });
  const { state } = given(giftAggregate, issued());
  assert.equal(
    giftAggregate.evolve(state, happened({ type: 'SomethingLater', data: {} } as unknown as GiftEvent)),
    state,
  );
});

test('treats the last day as valid, in UTC', () => {
  assert.equal(isExpired('2026-06-30', '2026-06-30T23:59:59.999Z'), false);
  assert.equal(isExpired('2026-06-30', '2026-07-01T00:00:00.000Z'), true);
});

test('property: never redeems a redeemed or blocked gift, whatever comes in whatever order', () => {
  const callers = [bob, { user_id: 'ann' }, till(), till('cinema', true), till('coffee', false)];
  const action = fc.record({
    kind: fc.constantFrom('redeem', 'unredeem', 'claim', 'voucher', 'cancel', 'block', 'unblock'),
    caller: fc.constantFrom(...callers),
    day: fc.integer({ min: 1, max: 200 }),
    cause: fc.constantFrom('support', 'dispute:a', 'dispute:b'),
  });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), fc.constantFrom({}, { user_id: 'bob' }), (actions, receiver) => {
      const log: GiftEvent[] = [issued({ receiver })];
      let open = false;
      const causes = new Set<string>();
      actions.forEach(({ kind, caller, day, cause }, index) => {
        const gift = fold(
          giftAggregate,
          log.map((event) => happened(event)),
        ) as IssuedGift;
        const now = new Date(Date.UTC(2026, 2, day)).toISOString();
        const told = facts({ caller, now });
        let events: readonly GiftEvent[] = [];
        try {
          if (kind === 'redeem') events = redeem(gift, { ...told, location: soho, redemptionId: `r${index}` });
          else if (kind === 'unredeem') events = unredeem(gift, { ...told, redemptionId: 'latest' });
          else if (kind === 'claim') events = claim(gift, told);
          else if (kind === 'voucher') events = assignVoucher(gift, told, voucher.data);
          else if (kind === 'block') events = block(gift, told, { cause, reason: 'why' });
          else if (kind === 'unblock') events = unblock(gift, { cause, reason: 'why' });
          else events = cancel(gift, { reason: 'refund' });
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
        }
        for (const event of events) {
          if (event.type === 'GiftBlocked')
            assert.ok(!causes.has(event.data.cause) && causes.add(event.data.cause), 'blocked twice for one cause');
          if (event.type === 'GiftUnblocked')
            assert.ok(causes.delete(event.data.cause), 'freed of what did not block it');
          if (['GiftRedeemed', 'GiftClaimed', 'VoucherAssigned'].includes(event.type))
            assert.equal(causes.size, 0, `${event.type} while blocked`);
          if (event.type === 'GiftRedeemed') {
            assert.equal(open, false, 'redeemed twice');
            assert.equal(gift.status, 'issued');
            assert.ok(!isExpired(gift.issued.expires_on, now));
            open = true;
          }
          if (event.type === 'GiftUnredeemed') {
            assert.equal(open, true, 'reversed what was not redeemed');
            open = false;
          }
          if (event.type === 'GiftCancelled') assert.equal(open, false, 'cancelled while redeemed');
          log.push(event);
        }
      });
      assert.ok(log.filter(({ type }) => type === 'VoucherAssigned').length <= 1);
      assert.ok(log.filter(({ type }) => type === 'GiftClaimed').length <= 1);
      const end = fold(
        giftAggregate,
        log.map((event) => happened(event)),
      ) as IssuedGift;
      assert.equal(end.status === 'redeemed', open);
      assert.deepEqual(new Set(end.blockedBy?.map(({ cause }) => cause)), causes);
    }),
  );
});

test('cancelling a key reverses what it redeemed, else voids it; a repeat does nothing', () => {
  given(giftAggregate, issued(), redeemed('r1')).when(cancelKey()).then(unredeemed('r1'));
  given(giftAggregate, issued(), redeemed('r1'), unredeemed('r1')).when(cancelKey()).then();
  given(giftAggregate, issued(), redeemed('r0')).when(cancelKey()).then(voided('r1'));
  given(giftAggregate, issued(), voided('r1')).when(cancelKey()).then();
});

test('a voided redemption is refused for good, and no other one', () => {
  given(giftAggregate, issued(), voided('r1')).when(at(soho)).refused('redemption_voided');
  given(giftAggregate, issued(), redeemed('r0'), voided('r1'), unredeemed('r0'))
    .when(at(soho))
    .refused('redemption_voided');
  given(giftAggregate, issued(), voided('r1'))
    .when(at(soho, {}, 'r2'))
    .then(redeemed('r2'));
});

test('knows a redemption by the command part of its id, at whatever time, and one with an older id', () => {
  const part = '6a1f0c92b7d34e58a0c1';
  const [id, later] = [`1a1fd9a99d0${part}`, `1a1fd9a99d1${part}`];
  for (const made of [id, part]) {
    given(giftAggregate, issued(), redeemed(made)).when(cancelKey({}, part)).then(unredeemed(made));
    given(giftAggregate, issued(), redeemed(made), unredeemed(made)).when(cancelKey({}, part)).then();
  }
  given(giftAggregate, issued(), redeemed(`${id.slice(0, -1)}0`))
    .when(cancelKey({}, part))
    .then(voided(part));
  for (const redemptionId of [id, later])
    given(giftAggregate, issued(), voided(part))
      .when(at(soho, {}, redemptionId))
      .refused('redemption_voided');
  given(giftAggregate, issued(), voided(part))
    .when(at(soho, {}, `${id.slice(0, -1)}0`))
    .then(redeemed(`${id.slice(0, -1)}0`));
});

test('cancelling a key asks who may reverse the redemption that it made', () => {
  const part = '6a1f0c92b7d34e58a0c1';
  const state = given(giftAggregate, issued(), redeemed(`1a1fd9a99d0${part}`)).state as IssuedGift;
  const others = till('cinema');
  assert.deepEqual(
    [mayCancel(state, till(), part), mayCancel(state, others, part), mayCancel(state, others, 'another')],
    [true, false, true],
  );
  given(giftAggregate, issued(), redeemed(`1a1fd9a99d0${part}`))
    .when(cancelKey({ caller: others }, part))
    .refused('cannot_unredeem');
});

test('reverses a redemption by its whole id only', () => {
  const part = '6a1f0c92b7d34e58a0c1';
  const id = `1a1fd9a99d0${part}`;
  given(giftAggregate, issued(), redeemed(id)).when(reverse(till(), id)).then(unredeemed(id));
  for (const named of [part, `1a1fd9a99d1${part}`])
    given(giftAggregate, issued(), redeemed(id)).when(reverse(till(), named)).refused('redemption_not_found');
  given(giftAggregate, issued(), redeemed(part)).when(reverse(till(), part)).then(unredeemed(part));
  given(giftAggregate, issued(), redeemed(part)).when(reverse(till(), id)).refused('redemption_not_found');
});

test('voids for whom may reverse, and only gifts that are paid for', () => {
  for (const caller of [bob, till('coffee', true, ['redeem']), till('coffee', false)])
    given(giftAggregate, issued()).when(cancelKey({ caller })).refused('cannot_unredeem');
  given(giftAggregate, issued())
    .when(cancelKey({ payment: 'pending' }))
    .refused('gift_not_paid');
  given(giftAggregate, issued())
    .when(cancelKey({ payment: 'declined' }))
    .refused('gift_cancelled');
});

test('a scheduled gift is released once, unless it was cancelled', () => {
  const scheduled = issued({ scheduled: true });
  const released = { type: 'GiftReleased', data: { transaction_id: 't' } } as const;
  const decided = (...events: GiftEvent[]): GiftEvent[] => release(given(giftAggregate, ...events).state as IssuedGift);
  assert.deepEqual(decided(scheduled), [released]);
  assert.deepEqual(decided(scheduled, redeemed('r')), [released], 'its receiver may look at it');
  assert.deepEqual(decided(scheduled, released), []);
  assert.deepEqual(decided(scheduled, { type: 'GiftCancelled', data: { reason: 'r' } }), []);
  assert.deepEqual(decided(issued()), []);
});

test.run();

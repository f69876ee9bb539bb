/** Support's actions and vouchers in the model of a gift, held against histories made by hand. */
import { suite } from 'uvu';
import { checkGifts } from './giftHistory.js';
import * as by from './handmade.js';
import { BOUGHT, BOUGHT_OPEN, again, getGift, gift, lost, redeem, refusal, seen } from './handmade.js';
import type { Observation } from './history.js';
import { judgedBy } from './judged.js';
import type { GiftOperation, Operation } from './operations.js';

const test = suite('support and vouchers in the model of a gift');

const { explained, wrong } = judgedBy((history) => checkGifts(history, by.INSTALLATION, { clockMs: 5 }));

const FIRST = seen('till', redeem(), [20, 30], by.redeemed('r1', 25));
const BLOCKED = refusal('gift_blocked');
const block: Operation = { kind: 'block', gift: 'g1' };
const unblock: Operation = { kind: 'unblock', gift: 'g1' };
const extend = (expiryDate: string): Operation => ({ kind: 'extend', gift: 'g1', expiryDate });
const reassign = (user: string): Operation => ({ kind: 'reassign', gift: 'g1', user });
const supportUnredeem: Operation = { kind: 'supportUnredeem', gift: 'g1' };
const replace: Operation = { kind: 'replace', gift: 'g1' };

/** The gift as support's actions answer it. */
const done = (more: object = {}): by.Said => ({
  status: 200,
  body: { data: { gift_id: 'g1', receiver_id: 'bob', expiry_date: '2027-03-06', replaced_by: null, ...more } },
});
const sue = (operation: Operation, times: by.Times, said: by.Said): Observation => seen('sue', operation, times, said);

test('redeems no blocked gift, and an unblocked one again', () => {
  const blocked = sue(block, [20, 30], done());
  explained(BOUGHT, blocked, seen('bob', redeem(), [31, 40], BLOCKED));
  explained(BOUGHT, blocked, sue(unblock, [31, 40], done()), seen('bob', redeem(), [41, 50], by.redeemed('r1', 45)));
  wrong([BOUGHT, blocked, seen('bob', redeem(), [31, 40], by.redeemed('r1', 35))], /gift is blocked/);
  wrong([BOUGHT, blocked, sue(unblock, [31, 40], done()), seen('bob', redeem(), [41, 50], BLOCKED)], /#3 .*redeem/);
  explained(
    BOUGHT,
    FIRST,
    sue(block, [31, 40], done()),
    seen('bob', redeem(), [41, 50], refusal('gift_already_redeemed')),
  );
});

test('lets nobody but support act so', () => {
  explained(BOUGHT, seen('till', block, [20, 30], refusal('forbidden')));
  wrong([BOUGHT, seen('till', block, [20, 30], done())], /#1 .*block/);
});

test('extends a gift only to a later day', () => {
  const invalid = refusal('invalid_expiry_date');
  explained(BOUGHT, sue(extend('2027-05-01'), [20, 30], done({ expiry_date: '2027-05-01' })));
  for (const day of ['2020-01-01', '2027-03-05', '2037-03-05']) {
    explained(BOUGHT, sue(extend(day), [20, 30], invalid));
    wrong([BOUGHT, sue(extend(day), [20, 30], done({ expiry_date: day }))], /#1 .*extend/);
  }
  explained(BOUGHT, sue(extend('2027-03-06'), [20, 30], done()));
  wrong([BOUGHT, sue(extend('2027-05-01'), [20, 30], invalid)], /#1 .*extend/);
});

test('redeems an extended gift until its new last day', () => {
  const march20 = Date.parse('2027-03-20T12:00:00Z') - by.START;
  const extended = sue(extend('2027-03-20'), [20, 30], done({ expiry_date: '2027-03-20' }));
  const late = seen('bob', redeem(), [march20, march20 + 10], by.redeemed('r1', march20));
  explained(BOUGHT, extended, late);
  wrong([BOUGHT, late], /#1 .*redeem/);
  const day = 86_400_000;
  explained(BOUGHT, extended, seen('bob', redeem(), [march20 + day, march20 + day + 10], refusal('gift_expired')));
});

test('gives a gift to another user, and takes it from the earlier one', () => {
  const given = sue(reassign('dan'), [20, 30], done({ receiver_id: 'dan' }));
  explained(BOUGHT, given, seen('bob', redeem(), [31, 40], refusal('cannot_redeem')));
  explained(BOUGHT, given, seen('dan', redeem(), [31, 40], by.redeemed('r1', 35)));
  explained(BOUGHT, given, seen('ann', getGift(), [31, 40], gift({ receiver_id: '' })));
  wrong([BOUGHT, given, seen('bob', redeem(), [31, 40], by.redeemed('r1', 35))], /Cannot redeem this gift/);
  wrong([BOUGHT, given, seen('ann', getGift(), [31, 40], gift())], /#2 .*getGift/);
  explained(BOUGHT, sue(reassign('sue'), [20, 30], refusal('staff_receives_no_gifts')));
  explained(BOUGHT, sue(reassign('no-one'), [20, 30], refusal('receiver_not_found')));
  explained(BOUGHT, sue(reassign('dan'), [20, 30], refusal('notification_pending', { 'retry-after': '1' })));
  explained(BOUGHT, FIRST, sue(reassign('dan'), [31, 40], refusal('gift_already_redeemed')));
  wrong([BOUGHT, FIRST, sue(reassign('dan'), [31, 40], done({ receiver_id: 'dan' }))], /#2 .*reassign/);
});

test('reverses a redemption for support, once', () => {
  const reversed = sue(supportUnredeem, [31, 40], done());
  explained(BOUGHT, FIRST, reversed, seen('bob', redeem(), [41, 50], by.redeemed('r2', 45)));
  explained(BOUGHT, FIRST, reversed, sue(supportUnredeem, [41, 50], refusal('gift_not_redeemed')));
  wrong([BOUGHT, reversed], /#1 .*supportUnredeem/);
  wrong([BOUGHT, FIRST, reversed, sue(supportUnredeem, [41, 50], done())], /#3 .*supportUnredeem/);
});

test('cancels a replaced gift, once its redemption is reversed', () => {
  const replaced = sue(replace, [31, 40], done({ replaced_by: 'g2' }));
  const cancelled = refusal('gift_cancelled');
  explained(BOUGHT, replaced, seen('bob', redeem(), [41, 50], cancelled));
  wrong([BOUGHT, replaced, seen('bob', redeem(), [41, 50], by.redeemed('r1', 45))], /gift is cancelled/);
  const shown = { gift_status: 'redeemed', status: 1, status_code: 'RE', redeemed_id: 'r1' };
  const reversal = seen('till', by.unredeem(), [51, 60], by.reversed('r1', 25, 55));
  explained(
    BOUGHT,
    FIRST,
    replaced,
    seen('ann', getGift(), [41, 50], gift(shown)),
    reversal,
    seen('bob', redeem(), [61, 70], cancelled),
  );
  explained(BOUGHT, replaced, sue(replace, [41, 50], refusal('gift_already_replaced')));
  wrong([BOUGHT, replaced, sue(replace, [41, 50], done({ replaced_by: 'g3' }))], /#2 .*replace/);
});

test('neither replaces nor reassigns an expired gift, redeemed or not', () => {
  const later = (ms: number): by.Times => [4 * 86_400_000 + ms, 4 * 86_400_000 + ms + 9];
  const expired = refusal('gift_expired');
  explained(BOUGHT, sue(replace, later(1), expired), sue(reassign('dan'), later(20), expired));
  explained(BOUGHT, FIRST, sue(replace, later(1), expired));
  wrong([BOUGHT, FIRST, sue(replace, later(1), done({ replaced_by: 'g2' }))], /#2 .*replace/);
  wrong([BOUGHT, sue(reassign('dan'), later(1), done({ receiver_id: 'dan' }))], /#1 .*reassign/);
});

/** The refund of the purchase, whose answer says which gifts it cancelled, and which stay since they are redeemed. */
const refund: Operation = { kind: 'refund', transaction: 't1', gifts: [] };
const refunded = (gifts: readonly string[], redeemedGifts: readonly string[] = []): by.Said => ({
  status: 200,
  body: {
    data: {
      id: 'f1',
      status: 'refunded',
      gift_ids: gifts,
      kept: { redeemed: redeemedGifts },
      amount: 350 * gifts.length,
    },
  },
});

test('cancels a gift that was refunded, unless it is redeemed', () => {
  const back = sue(refund, [31, 40], refunded(['g1']));
  explained(BOUGHT, back, seen('bob', redeem(), [41, 50], refusal('gift_cancelled')));
  wrong([BOUGHT, back, seen('bob', redeem(), [41, 50], by.redeemed('r1', 45))], /gift is cancelled/);
  explained(BOUGHT, FIRST, sue(refund, [31, 40], refunded([], ['g1'])));
  wrong([BOUGHT, sue(refund, [31, 40], refunded([], ['g1']))], /not refunded/);
  wrong([BOUGHT, FIRST, back], /None of these can come next/);
  const unknown = lost('sue', refund, 11);
  explained(BOUGHT, unknown, seen('bob', redeem(), [41, 50], refusal('gift_cancelled')));
  explained(BOUGHT, unknown, seen('bob', redeem(), [41, 50], by.redeemed('r1', 45)));
});

const makeVoucher = (more: object = {}): GiftOperation => ({ kind: 'makeVoucher', gift: 'g1', version: 2, ...more });
const getVoucher: GiftOperation = { kind: 'getVoucher', gift: 'g1' };
const v2 = (code: string): by.Said => ({
  status: 200,
  body: { giftId: 'g1', segment: { id: 'seg' }, data: [{ type: 'qr', label: '', value: code }] },
});
const v1 = (code: string): by.Said => {
  const { data } = gift({ voucher_id: 'v1' }).body as { readonly data: object };
  const voucher = { id: 'v1', code, gift_id: 'g1', segment_id: 'seg' };
  return { status: 200, body: { data, embedded: { vouchers: [voucher] } } };
};

test('gives a gift one voucher with one code', () => {
  const made = seen('bob', makeVoucher({ key: 'k' }), [20, 30], v2('ABC'));
  explained(
    BOUGHT,
    made,
    seen('till', makeVoucher(), [31, 40], v2('ABC')),
    seen('bob', getVoucher, [31, 40], v2('ABC')),
  );
  explained(BOUGHT, made, seen('bob', makeVoucher({ key: 'k' }), [31, 40], again(v2('ABC'))));
  explained(BOUGHT, made, seen('bob', makeVoucher({ version: 1 }), [31, 40], v1('ABC')));
  wrong([BOUGHT, made, seen('till', makeVoucher(), [31, 40], v2('XYZ'))], /#2 .*makeVoucher/);
  wrong([BOUGHT, made, seen('bob', makeVoucher({ version: 1 }), [31, 40], v1('XYZ'))], /#2 .*makeVoucher/);
  wrong([BOUGHT, made, seen('bob', getVoucher, [31, 40], refusal('voucher_not_found'))], /#2 .*getVoucher/);
  wrong([BOUGHT, seen('bob', getVoucher, [31, 40], v2('ABC'))], /Voucher not found/);
  wrong([BOUGHT, made, seen('ann', getGift(), [31, 40], gift())], /#2 .*getGift/);
});

test('gives codes only to those who may redeem, of a gift that can be used', () => {
  explained(BOUGHT, seen('ann', makeVoucher(), [20, 30], refusal('cannot_redeem')));
  wrong([BOUGHT, seen('ann', makeVoucher(), [20, 30], v2('ABC'))], /Cannot redeem this gift/);
  explained(BOUGHT_OPEN, seen('ann', makeVoucher(), [20, 30], v2('ABC')));
  explained(BOUGHT, FIRST, seen('bob', makeVoucher(), [31, 40], refusal('gift_already_redeemed')));
  wrong([BOUGHT, FIRST, seen('bob', makeVoucher(), [31, 40], v2('ABC'))], /gift already redeemed/);
  explained(BOUGHT, seen('bob', makeVoucher({ segment: 'other' }), [20, 30], refusal('invalid_segment')));
  wrong([BOUGHT, seen('bob', makeVoucher({ segment: 'other' }), [20, 30], v2('ABC'))], /Invalid segment/);
  wrong([BOUGHT, seen('bob', makeVoucher(), [20, 30], refusal('voucher_not_available'))], /#1 .*makeVoucher/);
});

test('does not give a gift with a voucher to another user', () => {
  const made = seen('bob', makeVoucher(), [20, 30], v2('ABC'));
  explained(BOUGHT, made, sue(reassign('dan'), [31, 40], refusal('gift_has_voucher')));
  wrong([BOUGHT, made, sue(reassign('dan'), [31, 40], done({ receiver_id: 'dan' }))], /#2 .*reassign/);
  explained(BOUGHT, made, sue(replace, [31, 40], refusal('gift_code_out')));
});

test.run();

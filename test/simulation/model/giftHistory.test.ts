/** The model of a gift, held against histories made by hand: those that the documents explain, and those they don't. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { checkGifts } from './giftHistory.js';
import type { Observation } from './history.js';
import * as by from './handmade.js';
import { BOUGHT, again, getGift, gift, lost, page, redeem, redemption, refusal, seen } from './handmade.js';
import { judgedBy } from './judged.js';

const test = suite('the model of a gift');

const check = (history: readonly Observation[]) => checkGifts(history, by.INSTALLATION, { clockMs: 5 });
const { explained, wrong } = judgedBy(check);

const MADE = by.redeemed('r1', 25);
const FIRST = seen('till', redeem({ key: 'k1' }), [20, 30], MADE);
const ALREADY = refusal('gift_already_redeemed');

test('explains one redemption of several at once', () => {
  explained(BOUGHT, FIRST, seen('bob', redeem(), [15, 40], ALREADY), seen('bob', redeem(), [31, 40], ALREADY));
});

test('finds a gift that is redeemed twice', () => {
  wrong(
    [BOUGHT, FIRST, seen('bob', redeem(), [22, 33], by.redeemed('r2', 26))],
    /None of these can come next:\n.* redeem /,
  );
});

test('finds a refusal before any redemption', () => {
  wrong([BOUGHT, seen('bob', redeem(), [11, 19], ALREADY), FIRST], /gift already redeemed/);
});

test('finds a look-up that is older than an answered redemption', () => {
  explained(BOUGHT, FIRST, seen('ann', getGift(), [25, 35], gift()));
  explained(BOUGHT, FIRST, seen('ann', getGift(), [25, 35], gift(REDEEMED)));
  wrong([BOUGHT, FIRST, seen('ann', getGift(), [31, 35], gift())], /#2 .*getGift/);
});

test('lets a request that did not arrive in time have an effect, or none', () => {
  const late = seen('till', redeem(), [20, 30], refusal('request_timed_out'));
  explained(BOUGHT, late, seen('ann', getGift(), [31, 35], gift()));
  explained(BOUGHT, late, seen('ann', getGift(), [31, 35], gift(REDEEMED)));
});

test('finds a look-up that goes back', () => {
  const unknown = lost('till', redeem(), 20);
  explained(
    BOUGHT,
    unknown,
    seen('ann', getGift(), [31, 35], gift()),
    seen('ann', getGift(), [36, 40], gift(REDEEMED)),
  );
  wrong(
    [BOUGHT, unknown, seen('ann', getGift(), [31, 35], gift(REDEEMED)), seen('ann', getGift(), [36, 40], gift())],
    /#3 .*getGift/,
  );
});

const REDEEMED = { gift_status: 'redeemed', status: 1, status_code: 'RE', redeemed_id: 'r1' };

test('finds the id of a redemption that nobody made', () => {
  wrong([BOUGHT, FIRST, seen('ann', getGift(), [31, 35], gift({ ...REDEEMED, redeemed_id: 'r9' }))], /"r9"/);
  const unknown = lost('till', redeem(), 20);
  const other = { ...REDEEMED, redeemed_id: 'r9' };
  wrong(
    [BOUGHT, unknown, seen('ann', getGift(), [31, 35], gift(REDEEMED)), seen('ann', getGift(), [36, 40], gift(other))],
    /#3 .*getGift/,
  );
});

test('explains a request of unknown outcome by an effect at any time, or none', () => {
  explained(BOUGHT, lost('till', redeem(), 20), seen('bob', redeem(), [30, 40], by.redeemed('r2', 35)));
  explained(BOUGHT, lost('till', redeem(), 20), seen('bob', redeem(), [30, 40], ALREADY));
  const unavailable = seen('till', redeem(), [20, 30], refusal('unavailable', { 'retry-after': '1' }));
  explained(
    BOUGHT,
    unavailable,
    seen('bob', redeem(), [31, 40], by.redeemed('r2', 35)),
    seen('bob', getGift(), [50, 60], gift({ ...REDEEMED, redeemed_id: 'r2' })),
  );
});

test('finds a second effect of a request of unknown outcome', () => {
  const reversal = seen('till', by.unredeem(), [30, 40], by.reversed('r1', 25, 35));
  const history = [BOUGHT, lost('till', redeem({ key: 'k1' }), 20), reversal];
  explained(...history, seen('bob', getGift(), [50, 60], gift()));
  wrong([...history, seen('bob', redeem(), [50, 60], ALREADY)], /#3 .*redeem/);
});

test('lets a key be refused for another request while one holds it that decides nothing', () => {
  const reused = refusal('idempotency_key_reused');
  const away = (from: number, to: number) => seen('till', redeem({ key: 'k1' }), [from, to], refusal('unavailable'));
  const other = (from: number, to: number) =>
    seen('till', redeem({ key: 'k1', location: 'elsewhere' }), [from, to], reused);
  const decided = seen('till', redeem({ key: 'k1' }), [50, 60], by.redeemed('r1', 55));
  explained(BOUGHT, away(20, 40), other(25, 30), decided);
  wrong([BOUGHT, away(20, 24), other(25, 30), decided], /already used with another request/);
});

test('explains the reversal of a redemption by an id that no answer has named, once', () => {
  const made = lost('till', redeem({ key: 'k1' }), 20);
  const reversal = seen('till', by.unredeem('r1'), [30, 40], by.reversed('r1', 25, 35));
  explained(BOUGHT, made, reversal);
  wrong([BOUGHT, made, reversal, seen('till', by.unredeem('r2'), [41, 50], by.reversed('r2', 25, 45))], /unredeem/);
});

const REVERSAL = seen('till', by.unredeem('r1'), [40, 50], by.reversed('r1', 25, 45));

test('explains a reversal, and a redemption after it', () => {
  explained(BOUGHT, FIRST, REVERSAL, seen('bob', redeem(), [51, 60], by.redeemed('r2', 55)));
});

test('finds a redemption that was reversed twice, or never made', () => {
  wrong(
    [BOUGHT, FIRST, REVERSAL, seen('till', by.unredeem('r1'), [51, 60], by.reversed('r1', 25, 55))],
    /#3 .*unredeem/,
  );
  wrong([BOUGHT, REVERSAL], /#1 .*unredeem/);
  explained(BOUGHT, FIRST, REVERSAL, seen('till', by.unredeem(), [51, 60], refusal('gift_not_redeemed')));
  explained(BOUGHT, seen('till', by.unredeem(), [51, 60], refusal('gift_not_found')));
  explained(BOUGHT, seen('till', by.unredeem('r7'), [51, 60], refusal('redemption_not_found')));
});

test('replays the outcome of a key, and finds a second one', () => {
  const repeat = redeem({ key: 'k1' });
  explained(BOUGHT, FIRST, REVERSAL, seen('till', repeat, [60, 70], again(MADE)));
  wrong([BOUGHT, FIRST, REVERSAL, seen('till', repeat, [60, 70], by.redeemed('r2', 65))], /#3 .*redeem/);
  const refused = seen('bob', redeem({ key: 'k2' }), [31, 35], ALREADY);
  explained(BOUGHT, FIRST, refused, REVERSAL, seen('bob', redeem({ key: 'k2' }), [60, 70], again(ALREADY)));
  wrong([BOUGHT, FIRST, refused, REVERSAL, seen('bob', redeem({ key: 'k2' }), [60, 70], by.redeemed('r2', 65))], /#4 /);
});

test('finds an answer that is said to be a replay of nothing', () => {
  wrong([BOUGHT, seen('till', redeem({ key: 'k1' }), [20, 30], again(MADE))], /#1 .*replayed/);
});

const VOID: by.Said = { status: 200, body: { data: { ...redemption('v1', 25, { reversed: 25 }), location_id: null } } };
const CANCEL = by.unredeem('key:k1');

test('explains a cancelled key, and finds that it redeems all the same', () => {
  const cancelled = seen('till', CANCEL, [20, 30], VOID);
  explained(BOUGHT, cancelled, seen('till', redeem({ key: 'k1' }), [31, 40], refusal('redemption_voided')));
  explained(BOUGHT, cancelled, seen('till', by.lookUp('k1'), [31, 40], by.keyIs('k1', { status: 'void' })));
  wrong([BOUGHT, cancelled, seen('till', redeem({ key: 'k1' }), [31, 40], by.redeemed('r1', 35))], /Redemption voided/);
  const elsewhere = redeem({ key: 'k1', location: 'nowhere' });
  explained(BOUGHT, cancelled, seen('till', elsewhere, [31, 40], refusal('redemption_voided')));
  wrong([BOUGHT, cancelled, seen('till', elsewhere, [31, 40], refusal('invalid_location'))], /Redemption voided/);
  wrong(
    [
      BOUGHT,
      seen('till', redeem({ key: 'k1' }), [11, 40], MADE),
      cancelled,
      seen('ann', getGift(), [50, 60], gift(REDEEMED)),
    ],
    /None of these/,
  );
  explained(BOUGHT, FIRST, seen('till', CANCEL, [40, 50], by.reversed('r1', 25, 45)));
  explained(BOUGHT, FIRST, REVERSAL, seen('till', CANCEL, [60, 70], by.reversed('r1', 25, 45)));
});

test('explains what a key is said to have done, and finds it said wrongly', () => {
  const done = by.keyIs('k1', { status: 'done', redemption: redemption('r1', 25) });
  const unseen = by.keyIs('k1', { status: 'unseen' });
  explained(
    BOUGHT,
    seen('till', by.lookUp('k1'), [11, 15], unseen),
    FIRST,
    seen('till', by.lookUp('k1'), [31, 40], done),
  );
  explained(
    BOUGHT,
    seen('bob', by.lookUp('k1'), [11, 15], unseen),
    FIRST,
    seen('bob', by.lookUp('k1'), [31, 40], unseen),
  );
  wrong([BOUGHT, FIRST, seen('till', by.lookUp('k1'), [31, 40], unseen)], /#2 .*lookUpKey/);
  wrong([BOUGHT, FIRST, REVERSAL, seen('till', by.lookUp('k1'), [60, 70], done)], /#3 .*lookUpKey/);
});

test('lists redemptions, the latest first', () => {
  const second = seen('bob', redeem(), [51, 60], by.redeemed('r2', 55));
  const [old, latest] = [redemption('r1', 25, { reversed: 45 }), redemption('r2', 55)];
  explained(BOUGHT, FIRST, REVERSAL, second, seen('ann', by.listRedemptions, [61, 70], page(latest, old)));
  for (const bad of [page(old, latest), page(latest), page(latest, redemption('r1', 25)), page(latest, old, old)])
    wrong([BOUGHT, FIRST, REVERSAL, second, seen('ann', by.listRedemptions, [61, 70], bad)], /#4 .*listRedemptions/);
});

test('redeems no gift before it is paid for', () => {
  const pending = seen('ann', by.purchase(), [0, 10], by.transaction({ status: 'pending' }));
  const notPaid = refusal('gift_not_paid', { 'retry-after': '1' });
  explained(pending, seen('bob', redeem(), [20, 30], notPaid), seen('bob', redeem(), [31, 40], by.redeemed('r1', 35)));
  wrong([BOUGHT, seen('bob', redeem(), [20, 30], notPaid)], /#1 .*redeem/);
  wrong([pending, seen('bob', redeem(), [20, 30], refusal('gift_not_paid'))], /#1 .*redeem/);
  wrong(
    [
      pending,
      seen('bob', redeem(), [20, 30], by.redeemed('r1', 25)),
      seen('bob', getGift(), [31, 40], gift({ gift_status: 'pending', status: 2, status_code: 'PE' })),
    ],
    /#2 .*getGift/,
  );
});

/** Of a gift that is bought on 4 March and valid for 2 days, the 6th is the last one. */
const LAST_DAY = Date.parse('2027-03-06T23:59:59.000Z') - by.START;

test('redeems no gift after its last valid day', () => {
  const expired = refusal('gift_expired');
  explained(BOUGHT, seen('bob', redeem(), [LAST_DAY, LAST_DAY + 10], by.redeemed('r1', LAST_DAY + 5)));
  explained(BOUGHT, seen('bob', redeem(), [LAST_DAY, LAST_DAY + 2_000], expired));
  explained(BOUGHT, seen('bob', redeem(), [LAST_DAY + 2_000, LAST_DAY + 2_010], expired));
  wrong([BOUGHT, seen('bob', redeem(), [LAST_DAY, LAST_DAY + 10], expired)], /#1 .*redeem/);
  wrong(
    [BOUGHT, seen('bob', redeem(), [LAST_DAY + 2_000, LAST_DAY + 2_010], by.redeemed('r1', LAST_DAY))],
    /#1 .*redeem/,
  );
  const shown = gift({ is_expired: true });
  explained(BOUGHT, seen('bob', getGift(), [LAST_DAY + 2_000, LAST_DAY + 2_010], shown));
  wrong([BOUGHT, seen('bob', getGift(), [20, 30], shown)], /#1 .*getGift/);
});

test('lets processes differ about the day around midnight, where their clocks do', () => {
  const midnight = LAST_DAY + 1_000;
  const expired = refusal('gift_expired');
  const at = (ms: number): [number, number] => [midnight + ms, midnight + ms + 1];
  const history = [
    BOUGHT,
    seen('bob', redeem(), at(-4), expired),
    seen('bob', getGift(), at(-2), gift()),
    seen('bob', redeem(), at(3), by.redeemed('r1', midnight + 3)),
  ];
  const skewed = { clockMs: 5, skewMs: 5 };
  assert.deepEqual(checkGifts(history, by.INSTALLATION, skewed), []);
  wrong(history, /#2 .*getGift/);
  for (const early of [history[1], seen('bob', getGift(), at(-2), gift({ is_expired: true }))])
    assert.deepEqual(checkGifts([BOUGHT, early ?? BOUGHT], by.INSTALLATION, skewed), []);
  const late = seen('bob', getGift(), at(6), gift());
  assert.match(checkGifts([BOUGHT, late], by.INSTALLATION, skewed)[0]?.text ?? '', /#1 .*getGift/);
});

test('finds an answer for a gift that nobody bought', () => {
  explained(seen('till', redeem(), [20, 30], refusal('gift_not_found')));
  wrong([seen('till', redeem(), [20, 30], MADE)], /No purchase bought this gift/);
});

test('shortens a long history to what does not fit', () => {
  const reads = Array.from({ length: 60 }, (_, index) =>
    seen('bob', getGift(), [100 + index * 10, 105 + index * 10], gift()),
  );
  const [finding] = check([BOUGHT, ...reads, seen('bob', redeem(), [900, 910], ALREADY)]);
  assert.match(finding?.text ?? '', /Explained, in this order:\n {2}happens: .*charged.*\nThe state then/);
  assert.match(finding?.text ?? '', /gift already redeemed/);
});

test.run();

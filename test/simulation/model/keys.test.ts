/** Idempotency keys, held against histories made by hand. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import * as by from './handmade.js';
import { again, redeem, refusal, seen } from './handmade.js';
import type { Observation } from './history.js';
import { checkKeys } from './keys.js';

const test = suite('idempotency keys in a history');

const LEEWAY = { clockMs: 5 };
const explained = (...history: readonly Observation[]): void => assert.deepEqual(checkKeys(history, LEEWAY), []);
function wrong(what: RegExp, ...history: readonly Observation[]): void {
  const findings = checkKeys(history, LEEWAY);
  assert.equal(findings.length, 1);
  assert.match(findings[0]?.text ?? '', what);
}

const MADE = by.redeemed('r1', 25);
const KEYED = redeem({ key: 'k1' });
const FIRST = seen('till', KEYED, [20, 30], MADE);

test('explains replays', () => {
  explained(FIRST, seen('till', KEYED, [40, 50], again(MADE)), seen('till', KEYED, [41, 50], again(MADE)));
  explained(seen('till', redeem(), [20, 30], MADE), seen('till', redeem(), [20, 30], by.redeemed('r2', 25)));
});

test('finds two outcomes of one key', () => {
  wrong(/several outcomes/, FIRST, seen('till', KEYED, [40, 50], again(by.redeemed('r2', 25))));
  wrong(/several outcomes/, FIRST, seen('till', KEYED, [40, 50], refusal('gift_already_redeemed')));
  explained(FIRST, seen('bob', KEYED, [40, 50], refusal('gift_already_redeemed')));
});

test('finds that no answer says that it is a replay', () => {
  wrong(/decided several times/, FIRST, seen('till', KEYED, [40, 50], MADE));
});

test('lets a key be decided again after a refusal that it does not keep', () => {
  explained(seen('till', KEYED, [10, 15], refusal('gift_not_paid', { 'retry-after': '1' })), FIRST);
  explained(seen('till', KEYED, [10, 15], refusal('unavailable', { 'retry-after': '1' })), FIRST);
});

test('finds a request that is said to be in progress, and is not', () => {
  const busy = refusal('request_in_progress', { 'retry-after': '1' });
  explained(FIRST, seen('till', KEYED, [25, 28], busy));
  explained(by.lost('till', KEYED, 20), seen('till', KEYED, [90, 95], busy));
  wrong(/No other request/, FIRST, seen('till', KEYED, [40, 50], busy));
  wrong(/No other request/, FIRST, seen('bob', KEYED, [25, 28], busy));
});

test('allows for a store of answers that fails: a key held for longer, and a purchase as it is now', () => {
  const leeway = { ...LEEWAY, answersLostMs: 30 };
  const busy = refusal('request_in_progress', { 'retry-after': '1' });
  assert.deepEqual(checkKeys([FIRST, seen('till', KEYED, [55, 58], busy)], leeway), []);
  assert.equal(checkKeys([FIRST, seen('till', KEYED, [61, 65], busy)], leeway).length, 1);
  const bought = (answer: Parameters<typeof seen>[3]) => seen('ann', by.purchase({ key: 'k1' }), [40, 50], answer);
  const pending = bought({ status: 201, headers: {}, body: { data: { id: 't1', status: 'pending' } } });
  const declined = (id: string) => bought(again(refusal('payment_declined', { 'transaction-id': id })));
  assert.deepEqual(checkKeys([pending, declined('t1')], leeway), []);
  assert.equal(checkKeys([pending, declined('t2')], leeway).length, 1);
  assert.equal(checkKeys([pending, declined('t1')], LEEWAY).length, 1);
  const other = again(by.redeemed('r2', 25));
  assert.equal(checkKeys([FIRST, seen('till', KEYED, [40, 50], other)], leeway).length, 1);
});

test('finds a key that is said to be used with another request, and is not', () => {
  const reused = refusal('idempotency_key_reused');
  explained(FIRST, seen('till', redeem({ key: 'k1', location: 'elsewhere' }), [40, 50], reused));
  wrong(/is the same/, FIRST, seen('till', KEYED, [40, 50], reused));
  explained(by.BOUGHT, seen('ann', by.purchase({ product: 'any' }), [40, 50], reused));
  wrong(/is the same/, by.BOUGHT, seen('ann', by.purchase(), [40, 50], reused));
});

test.run();

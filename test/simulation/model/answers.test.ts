/** The rules of every answer, held against answers made by hand. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { checkAnswers } from './answers.js';
import { ERRORS, errorTable } from './errorTable.js';
import * as by from './handmade.js';
import { redeem, refusal, seen } from './handmade.js';
import type { Observation } from './history.js';

const test = suite('answers in a history');

const findings = (observation: Observation): string =>
  checkAnswers([observation], { clockMs: 100 })
    .map(({ text }) => text)
    .join('\n');

test('explains errors as the table has them', () => {
  assert.equal(findings(seen('till', redeem(), [0, 10], refusal('gift_already_redeemed'))), '');
  assert.equal(findings(seen('till', redeem(), [0, 10], refusal('unavailable', { 'retry-after': '1' }))), '');
  assert.equal(findings(by.lost('till', redeem(), 0)), '');
});

test('finds errors that are not as the table has them', () => {
  const blocked = refusal('gift_blocked');
  const { headers = {} } = blocked;
  const cases: readonly (readonly [RegExp, by.Said])[] = [
    [/unforeseen/, refusal('internal')],
    [/carries the header Error-Code/, { ...blocked, headers: {} }],
    [/has no code gift_lost/, { ...blocked, headers: { ...headers, 'error-code': 'gift_lost' } }],
    [/has the status 405/, { ...blocked, status: 403 }],
    [/has the message/, { ...blocked, body: { error: 'gift is blocked' } }],
    [/body of an error/, { ...blocked, body: 'gift is blocked.' }],
    [/carries Allow/, { ...blocked, headers: { 'error-code': 'gift_blocked' } }],
    [/carries Retry-After/, refusal('unavailable')],
    [/carries Retry-After/, refusal('too_many_requests')],
  ];
  for (const [what, said] of cases) assert.match(findings(seen('till', redeem(), [0, 10], said)), what);
});

test('finds a time that is not that of the request', () => {
  const at = (ms: number): Observation => seen('till', redeem(), [1_000, 2_000], by.redeemed('r1', ms));
  assert.equal(findings(at(1_500)), '');
  assert.equal(findings(at(901)), '');
  assert.match(findings(at(890)), /before the request was sent/);
  assert.match(findings(at(2_101)), /after the answer came/);
  assert.match(findings(seen('till', redeem(), [0, 1], { status: 201, body: {} })), /is not a time/);
  assert.equal(findings(seen('till', redeem(), [5_000, 5_010], by.again(by.redeemed('r1', 10)))), '');
  assert.match(findings(seen('till', by.unredeem(), [5_000, 5_010], by.reversed('r1', 10, 20))), /before the request/);
  assert.equal(findings(seen('till', by.unredeem('key:k'), [5_000, 5_010], by.reversed('r1', 10, 20))), '');
  assert.match(findings(seen('ann', by.purchase(), [9_000, 9_010], by.transaction())), /before the request/);
});

test('finds a purchase that is answered as pending before the wait for its charge is over', () => {
  const findingsOf = (status: string, ms: number, said = by.transaction({ status })): number =>
    checkAnswers([seen('ann', by.purchase(), [0, ms], said)], { clockMs: 1e12, chargeWaitMs: 2_000 }).length;
  assert.equal(findingsOf('pending', 1_999), 1);
  assert.equal(findingsOf('pending', 2_000), 0);
  assert.equal(findingsOf('charged', 1_999), 0);
  assert.equal(findingsOf('pending', 1_999, by.again(by.transaction({ status: 'pending' }))), 0);
});

test('reads the table of errors of the documents', () => {
  assert.deepEqual(ERRORS.get('gift_blocked'), { status: 405, message: 'gift is blocked.', kept: true });
  assert.deepEqual(ERRORS.get('gift_not_paid'), { status: 405, message: 'gift is not paid for yet.', kept: false });
  assert.equal(ERRORS.get('schema')?.message, undefined);
  assert.throws(() => errorTable('# Errors'), /no table/);
});

test.run();

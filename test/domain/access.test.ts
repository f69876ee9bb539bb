import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { accessStream, foundBy, subjectOfCall } from '../../src/domain/access.js';

const test = suite('domain/access');
const GIFT = '0123456789abcdef0123';

const about = (asked: Readonly<Record<string, unknown>>): string | undefined => subjectOfCall({ asked });

test('the records of a day (UTC) are in one stream', () => {
  assert.is(accessStream('2026-03-01T23:59:59.999Z'), 'access-2026-03-01');
});

test('a call is about the gift that it names, else about its transaction, else about the parked work', () => {
  assert.is(about({ giftId: GIFT }), GIFT);
  assert.is(about({ gift: GIFT }), GIFT);
  assert.is(about({ giftId: GIFT, transactionId: 't' }), GIFT);
  assert.is(about({ gift: 'SJRXWAB31KPN936T', transactionId: 't' }), 't');
  assert.is(about({ transactionId: 't', personId: 'ann' }), 't');
  assert.is(about({ parkedId: 'work' }), 'work');
  assert.is(about({ parkedId: 'work', transactionId: 't' }), 't');
});

test('a call is about a person, or about all whom its search found', () => {
  assert.is(about({ personId: 'ann' }), 'user-ann');
  assert.is(about({ person: 'phone:h' }), 'phone-h');
  assert.is(about({ person: 'ann', found: ['bob'] }), 'user-ann');
  assert.is(about({ found: ['ann', 'phone:h'] }), 'user-ann\0phone-h');
});

test('a call is about nothing in particular where it names nothing, or found nobody', () => {
  assert.is(about({}), undefined);
  assert.is(about({ from: '2026-03-01', limit: 10 }), undefined);
  assert.is(about({ found: [] }), undefined);
  assert.is(about({ giftId: 7 }), undefined);
  assert.equal(foundBy({}), []);
});

test.run();

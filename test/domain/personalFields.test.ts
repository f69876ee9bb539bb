import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { keyedHash } from '../../src/domain/keyedHash.js';
import {
  keepsText,
  lookupOf,
  paymentMethodSubject,
  PERSONAL_FIELDS,
  type PersonName,
  phoneSubject,
  purchaseSubject,
  supportTextSubject,
  usernameSubject,
  userSubject,
} from '../../src/domain/personalFields.js';
import { smsMarker } from '../../src/domain/recordKeys.js';

const test = suite('domain/personal fields');
const GIFT = '0123456789abcdef0123';

const subjectOf = (type: keyof typeof PERSONAL_FIELDS, stream: string, data: object = {}): PersonName | undefined =>
  PERSONAL_FIELDS[type].subjectOf(stream, data);

test('subjects of different kinds are found apart, though the same text names them', () => {
  const subjects = [
    userSubject('x'),
    paymentMethodSubject('x'),
    phoneSubject('x'),
    usernameSubject('x'),
    purchaseSubject('x'),
    supportTextSubject('x'),
  ];
  const found = subjects.map((subject) => lookupOf(keyedHash(Buffer.alloc(32, 7)), subject));
  assert.is(new Set(found).size, subjects.length);
  const kinds = ['user', 'paymentMethod', 'phone', 'username', 'purchase', 'supportText'];
  assert.equal(
    subjects,
    kinds.map((kind) => ({ kind, text: 'x' })),
  );
  assert.equal(
    subjects.filter(({ kind }) => keepsText(kind)).map(({ kind }) => kind),
    ['phone', 'username'],
  );
});

test('fields of a user and of a payment method are under the key of their stream', () => {
  assert.equal(subjectOf('UserAdded', 'user-ann-2'), userSubject('ann-2'));
  assert.equal(subjectOf('PaymentMethodChanged', 'paymentMethod-pm'), paymentMethodSubject('pm'));
  assert.equal(subjectOf('PaymentMethodRetired', 'paymentMethod-pm', { reason: 'gone' }), paymentMethodSubject('pm'));
});

test('the reason that retires an erased user is not encrypted, since no key is left', () => {
  assert.equal(subjectOf('UserRetired', 'user-ann', { reason: 'left the country' }), userSubject('ann'));
  assert.is(subjectOf('UserRetired', 'user-ann', { reason: 'erasure' }), undefined);
});

test('reasons of support are under the key of what they are about', () => {
  assert.equal(subjectOf('GiftReassigned', `gift-${GIFT}`), supportTextSubject(GIFT));
  assert.equal(subjectOf('RefundRequested', 'transaction-t'), supportTextSubject('t'));
  assert.equal(subjectOf('GiftBlocked', `gift-${GIFT}`, { cause: 'support:1' }), supportTextSubject(GIFT));
  assert.is(subjectOf('GiftBlocked', `gift-${GIFT}`, { cause: 'dispute:d' }), undefined, 'the provider’s code');
});

test('reasons for parked work are about its transaction, those for messages about the gift', () => {
  const work = { entity: GIFT, transaction_id: 't' };
  assert.equal(subjectOf('WorkDiscarded', 'parked-notification', work), supportTextSubject(GIFT));
  assert.equal(subjectOf('WorkRetried', 'parked-refund', work), supportTextSubject('t'));
});

test('reasons of calls are about whom the call is about, and clear where it is about nobody', () => {
  const shown = (reason: string | null, asked: object): PersonName | undefined =>
    subjectOf('RecordsShown', 'access-2026-03-01', { reason, asked });
  assert.equal(shown('she asked', { personId: 'ann' }), supportTextSubject('user-ann'));
  assert.equal(shown('he asked', { giftId: GIFT }), supportTextSubject(GIFT));
  assert.is(shown('the audit of March', { from: '2026-03-01' }), undefined);
  assert.is(shown(null, { personId: 'ann' }), undefined);
});

test('markers of messages to a number, and by a buyer, are apart', () => {
  assert.is.not(smsMarker('number', 'x'), smsMarker('buyer', 'x'));
  assert.ok(smsMarker('number', 'x').includes('/x/'));
});

test.run();

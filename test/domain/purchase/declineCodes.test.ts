import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DECLINE_CODES, declineCodeOf } from '../../../src/domain/purchase/declineCodes.js';

const test = suite('domain/purchase/decline codes');

test('a buyer is told the codes that they can do something about', () => {
  for (const code of ['insufficient_funds', 'expired_card', 'incorrect_cvc', 'authentication_required'])
    assert.is(declineCodeOf(code), code);
});

test('codes that mean the same to a buyer are told as one', () => {
  assert.is(declineCodeOf('invalid_cvc'), 'incorrect_cvc');
  assert.is(declineCodeOf('issuer_not_available'), 'try_again_later');
  assert.is(declineCodeOf('payment_intent_authentication_failure'), 'authentication_required');
});

test('who holds a reported card learns no more than that it was declined', () => {
  for (const code of ['lost_card', 'stolen_card', 'fraudulent', 'toString', '', undefined])
    assert.is(declineCodeOf(code), 'generic_decline', String(code));
});

test('each code says what the buyer can do', () => {
  for (const [code, advice] of Object.entries(DECLINE_CODES)) assert.match(advice, /^(pay|enter|buy) /, code);
});

test.run();

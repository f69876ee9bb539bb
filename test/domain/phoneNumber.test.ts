import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { normalisePhoneNumber } from '../../src/domain/phoneNumber.js';

const test = suite('domain/phoneNumber');

test('numbers are British where they name no country, and kept in E.164', () => {
  for (const text of ['07400 123456', '+447400123456', '0044 7400 123456', '(07400) 123-456']) assert.is(normalisePhoneNumber(text), '+447400123456', text);
  assert.is(normalisePhoneNumber('+1 213 373 4253'), '+12133734253');
});

test('numbers kept for films and examples are taken', () => {
  assert.is(normalisePhoneNumber('07700 900123'), '+447700900123');
});

test('what is no whole number is refused', () => {
  for (const text of ['', '1', '0740012345', 'x07400123456', '07400123456 ext 5', 'tel:07400123456', '+447700900', '+44', '0'.repeat(50), '07400123456\0', '+99912345678']) {
    assert.is(normalisePhoneNumber(text), undefined, text);
  }
});

test.run();

import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { normalisePhoneNumber, readPhoneNumber } from '../../src/domain/phoneNumber.js';

const test = suite('domain/phoneNumber');

test('reads numbers without a country as British, and returns E.164', () => {
  const spaced = `07400${' '.repeat(29)}123456`;
  for (const text of ['07400 123456', '+447400123456', '0044 7400 123456', '(07400) 123-456', spaced])
    assert.is(normalisePhoneNumber(text), '+447400123456', text);
  assert.is(normalisePhoneNumber('+1 213 373 4253'), '+12133734253');
});

test('reads numbers of links and contact cards', () => {
  for (const text of ['tel:+44-7400-123456', 'TEL:07400123456', ' tel:7400123456;phone-context=+44\r\n'])
    assert.is(normalisePhoneNumber(text), '+447400123456', text);
});

test('accepts numbers for films, examples and tests', () => {
  assert.is(normalisePhoneNumber('+1 500 555 0001'), '+15005550001');
  assert.is(normalisePhoneNumber('07700 900123'), '+447700900123');
});

test('refuses a number that is not whole', () => {
  for (const text of [
    '',
    '1',
    '0740012345',
    'x07400123456',
    '07400123456 ext 5',
    'tel:',
    'tel:tel:07400123456',
    '07400tel:123456',
    `07400${' '.repeat(30)}123456`,
    '+4477009001234',
    'tel:+44-7400-123456;ext=5',
    'sip:07400123456',
    '+447700900',
    '+44',
    '0'.repeat(50),
    '07400123456\0',
    '+99912345678',
  ]) {
    assert.is(normalisePhoneNumber(text), undefined, text);
  }
});

test('numbers that no plan assigns are refused, though their length is right', () => {
  for (const text of ['+3538501234560', '+491512345678', '+861380013', '+551161234567', '+33700000000'])
    assert.is(normalisePhoneNumber(text), undefined, text);
  for (const text of ['+353850123456', '+4915123456789', '+8613800138000', '+5511961234567'])
    assert.is(normalisePhoneNumber(text), text);
});

test('numbers that can not receive an SMS are refused', () => {
  const others = {
    landline: '020 7946 0958',
    premium: '0909 879 0000',
    freephone: '0800 123 4567',
    shared: '0845 123 4567',
    company: '0300 123 4567',
    pager: '07640 123456',
    personal: '070 1234 5678',
    internet: '056 1234 5678',
    'international freephone': '+80047116106',
    'international premium': '+979397639158',
    'landline in Ireland': '+35312345678',
    'freephone in the USA': '+18005551212',
  };
  for (const [kind, text] of Object.entries(others)) assert.is(normalisePhoneNumber(text), undefined, kind);
});

test('leaves out blanks around a number and invisible characters', () => {
  const pasted = [
    '\u202a07400 123456\u202c',
    '\u200e+44 7400 123456',
    ' 07400 123456',
    '07400 123456\r\n',
    '\u00a007400\u00a0123456\u00a0',
    '\ufeff07400123456',
    '\u2066+447400123456\u2069',
    '\u200f\u061c07400123456',
    '+44\u200b7400\u00ad123456',
    '07400\ufe0f123456\u3164',
    '\u280007400\u2800123456',
  ];
  for (const text of pasted) assert.is(normalisePhoneNumber(text), '+447400123456', JSON.stringify(text));
  for (const text of ['\u202a\u202c', ' ', `${'\u200e'.repeat(50)}123`])
    assert.is(normalisePhoneNumber(text), undefined);
});

test('reads a number for a look-up, whatever it is valid for by now', () => {
  const kept = { landline: '+442079460018', premium: '+449098790000', unassigned: '+33700000000', old: '+22507010203' };
  for (const [kind, number] of Object.entries(kept)) {
    assert.is(normalisePhoneNumber(number), undefined, kind);
    assert.is(readPhoneNumber(number), number, kind);
  }
  for (const text of ['020 7946 0018', '\u202a+44 (0)20 7946 0018\u202c'])
    assert.is(readPhoneNumber(text), '+442079460018', text);
  assert.is(readPhoneNumber('07400 123456'), '+447400123456');
});

test('reads nothing that was never a number', () => {
  for (const text of [
    '',
    '12',
    'x07400123456',
    '02079460018 ext 5',
    'tel:',
    '0'.repeat(50),
    '+99912345678',
    '+4912345678901234567',
  ])
    assert.is(readPhoneNumber(text), undefined, text);
});

test.run();

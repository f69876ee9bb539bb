import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isUsername, normaliseUsername, opaqueString } from '../../src/lib/precis.js';

const test = suite('usernames and passwords');

test('one name has one spelling', () => {
  for (const spelling of [
    'ada',
    'ADA',
    'Ａda',
    'ａｄａ',
    ' ada',
    'ada ',
    'ada\r\n',
    '\u3000ada\u00a0',
    '\ufeffada',
    '\u202aada\u202c',
    '\u3164ada\ufe0f',
    '\uffa0ada\u2800',
    'ad\uff41',
  ])
    assert.is(normaliseUsername(spelling), 'ada', JSON.stringify(spelling));
  assert.is(normaliseUsername('zoe\u0308'), normaliseUsername('Zo\u00cb'));
  assert.is(normaliseUsername('ｶﾞ'), 'ガ');
  assert.is(normaliseUsername('Ann  Lee'), 'ann lee');
});

test('other names stay other names', () => {
  for (const [one, other] of [
    ['zoe', 'zoë'],
    ['ann lee', 'annlee'],
    ['strasse', 'straße'],
    ['ﬁona', 'fiona'],
  ] as const)
    assert.is.not(normaliseUsername(one), normaliseUsername(other));
});

test('distinguishes usernames from other texts by RFC 8265', () => {
  for (const name of ['ada', 'ada@demo.example', 'ann lee', 'zoë', 'straße', '星巴克', 'ガ', "o'brien", 'a_b-c.d+1'])
    assert.ok(isUsername(normaliseUsername(name)), name);
  for (const name of [
    '',
    ' ',
    'a\tb'.replace('\t', '\u0007'),
    'ﬁona',
    'x²',
    'o’brien',
    '❤',
    'a\u200bb',
    'a\u200db',
    'a\ufe0fb',
    'a\u2800b',
    'Ⅳ',
    '\u1100\u1161\u1100',
    'ab\u0640c',
  ])
    assert.not.ok(isUsername(normaliseUsername(name)), JSON.stringify(name));
});

test('a spelling is its own spelling', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (name) => {
      const normalised = normaliseUsername(name);
      if (isUsername(normalised)) assert.is(normaliseUsername(normalised), normalised);
      assert.is(opaqueString(opaqueString(name)), opaqueString(name));
    }),
  );
});

test('changes nothing of a password but its composition and its spaces', () => {
  assert.is(opaqueString('cafe\u0301 9'), opaqueString('caf\u00e9\u00a09'));
  for (const password of [' both ends ', 'Correct Horse', 'ＡＢＣ', 'ﬁ²', '❤️‍🔥', 'a  b'])
    assert.is(opaqueString(password), password.normalize('NFC'));
});

test.run();

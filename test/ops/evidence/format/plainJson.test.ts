import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite } from 'uvu';
import { isPlain, plainMembers } from '../../../../src/ops/evidence/format/plainJson.js';

const test = suite('plain JSON');

const rewritten = (text: string): string | undefined => {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return undefined;
  }
};

test('is what is written again as it stands, whatever the text', () => {
  const pieces = fc.constantFrom(
    ...'{}[],: "-\n\\n01'.split(''),
    ...'"a" "b" "1" "__proto__" "" "é" 😀 -0 12 01 1.5 1e3 999999999999999 9999999999999999 true null'.split(' '),
  );
  const texts = fc.oneof(
    fc.array(pieces, { maxLength: 9 }).map((all) => `{"a":${all.join('')}}`),
    fc.array(pieces, { maxLength: 9 }).map((all) => `{${all.join('')}}`),
    fc.json().map((text) => `{"a":${text}}`),
    fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
  );
  let plain = 0;
  fc.assert(
    fc.property(texts, (text) => {
      if (!isPlain(text)) return;
      plain += 1;
      assert.equal(rewritten(text), text);
    }),
    { numRuns: 5_000 },
  );
  assert.ok(plain > 100);
});

test('is what the service writes', () => {
  const event = {
    ids: ['a', 'b'],
    none: null,
    sold: true,
    value: -500,
    empty: {},
    list: [],
    receivers: [{ user_id: 'u1' }, { user_id: 'u2', message: 'Grüße, {"}' }],
  };
  assert.ok(isPlain(JSON.stringify({ ...event, receivers: [{ user_id: 'u1' }, { user_id: 'u1' }] })));
  assert.ok(!isPlain(JSON.stringify(event)), 'an escape');
});

for (const [what, text] of [
  ['a member twice', '{"a":1,"b":2,"a":1}'],
  ['a member twice further in', '{"a":[{"b":1,"b":1}]}'],
  ['numbers as names', '{"b":1,"1":2}'],
  ['a space', '{"a": 1}'],
  ['something behind it', '{"a":1}{}'],
  ['a number in another form', '{"a":1.0}'],
  ['an escape in another form', '{"a":"\\u0041"}'],
  ['no end', '{"a":[1'],
  ['no object', '[1]'],
] as const)
  test(`is no text with ${what}`, () => {
    assert.ok(!isPlain(text));
    assert.equal(plainMembers(text, new Set(['a'])), undefined);
  });

test('has its members where they stand', () => {
  const value = fc.oneof(fc.nat(), fc.array(fc.nat()), fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), fc.nat()));
  fc.assert(
    fc.property(fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), value), (object) => {
      const text = JSON.stringify(object);
      const members = plainMembers(text, new Set(Object.keys(object))) ?? [];
      assert.deepEqual(
        members.map(({ name, start, valueStart, end }) => [
          name,
          text.slice(start, valueStart),
          text.slice(valueStart, end),
        ]),
        Object.entries(object).map(([name, one]) => [name, `"${name}":`, JSON.stringify(one)]),
      );
    }),
  );
});

test.run();

import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { shortened } from '../../src/lib/quotedText.js';
import { malformedParameter, malformedPath } from '../../src/lib/unicodeText.js';

const test = suite('Unicode text');

test('finds the first string with half of a character, in values and names, at any depth', () => {
  const rows: [value: unknown, path: string | undefined][] = [
    ['plain 🎁 \ufffd', undefined],
    ['half \ud83c', ''],
    [null, undefined],
    [7, undefined],
    [{ a: { b: ['x', '\udf81'] } }, '.a.b[1]'],
    [[{ ok: '🎁' }, { no: '\ud83c' }], '[1].no'],
    [{ 'n\ud83c': 1 }, '.n\ufffd'],
    [{ first: { deep: '\ud83c' }, second: '\ud83c' }, '.first.deep'],
    [JSON.parse('{"__proto__":{"x":"\\ud83c"}}'), '.__proto__.x'],
  ];
  for (const [value, path] of rows) assert.equal(malformedPath(value), path, JSON.stringify(value));
  const deep = `${'['.repeat(200_000)}"\\ud83c"${']'.repeat(200_000)}`;
  assert.equal(malformedPath(JSON.parse(deep))?.length, 600_000);
});

test('finds the first parameter with an encoded surrogate', () => {
  const rows: [query: string, name: string | undefined][] = [
    ['', undefined],
    ['q=%F0%9F%8E%81&r=%25ed%a0%80', undefined],
    ['q=x&r=%ED%A0%BC', 'r'],
    ['a+b=%ed%bf%bf', 'a b'],
    ['%ed%b0%80=1', '\ufffd\ufffd\ufffd'],
    ['q=%ED%9F%BF', undefined],
  ];
  for (const [query, name] of rows) assert.equal(malformedParameter(query), name, query);
});

test('never cuts a text between the halves of one character', () => {
  for (let most = 0; most < 12; most++) assert.ok(shortened('🎁'.repeat(8), most).isWellFormed(), String(most));
  assert.equal(shortened('abc🎁def', 4), 'abc…');
});

test.run();

import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { byteSearch } from '../../../src/lib/files/byteSearch.js';

const test = suite('byte search');

const NUMBER = '+447700900123';
const MESSAGE = 'Größe "L" \\ für dich 🎁';

const finds = (value: string, bytes: Buffer): boolean => byteSearch([[value]]).in(bytes).length === 1;

/** Between bytes that are like none of them. */
const within = (text: string, encoding: BufferEncoding = 'utf8'): Buffer =>
  Buffer.concat([Buffer.from([0, 255, 1]), Buffer.from(text, encoding), Buffer.from([255, 0])]);

test('finds a text in each form in which it may be stored', () => {
  for (const value of [NUMBER, MESSAGE, 'zoë@example.test']) {
    const json = JSON.stringify({ value });
    const forms = [within(value), within(json), within(JSON.stringify({ json })), within(value, 'utf16le')];
    forms.push(within(encodeURIComponent(value)), within(json, 'utf16le'));
    for (let before = 0; before < 4; before++)
      for (const encoding of ['base64', 'base64url'] as const) {
        const encoded = Buffer.from(`${'x'.repeat(before)}${value} and more`).toString(encoding);
        forms.push(within(encoded, 'latin1'));
      }
    for (const [index, form] of forms.entries()) assert.ok(finds(value, form), `${value}, form ${index}`);
  }
  assert.ok(finds(MESSAGE, within('Gr\\u00f6\\u00dfe \\"L\\" \\\\ f\\u00fcr dich \\ud83c\\udf81')));
  assert.ok(finds('zoe\u0308', within('zoë')), 'composed');
});

test('finds the digits of a number without its plus sign, and no other number', () => {
  assert.ok(finds(NUMBER, within('tel:447700900123')));
  assert.ok(finds('+44 7700 900123', within('447700900123')));
  assert.not.ok(finds(NUMBER, within('+447700900124')));
  assert.not.ok(finds(NUMBER, within('+44770090012')));
  assert.not.ok(finds('4477', within('447')), 'a text of digits is no number');
});

test('finds a text in other capitals, in each form but base64', () => {
  for (const [value, stored] of [
    ['EVE@Person.Example', 'eve@person.example'],
    ['name of zoë', 'Name of ZOË'],
    ['NAME OF ZOË', 'name of Zoë'],
  ] as const) {
    const forms = [within(stored), within(stored, 'utf16le'), within(encodeURIComponent(stored))];
    forms.push(within(JSON.stringify({ json: JSON.stringify({ stored }) })), within(`${stored.slice(0, -1)}`));
    const [last, ...first] = forms.reverse();
    for (const [index, form] of first.entries()) assert.ok(finds(value, form), `${value}, form ${index}`);
    assert.not.ok(finds(value, last!), `${value}, cut`);
  }
  const encoded = Buffer.from('a long value').toString('base64');
  assert.ok(finds('a long value', within(encoded)));
  assert.not.ok(finds('a long value', within(encoded.toLowerCase())));
});

test('finds any spelling of a text', () => {
  const search = byteSearch([['nobody'], ['07700 900123', NUMBER]]);
  assert.equal(search.in(within('to 447700900123')), [{ text: 1, at: 6 }]);
  assert.equal(search.in(within('to 07700 900123')), [{ text: 1, at: 6 }]);
});

test('says of each of many texts where it is first, at any place', () => {
  const values = Array.from({ length: 1_000 }, () => randomBytes(9).toString('base64url'));
  const bytes = Buffer.concat([randomBytes(50_000), Buffer.from(`${values[7]}${values[7]}`), randomBytes(50_000)]);
  bytes.write(values[0]!, 0);
  bytes.write(values[999]!, bytes.length - values[999]!.length);
  assert.equal(
    byteSearch(values.map((value) => [value]))
      .in(bytes)
      .toSorted((a, b) => a.at - b.at),
    [
      { text: 0, at: 0 },
      { text: 7, at: 50_000 },
      { text: 999, at: bytes.length - values[999]!.length },
    ],
  );
  assert.equal(byteSearch([['abc']]).in(Buffer.alloc(2)), []);
});

test.run();

import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import fc from 'fast-check';
import { suite } from 'uvu';
import { hasLongList, jsonBody } from '../../../src/api/pipeline/json.js';

const test = suite('json');

async function written(value: object): Promise<string> {
  const body = jsonBody(value);
  if (typeof body === 'string') return body;
  const pieces: Buffer[] = [];
  for await (const piece of body as Readable) pieces.push(Buffer.from(piece as Uint8Array));
  return Buffer.concat(pieces).toString();
}

const long = Array.from({ length: 1000 }, (_, index) => ({ index, text: 'ü"\\' }));

test('a short value is text at once, a long list a stream', () => {
  assert.equal(jsonBody({ a: [1] }), '{"a":[1]}');
  assert.equal(typeof jsonBody({ data: { gifts: long } }), 'object');
  assert.equal(hasLongList({ a: { b: { c: { d: long } } } }), false);
});

test('streams short lists that are long together; lists of texts count by themselves', async () => {
  const tiles = Array.from({ length: 64 }, (_, id) => ({ id, pins: long.slice(0, id === 0 ? 0 : 200) }));
  assert.equal(typeof jsonBody({ data: tiles }), 'object');
  assert.equal(await written({ data: tiles }), JSON.stringify({ data: tiles }));
  assert.equal(hasLongList({ data: tiles.slice(0, 2) }), false);
  assert.equal(
    hasLongList({ data: Array.from({ length: 100 }, () => ({ products: Array.from({ length: 200 }, String) })) }),
    false,
  );
  assert.equal(hasLongList({ data: [{ products: Array.from({ length: 251 }, String) }] }), true);
});

test('a stream says the same as JSON.stringify', async () => {
  for (const value of [
    long,
    { data: long, none: undefined, embedded: { gifts: long, messages: [], n: null } },
    { a: { b: { c: long } } },
    { data: long, deep: { x: [{ y: long.slice(0, 3) }] } },
    { data: [{ pins: long }, null, undefined, [], [long], 'x', { pins: [] }] },
  ]) {
    assert.equal(await written(value), JSON.stringify(value));
  }
});

test('property: whatever the value', async () => {
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (value) =>
      assert.equal(await written({ ...value, list: long }), JSON.stringify({ ...value, list: long })),
    ),
    { numRuns: 30 },
  );
});

test.run();

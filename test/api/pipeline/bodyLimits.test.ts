import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bodyLimits as limitsOf, type BodyLimits, LEAST_BODY } from '../../../src/api/pipeline/bodyLimits.js';
import type { Schema } from '../../../src/api/pipeline/route.js';
import { record } from '../../../src/api/pipeline/schemas.js';

const test = suite('api/pipeline/bodyLimits');

const bodyLimits = (schema: Schema): BodyLimits => limitsOf({}, schema);
const text = (maxLength: number): Schema => ({ type: 'string', maxLength });
const list = (items: Schema, maxItems: number): Schema => ({ type: 'array', items, maxItems });

test('gives every small schema the same room', () => {
  for (const schema of [record({}), record({ reason: text(500) }), { type: 'object' as const, properties: {} }])
    assert.equal(bodyLimits(schema), LEAST_BODY);
});

test('gives long lists and texts the room of their longest spelling', () => {
  const schema = record({ ids: list(text(20), 1_000) });
  const longest = JSON.stringify({ ids: Array(1_000).fill('😀'.repeat(20)) }, null, 4).replaceAll(
    '😀',
    '\\ud83d\\ude00',
  );
  const { bytes, marks } = bodyLimits(schema);
  assert.ok(bytes >= longest.length && bytes < 2 * longest.length, `${bytes} for ${longest.length}`);
  assert.is(marks, 1_004);
  assert.is(bodyLimits(record({ one: text(10_000) })).marks, LEAST_BODY.marks);
});

test('gives no schema more than 1 MiB, and as much to one that takes anything', () => {
  assert.is(bodyLimits(record({ ids: list(text(64), 10_000) })).bytes, 1_048_576);
  assert.is(bodyLimits(record({ data: { type: 'object' } })).bytes, 1_048_576);
  assert.equal(limitsOf({ formBody: true }, record({ data: { type: 'object' } })), LEAST_BODY);
});

test('takes the largest of alternatives', () => {
  const [small, large] = [record({ a: text(10) }), record({ ids: list(text(10), 2_000) })];
  assert.equal(bodyLimits({ type: 'object', oneOf: [small, large] }), bodyLimits(large));
  assert.equal(bodyLimits(record({ ids: { ...list(text(10), 2_000), type: ['array', 'null'] } })), bodyLimits(large));
});

test('refuses a list without a bound', () => {
  assert.throws(() => bodyLimits(record({ ids: { type: 'array', items: text(1) } })), /maxItems/);
});

test.run();

/** Null for an optional field of a body is its absence (docs/api/conventions.md#bodies-and-queries). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { bodyValidator, dropNulls } from '../../src/api/pipeline/validation.js';
import type { Schema } from '../../src/api/pipeline/route.js';
import { buyOne, notificationOver, purchaseOf } from '../support/service/giftFlow.js';
import { type Reply, type Service, startService } from '../support/service/service.js';

const test = suite('nulls in bodies');
let service: Service;
test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

const post = async (user: string, path: string, body: object, key?: string): Promise<Reply> =>
  service.ask('POST', path, { token: await service.userToken(user), body, ...(key === undefined ? {} : { key }) });

test('a purchase with nulls is the purchase without them, under one key', async () => {
  const { payment, purchase } = purchaseOf('latte', [{ user_id: 'bob' }]) as Record<string, object>;
  const receivers = [{ user_id: 'bob', phone_number: null }];
  const nulls = { payment, purchase: { ...purchase, receivers, message: null, send_at: null }, embed: null };
  const first = await post('ann', '/api/v2/transactions', nulls, 'nulls');
  assert.equal(first.status, 201, first.text);
  const again = await post('ann', '/api/v2/transactions', { payment, purchase }, 'nulls');
  assert.deepEqual([again.json, again.headers.get('idempotent-replayed')], [first.json, 'true']);
});

test('vouchers, support and logins take null for absent', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await notificationOver(service, gift);
  const reassign = { user_id: 'cat', phone_number: null, reason: 'sent to the wrong person' };
  assert.equal((await post('sue', `/ops/gifts/${gift}/reassign`, reassign)).status, 200);
  assert.equal((await post('sue', `/ops/gifts/${gift}/block`, { ticket: null, reason: 'lost' })).status, 200);
  assert.equal((await post('sue', `/ops/gifts/${gift}/unblock`, { ticket: null, reason: 'found' })).status, 200);
  const voucher = { segmentId: null, embed: null };
  assert.equal((await post('cat', `/api/v2/gifts/${gift}/voucher`, voucher)).status, 200);
  assert.equal((await post('cat', `/api/v2/gifts/${gift}/voucher/claimed`, { segmentId: null })).status, 200);
  const revoked = await service.ask('POST', '/oauth/revoke', {
    body: { token: 'x', token_type_hint: null, client_id: 'app', client_secret: 'app-secret' },
  });
  assert.equal(revoked.status, 200, revoked.text);
});

test('null stays a value where it is one, and a fault where a field is required', async () => {
  const { json } = await service.ask('GET', '/openapi.json');
  const schemas = json['components']['schemas'] as Readonly<Record<string, Schema>>;
  const after = (schema: Schema, body: object): object => (dropNulls(schema, body), body);
  assert.deepEqual(after(schemas['Reschedule'] ?? {}, { send_at: null }), { send_at: null });
  assert.deepEqual(after(schemas['Redeem'] ?? {}, { location_id: null }), { location_id: null });
  assert.deepEqual(after(schemas['GenerateV1'] ?? {}, { segmentId: null, other: null }), { other: null });
  assert.throws(() => bodyValidator(schemas['Redeem'] ?? {})({ location_id: null }), /location_id must be a string/);
});

test('no operation refuses null for an optional field', async () => {
  const { json } = await service.ask('GET', '/openapi.json');
  const schemaIn = (schema: Schema): Schema =>
    typeof schema['$ref'] === 'string'
      ? (json['components']['schemas'][schema['$ref'].split('/').at(-1) ?? ''] as Schema)
      : schema;
  let checked = 0;
  for (const [path, operations] of Object.entries(json['paths'] as object))
    for (const [method, { requestBody }] of Object.entries(operations as object)) {
      const media = (requestBody as { content?: Record<string, { schema: Schema }> } | undefined)?.content;
      const schema = schemaIn(media?.['application/json']?.schema ?? {});
      const { properties = {}, required = [] } = schema as { properties?: object; required?: readonly string[] };
      const optional = Object.entries(properties).filter(
        ([name, { type }]) => !required.includes(name) && ![type].flat().includes('null'),
      );
      const body = Object.fromEntries(optional.map(([name]) => [name, null]));
      dropNulls(schema, body);
      assert.deepEqual(body, {}, `${method} ${path}`);
      checked += optional.length;
    }
  assert.ok(checked > 8, `${checked} optional fields`);
});

test.run();

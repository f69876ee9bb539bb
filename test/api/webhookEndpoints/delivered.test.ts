/** Webhooks from end to end: an endpoint made over HTTP is sent what happens, signed with the secret that was shown. */
import assert from 'node:assert/strict';
import { hashSync } from '@node-rs/argon2';
import { suite } from 'uvu';
import { webhookEndpointStream } from '../../../src/domain/webhookEndpoint.js';
import { buyOne } from '../../support/service/giftFlow.js';
import { openReceiver, type Receiver, verify } from '../../support/service/receiver.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('webhooks over HTTP');
const PATH = '/api/v2/webhook-endpoints';
let service: Service;
let receiver: Receiver;

test.before(async () => {
  receiver = await openReceiver((_, response) => void response.end('thanks'));
  service = await startService({ env: { WEBHOOK_PRIVATE_ADDRESSES: 'allow' } });
});
test.after(async () => {
  await service.close();
  await receiver.close();
});

async function ask(method: string, path: string, body?: object): Promise<Reply> {
  const reply = await service.ask(method, PATH + path, { token: await service.clientToken(), body });
  assert.ok(reply.status < 300, reply.text);
  return reply;
}

const receivedOf = (id: string) => receiver.received.filter((one) => one.path === `/${id}`);
const urlOf = (name: string): string => `http://127.0.0.1:${receiver.port}/${name}`;

test('sends what the client’s feed shows, signed with the secret of the answer', async () => {
  const { id, secret } = (await ask('POST', '', { url: urlOf('sales'), types: ['gift.issued'] })).json.data;
  const gift = await buyOne(service, 'latte');
  await eventually(async () => receivedOf('sales').length > 0);
  const [first] = receivedOf('sales');
  assert.ok(first);
  verify(secret as string, first);
  assert.throws(() => verify(`whsec_${Buffer.alloc(32).toString('base64')}`, first));
  const feed = await service.ask('GET', '/api/v2/events?types[]=gift.issued&limit=500', {
    token: await service.clientToken(),
  });
  const { gift: bought, ...data } = (first.body as Json).data;
  assert.equal(bought.product_id, 'latte');
  assert.deepEqual(
    (feed.json.data as Json[]).filter((event) => event.data.gift_id === gift),
    [{ ...(first.body as Json), data }],
  );
  await eventually(async () => (await ask('GET', `/${id}/attempts`)).json.data.length > 0);
  const [attempt] = (await ask('GET', `/${id}/attempts`)).json.data as Json[];
  assert.deepEqual(
    [attempt.event_id, attempt.position, attempt.type, attempt.status, attempt.response, attempt.next_at],
    [first.id, (first.body as Json).position, 'gift.issued', 200, 'thanks', null],
  );
  assert.equal((await ask('POST', `/${id}/resend`, { event_id: first.id })).status, 202);
  await eventually(async () => receivedOf('sales').length > 1);
  assert.equal(receivedOf('sales')[1]?.text, first.text);
});

test('sends a ping with the id of its answer, signed with both secrets after a rotation', async () => {
  const { id, secret } = (await ask('POST', '', { url: urlOf('ping'), types: ['gift.extended'] })).json.data;
  const { secret: next } = (await ask('POST', `/${id}/secret`)).json.data;
  const { event_id } = (await ask('POST', `/${id}/ping`)).json.data;
  await eventually(async () => receivedOf('ping').length > 0);
  const [ping] = receivedOf('ping');
  assert.ok(ping);
  assert.deepEqual([ping.id, ping.type, ping.body.data], [event_id, 'ping', {}]);
  verify(secret as string, ping);
  verify(next as string, ping);
});

test('sends nothing to a client that was disabled, and disables its endpoint', async () => {
  const { id } = (await ask('POST', '', { url: urlOf('late') })).json.data;
  await ask('POST', `/${id}/ping`);
  await eventually(async () => receivedOf('late').length > 0);
  const buyer = await service.userToken('ann');
  const before = receiver.received.length;
  const secret_hash = hashSync('app-secret', { memoryCost: 4_096, timeCost: 3, parallelism: 1 });
  const stream = webhookEndpointStream(id as string);
  assert.equal((await ask('POST', `/${id}/ping`)).status, 202);
  await eventually(async () => receiver.received.length > before);
  const there = receiver.received.length;
  await service.import({ clients: [{ id: 'app', secret_hash, name: 'app', active: false }] });
  await eventually(async () => (await service.ask('GET', '/api/v2/me', { token: buyer })).status === 401);
  // Nobody can ask through the client any more: what was bought through it goes on happening.
  const gift = receivedOf('sales')[0]?.body.data['gift_id'] ?? '';
  await service.events.append(`gift-${gift}`, [cancelled()], 'any');
  await eventually(async () => (await service.events.read(stream)).at(-1)?.type === 'WebhookEndpointDisabled');
  assert.deepEqual((await service.events.read(stream)).at(-1)?.data, { cause: 'inactive' });
  assert.equal(receiver.received.length, there);
});

const cancelled = (): Json => ({
  id: crypto.randomUUID(),
  type: 'GiftCancelled',
  at: new Date().toISOString(),
  data: { reason: 'test' },
  metadata: { commandId: 'test', correlationId: 'test', by: { user: 'test' } },
});

test.run();

/** What support sees of webhook endpoints and does for their owners, over HTTP and on the command line. */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { suite } from 'uvu';
import { accessStream } from '../../../src/domain/access.js';
import { webhookEndpointStream } from '../../../src/domain/webhookEndpoint.js';
import { eventually } from '../../support/assertions/until.js';
import { gift } from '../../support/service/cli.js';
import { buyOne, refused } from '../../support/service/giftFlow.js';
import { openReceiver, type Receiver } from '../../support/service/receiver.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('api/ops/webhooks');
let service: Service;
let receiver: Receiver;
let isDown = true;
/** Endpoints by what they do: `failing` is refused until `isDown` ends, `off` was disabled by its owner. */
const ids: Record<string, string> = {};

const ask = async (method: string, path: string, body?: object, user = 'sue'): Promise<Reply> =>
  service.ask(method, `/ops/webhooks${path}`, { token: await service.userToken(user), ...(body && { body }) });
const own = async (method: string, path: string, body?: object, client = 'app'): Promise<Json> => {
  const token = await service.clientToken(client);
  const reply = await service.ask(method, `/api/v2/webhook-endpoints${path}`, { token, ...(body && { body }) });
  assert.ok(reply.status < 300, reply.text);
  return reply.json.data;
};
const rowOf = async (id = ''): Promise<Json> =>
  ((await ask('GET', '')).json.data as Json[]).find((row) => row.id === id);
const lastEvent = async (stream: string): Promise<Json> => (await service.events.read(stream)).at(-1);
const run = async (...args: readonly string[]) => gift(service.settings, ['webhooks', ...args]);

test.before(async () => {
  receiver = await openReceiver(({ path }, response) => {
    response.statusCode = path === '/failing' && isDown ? 503 : 200;
    response.end('said by the receiver');
  });
  service = await startService({ env: { WEBHOOK_PRIVATE_ADDRESSES: 'allow' } });
  const url = (name: string): string => `http://127.0.0.1:${receiver.port}/${name}`;
  const make = async (name: string, settings: object, client?: string): Promise<void> => {
    ids[name] = (await own('POST', '', { url: url(name), ...settings }, client)).id as string;
  };
  await make('failing', { types: ['gift.issued'], description: 'Accounting' });
  await make('off', { types: null }, 'pos');
  await make('gone', {});
  await own('PATCH', `/${ids['off']}`, { disabled: true }, 'pos');
  await own('DELETE', `/${ids['gone']}`);
  await buyOne(service, 'latte');
  // An event waits before its first attempt, too.
  await eventually(async () => {
    const { waiting, failures } = await rowOf(ids['failing']);
    return waiting === 1 && failures > 0;
  });
});
test.after(async () => {
  await service.close();
  await receiver.close();
});

test('lists the endpoints of all owners, what waits, and how the last attempt came out', async () => {
  const { json } = await ask('GET', '', undefined, 'aud');
  assert.deepEqual(
    (json.data as Json[]).map(({ id }) => id as unknown),
    [ids['failing'] ?? '', ids['off'] ?? ''].toSorted(),
  );
  const { created_at, oldest_undelivered_at, oldest_undelivered_seconds, last_attempt, failures, ...rest } =
    await rowOf(ids['failing']);
  assert.deepEqual(rest, {
    id: ids['failing'],
    owner: 'client:app',
    url: `http://127.0.0.1:${receiver.port}/failing`,
    types: ['gift.issued'],
    description: 'Accounting',
    disabled: false,
    disabled_by: null,
    disabled_at: null,
    failing: false,
    waiting: 1,
  });
  assert.ok(created_at < oldest_undelivered_at && oldest_undelivered_seconds >= 0 && failures > 0);
  assert.deepEqual([last_attempt.type, last_attempt.status], ['gift.issued', 503]);
  const off = await rowOf(ids['off']);
  assert.deepEqual(
    [off.owner, off.disabled, off.disabled_by, off.waiting, off.oldest_undelivered_at, off.last_attempt],
    ['client:pos', true, 'owner', 0, null, null],
  );
  const first = await ask('GET', '?limit=1');
  assert.equal(first.json.data.length, 1);
  const second = await ask('GET', `?limit=1&after=${first.json.next as string}`);
  assert.deepEqual(
    [...first.json.data, ...second.json.data].map(({ id }) => id as unknown),
    json.data.map(({ id }: Json) => id as unknown),
  );
  assert.equal(second.json.next, null);
});

test('lists attempts without what the receiver answered', async () => {
  const path = `/${ids['failing']}/attempts`;
  const { json, text } = await ask('GET', path, undefined, 'aud');
  const owners = await own('GET', `/${ids['failing']}/attempts`);
  const { response, ...attempt } = owners.at(-1);
  assert.equal(response, 'said by the receiver');
  assert.deepEqual(json.data.at(-1), attempt);
  assert.doesNotMatch(text, /said by/);
  const seen: Json[] = [];
  for (let next: string | null = ''; next !== null;) {
    const page: Json = (await ask('GET', `${path}?limit=1&after=${next}`)).json;
    assert.equal(page.data.length, 1);
    seen.push(...(page.data as Json[]));
    next = page.next as string | null;
  }
  assert.deepEqual(seen.at(-1), attempt);
  refused(await ask('GET', `${path}?after=0`), 422, 'after is not valid');
  const said = await run('attempts', ids['failing'] ?? '', '--json');
  assert.deepEqual(said.records().at(-1), attempt);
});

test('has an event delivered again, and records who and why', async () => {
  const [{ event_id, position }] = (await ask('GET', `/${ids['failing']}/attempts`)).json.data;
  const count = (): number => receiver.received.filter(({ path, id }) => path === '/failing' && id === event_id).length;
  isDown = false;
  const body = { event_id, reason: 'the receiver lost it' };
  const before = count();
  const done = await ask('POST', `/${ids['failing']}/resend`, body);
  assert.deepEqual([done.status, done.json], [202, { data: { endpoint_id: ids['failing'], event_id } }]);
  await eventually(async () => count() > before);
  const { type, metadata } = await lastEvent(webhookEndpointStream(ids['failing'] ?? ''));
  assert.deepEqual([type, metadata.by.user], ['WebhookResendRequested', 'sue']);
  const { data } = await lastEvent(accessStream(new Date().toISOString()));
  assert.deepEqual(
    [data.what, data.reason, data.asked.endpointId, data.asked.event_id],
    ['POST /ops/webhooks/:endpointId/resend', body.reason, ids['failing'], event_id],
  );
  await eventually(async () => (await rowOf(ids['failing'])).waiting === 0);
  assert.equal((await ask('POST', `/${ids['failing']}/resend`, { ...body, position })).status, 202);
  await eventually(async () => count() > before + 1);
  const said = await run('resend', ids['failing'] ?? '', event_id as string, '--reason', 'lost again');
  assert.deepEqual([said.code, said.err], [0, '']);
  await eventually(async () => count() > before + 2);
  const recorded = (await lastEvent(accessStream(new Date().toISOString()))).data;
  assert.deepEqual([recorded.what, recorded.reason], ['gift webhooks resend', 'lost again']);
});

test('has delivered what came while an endpoint was disabled', async () => {
  const since = new Date(Date.now() - 60_000).toISOString();
  const id = ids['failing'] ?? '';
  await own('PATCH', `/${id}`, { disabled: true });
  const path = `/${id}/recover`;
  const reason = 'the receiver was down';
  refused(await ask('POST', path, { since, reason }), 409, 'webhook endpoint is disabled.');
  const missed = await buyOne(service, 'latte');
  await own('PATCH', `/${id}`, { disabled: false });
  const done = await ask('POST', path, { since, reason });
  assert.deepEqual([done.status, done.json], [202, { data: { endpoint_id: id, since } }]);
  await eventually(async () => receiver.received.some(({ body }) => body.data['gift_id'] === missed));
  const { type, data } = await lastEvent(webhookEndpointStream(id));
  assert.deepEqual([type, data], ['WebhookRecoverRequested', { since }]);
  const said = await run('recover', id, '--since', since, '--reason', reason, '--json');
  assert.deepEqual([said.code, said.records()], [0, [{ endpoint_id: id, since }]]);
});

test('refuses what an owner would be refused, and what only support may', async () => {
  const reason = 'a test';
  const failing = `/${ids['failing']}`;
  for (const unknown of ['f'.repeat(32), 'unknown', ids['gone']]) {
    refused(await ask('GET', `/${unknown}/attempts`), 404, 'Webhook endpoint not found');
    refused(await ask('POST', `/${unknown}/recover`, {}), 404, 'Webhook endpoint not found');
  }
  refused(await ask('POST', `${failing}/resend`, { event_id: 'unknown', reason }), 422, 'Event not found');
  refused(
    await ask('POST', `${failing}/recover`, { since: 'noon', reason }),
    422,
    'since must be a time, such as 2026-05-04T12:30:00Z',
  );
  refused(await ask('POST', `${failing}/recover`, { since: '2026-05-04T12:30:00Z' }), 422, 'reason is required');
  for (const what of ['resend', 'recover'])
    refused(await ask('POST', `${failing}/${what}`, {}, 'aud'), 403, 'Forbidden.');
  for (const user of ['ann', 'till-coffee']) refused(await ask('GET', '', undefined, user), 403, 'Forbidden.');
  const said = await run('resend', ids['failing'] ?? '', 'unknown', '--reason', reason);
  assert.deepEqual([said.code, said.err.slice(0, 22)], [1, 'gift: Event not found:']);
  assert.equal((await run('recover', ids['failing'] ?? '', '--since', 'noon', '--reason', reason)).code, 2);
  assert.equal((await run('recover', ids['failing'] ?? '', '--since', '2026-05-04T12:30:00Z')).code, 2);
});

test('shows the same list on the command line', async () => {
  const without = (rows: readonly Json[]): Json[] => rows.map((row) => ({ ...row, oldest_undelivered_seconds: 0 }));
  // What was recovered is still being delivered.
  await eventually(async () => {
    const [{ json }, said] = [await ask('GET', ''), await run('list', '--json')];
    return said.code === 0 && isDeepStrictEqual(without(said.records()), without(json.data as Json[]));
  });
  const table = (await run('list')).out;
  assert.match(table, /^endpoint +owner +url +state +types +waiting +oldest undelivered +last attempt\n/);
  assert.match(table, /client:pos .*disabled \(owner\)/);
  assert.match((await run('attempts', ids['failing'] ?? '')).out, /gift\.issued .* 503 /);
});

test.run();

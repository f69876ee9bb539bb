/** Webhook endpoints over HTTP: whose they are, what they may be, their secrets, and what is asked of the deliveries. */
import assert from 'node:assert/strict';
import { hashSync } from '@node-rs/argon2';
import { suite } from 'uvu';
import { signingSecrets } from '../../../src/commands/webhookSecrets.js';
import { fold } from '../../../src/domain/decider.js';
import {
  liveEndpoint,
  MOST_CREATED_A_DAY,
  webhookEndpointAggregate,
  webhookEndpointStream,
} from '../../../src/domain/webhookEndpoint.js';
import { attemptRecords, type WebhookAttempt } from '../../../src/messages/webhookAttempts.js';
import { loadConfig } from '../../../src/service/config.js';
import { openLog } from '../../../src/service/engines.js';
import { inParallel } from '../../../src/lib/async/inParallel.js';
import { answerOf, checked, unharmed } from '../../support/service/answers.js';
import { buyOne, redeem, refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('api/webhookEndpoints');
let service: Service;

const PATH = '/api/v2/webhook-endpoints';
const URL_OF_SHOP = 'https://shop.example/hooks';
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

/** `app`, `pos`: a client's token; else a user's. */
const tokenOf = async (caller: string): Promise<string> =>
  ['app', 'pos', 'many'].includes(caller) ? service.clientToken(caller) : service.userToken(caller);

interface Sent {
  readonly as?: string;
  readonly body?: unknown;
  readonly key?: string;
}

async function ask(method: string, path: string, { as = 'app', ...more }: Sent = {}): Promise<Reply> {
  const reply = await service.ask(method, PATH + path, { token: await tokenOf(as), ...more });
  checked(answerOf(reply), `${as} ${method} ${path}`);
  return reply;
}

/** Of events that don’t happen here: nothing is sent but pings. */
async function create(body: object = {}, as = 'app'): Promise<Json> {
  const reply = await ask('POST', '', { as, body: { url: URL_OF_SHOP, types: ['gift.extended'], ...body } });
  assert.equal(reply.status, 201, reply.text);
  return reply.json.data;
}

/** Nothing is delivered to it meanwhile. */
async function createDisabled(as = 'app'): Promise<string> {
  const { id } = await create({}, as);
  assert.equal((await ask('PATCH', `/${id}`, { as, body: { disabled: true } })).status, 200);
  return id as string;
}

const eventsOf = async (id: string) => service.events.read(webhookEndpointStream(id));
const typesOf = async (id: string): Promise<string[]> => (await eventsOf(id)).map(({ type }) => type);

const hashes = new Map<string, string>();
/** The same hash for the same secret: another one would end the sessions. */
function hashed(secret: string): string {
  const hash = hashes.get(secret) ?? hashSync(secret, { memoryCost: 4_096, timeCost: 3, parallelism: 1 });
  hashes.set(secret, hash);
  return hash;
}
const user = (id: string, merchant_id: string): object => ({
  id,
  username: `${id}@test.example`,
  password_hash: hashed(`${id}-password`),
  name: id,
  merchant_id,
  permissions: ['webhooks'],
});

test.before(async () => {
  service = await startService();
  await service.import({
    users: [user('hooks-coffee', 'coffee'), user('hooks-coffee-2', 'coffee'), user('hooks-cinema', 'cinema')],
    clients: [{ id: 'many', secret_hash: hashed('many-secret'), name: 'many' }],
  });
  for (const caller of ['many', 'hooks-coffee', 'hooks-coffee-2', 'hooks-cinema'])
    await eventually(() => tokenOf(caller).catch(() => undefined), `${caller} to be known`);
});
test.after(async () => {
  await unharmed(service);
  await service.close();
});

test('creates an endpoint, and shows its secret this once', async () => {
  const data = await create({ types: ['gift.redeemed'], description: 'Accounting' });
  const { id, secret, created_at, ...rest } = data;
  assert.match(id as string, /^[0-9a-f]{32}$/);
  assert.match(secret as string, SECRET);
  assert.match(created_at as string, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  assert.deepEqual(rest, {
    url: URL_OF_SHOP,
    types: ['gift.redeemed'],
    description: 'Accounting',
    disabled: false,
    disabled_by: null,
    disabled_at: null,
  });
  const { secret: _, ...shown } = data;
  assert.deepEqual((await ask('GET', `/${id}`)).json, { data: shown });
  assert.deepEqual(
    ((await ask('GET', '')).json.data as Json[]).find((one) => one.id === id),
    shown,
  );
  const plain = await create({ types: undefined });
  assert.deepEqual([plain.types, plain.description], [null, null]);
  assert.notEqual(plain.secret, secret);
});

test('is the client’s, or its merchant’s whose users may; others never find it', async () => {
  const [ours, merchants] = [await create(), await create({}, 'hooks-coffee')];
  const seen: readonly [caller: string, own: string | undefined][] = [
    ['app', ours.id as string],
    ['pos', undefined],
    ['hooks-coffee', merchants.id as string],
    ['hooks-coffee-2', merchants.id as string],
    ['hooks-cinema', undefined],
  ];
  for (const [as, own] of seen) {
    const listed = ((await ask('GET', '', { as })).json.data as Json[]).map(({ id }) => id as string);
    for (const id of [ours.id, merchants.id] as string[]) {
      assert.equal(listed.includes(id), id === own, `${as} lists it`);
      const shown = await ask('GET', `/${id}`, { as });
      if (id === own) {
        assert.equal(shown.status, 200);
        continue;
      }
      refused(shown, 404, 'Webhook endpoint not found');
      for (const [method, path, body] of WRITES)
        refused(await ask(method, `/${id}${path}`, { as, body }), 404, 'Webhook endpoint not found');
      refused(await ask('GET', `/${id}/attempts`, { as }), 404, 'Webhook endpoint not found');
    }
  }
  assert.deepEqual(await typesOf(merchants.id as string), ['WebhookEndpointCreated'], 'nothing was done to it');
});

const WRITES: readonly [method: string, path: string, body?: object][] = [
  ['PATCH', '', { disabled: true }],
  ['DELETE', ''],
  ['POST', '/secret'],
  ['POST', '/ping'],
  ['POST', '/resend', { event_id: 'e' }],
  ['POST', '/recover', { since: '2026-05-04T12:30:00Z' }],
];

test('refuses users without the permission, customers, and callers without a token', async () => {
  const { id } = await create();
  for (const as of ['ann', 'till-coffee', 'sue'])
    for (const [method, path, body] of [...WRITES, ['GET', ''], ['GET', '/attempts']] as typeof WRITES)
      refused(await ask(method, `/${id}${path}`, { as, body }), 403, 'Forbidden.');
  for (const as of ['ann', 'till-coffee']) {
    refused(await ask('GET', '', { as }), 403, 'Forbidden.');
    refused(await ask('POST', '', { as, body: { url: URL_OF_SHOP } }), 403, 'Forbidden.');
  }
  refused(await service.ask('GET', PATH), 401, 'Authentication failed.');
  refused(await service.ask('POST', PATH, { body: { url: URL_OF_SHOP } }), 401, 'Authentication failed.');
});

const FAULTS: readonly [body: unknown, message: string, field: string | null][] = [
  [{}, 'url is required', 'url'],
  [{ url: null }, 'url must be a string', 'url'],
  [{ url: 'http://shop.example' }, 'url must begin with https:// and a host', 'url'],
  [{ url: 'HTTPS:shop.example' }, 'url must begin with https:// and a host', 'url'],
  [{ url: 'https://127.0.0.1/' }, 'url must be a public address', 'url'],
  [{ url: 'https://169.254.169.254/latest' }, 'url must be a public address', 'url'],
  [{ url: 'https://[::ffff:10.0.0.1]/' }, 'url must be a public address', 'url'],
  [{ url: 'https://a:b@shop.example/' }, 'url must not have a user or password', 'url'],
  [{ url: 'https://shop.example/#a' }, 'url must not have a fragment', 'url'],
  [{ url: `https://shop.example/${'a'.repeat(2_040)}` }, 'url: at most 2048 characters', 'url'],
  [{ url: 'shop' }, 'url must be an address, in ASCII', 'url'],
  [{ types: [] }, 'types: at least 1', 'types'],
  [{ types: ['gift.nonsense'] }, 'types: not a type of event; /openapi.json lists them', 'types[0]'],
  [{ types: ['ping'] }, 'types: not a type of event; /openapi.json lists them', 'types[0]'],
  [{ types: 'gift.redeemed' }, 'types must be a list or null', 'types'],
  [{ types: ['gift.redeemed', 'gift.redeemed'] }, 'types[1] is in the list already: leave it out', 'types[1]'],
  [{ description: 'x'.repeat(257) }, 'description: at most 256 characters', 'description'],
  [{ description: 'a\u0000b' }, 'description must be one line, without control characters', 'description'],
  [{ description: 'a\u202eb' }, 'description must be one line, without control characters', 'description'],
  [{ description: '\ud800' }, 'description must not have half of a character (an unpaired surrogate)', 'description'],
  [{ secret: 'mine' }, 'secret is not a known field', 'secret'],
];

for (const [body, message, field] of FAULTS)
  test(`refuses ${JSON.stringify(body).slice(0, 60)}`, async () => {
    const whole = { ...(message === 'url is required' ? {} : { url: URL_OF_SHOP }), ...(body as object) };
    const reply = await ask('POST', '', { body: whole });
    refused(reply, 422, message);
    assert.equal(reply.headers.get('error-field'), field);
  });

test('a repeat with its key gets the same endpoint and secret, of which no record tells', async () => {
  const send = async (): Promise<Reply> => ask('POST', '', { key: 'create-1', body: { url: URL_OF_SHOP } });
  const [first, again] = [await send(), await send()];
  assert.deepEqual([again.status, again.json], [201, first.json]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  const { id } = first.json.data;
  const rotate = async (): Promise<Reply> => ask('POST', `/${id}/secret`, { key: 'rotate-1' });
  const [rotated, rotatedAgain] = [await rotate(), await rotate()];
  assert.deepEqual(rotatedAgain.json, rotated.json);
  assert.deepEqual((await send()).json, first.json, 'as it was then');
  assert.deepEqual(await typesOf(id as string), ['WebhookEndpointCreated', 'WebhookSecretRotated']);
  const secrets = [first.json.data.secret, rotated.json.data.secret].map((text) => (text as string).slice(6));
  const store = await service.openStore();
  try {
    const kept = JSON.stringify([await store.records.list('', 100_000), await eventsOf(id as string)]);
    for (const secret of secrets) assert.ok(!kept.includes(secret) && !kept.includes(inHex(secret)));
    assert.ok(!service.log.join('').includes(secrets[0] as string));
  } finally {
    await store.close();
  }
});

const inHex = (base64: string): string => Buffer.from(base64, 'base64').toString('hex');

test('shows no secret of a merchant to a user who works for another one by now', async () => {
  const sent = { as: 'hooks-mover', body: { url: URL_OF_SHOP, types: ['gift.extended'] }, key: 'before-the-move' };
  await service.import({ users: [user('hooks-mover', 'coffee')] });
  await eventually(() => tokenOf('hooks-mover').catch(() => undefined));
  assert.equal((await ask('POST', '', sent)).status, 201);
  await service.import({ users: [user('hooks-mover', 'cinema')] });
  const token = await tokenOf('hooks-mover');
  await eventually(
    async () => (await service.ask('GET', '/api/v2/me', { token })).json.data.merchant_id === 'cinema' && true,
  );
  await eventually(
    async () => ((await ask('GET', '', { as: 'hooks-mover' })).json.data as Json[]).length === 0 && true,
  );
  refused(await ask('POST', '', sent), 422, 'Idempotency key already used with another request.');
});

test('rotates the secret, while the one before signs for a day', async () => {
  const { id, secret } = await create();
  const reply = await ask('POST', `/${id}/secret`);
  assert.equal(reply.status, 200, reply.text);
  const { secret: next, previous_until: until, ...rest } = reply.json.data;
  assert.deepEqual(rest, { id });
  assert.match(next as string, SECRET);
  const { subjects, events } = await openLog(loadConfig(service.settings));
  try {
    const { secrets } = liveEndpoint(fold(webhookEndpointAggregate, await eventsOf(id as string)));
    const at = (eventsAt: number): string => new Date(eventsAt).toISOString();
    const rotatedAt = Date.parse(until as string) - 24 * 3_600_000;
    assert.ok(Math.abs(rotatedAt - Date.now()) < 60_000);
    assert.deepEqual(await signingSecrets(subjects, secrets, at(rotatedAt)), [next, secret]);
    assert.deepEqual(await signingSecrets(subjects, secrets, until as string), [next]);
  } finally {
    await events.close();
  }
});

test('changes what is sent where, and says who disabled it and when', async () => {
  const { id, secret: _, ...before } = await create({ types: ['gift.redeemed'] });
  const change = async (body: object): Promise<Json> => {
    const reply = await ask('PATCH', `/${id}`, { body });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual((await ask('GET', `/${id}`)).json, reply.json);
    return reply.json.data;
  };
  assert.deepEqual(await change({}), { id, ...before });
  assert.deepEqual(await change({ url: 'https://other.example/', types: null, description: 'x' }), {
    id,
    ...before,
    url: 'https://other.example/',
    types: null,
    description: 'x',
  });
  const disabled = await change({ disabled: true });
  assert.deepEqual([disabled.disabled, disabled.disabled_by], [true, 'owner']);
  assert.equal(disabled.disabled_at, (await eventsOf(id as string)).at(-1)?.at);
  const enabled = await change({ disabled: false, description: null });
  assert.deepEqual([enabled.disabled, enabled.disabled_by, enabled.disabled_at], [false, null, null]);
  assert.equal(enabled.description, null);
  refused(await ask('PATCH', `/${id}`, { body: { url: 'http://x' } }), 422, 'url must begin with https:// and a host');
  refused(await ask('PATCH', `/${id}`, { body: { disabled: 'yes' } }), 422, 'disabled must be true or false');
  refused(await ask('PATCH', '/none', { body: { disabled: 'yes' } }), 404, 'Webhook endpoint not found');
  assert.deepEqual(await typesOf(id as string), [
    'WebhookEndpointCreated',
    'WebhookEndpointChanged',
    'WebhookEndpointDisabled',
    'WebhookEndpointChanged',
    'WebhookEndpointEnabled',
  ]);
});

test('one that is deleted is found no more, but by a repeat of the deletion', async () => {
  const { id } = await create();
  const reply = await ask('DELETE', `/${id}`, { key: 'delete-1' });
  assert.deepEqual([reply.status, reply.json], [200, {}]);
  assert.ok(reply.headers.get('gift-position'));
  refused(await ask('GET', `/${id}`), 404, 'Webhook endpoint not found');
  for (const [method, path, body] of WRITES)
    refused(await ask(method, `/${id}${path}`, { body }), 404, 'Webhook endpoint not found');
  assert.ok(!((await ask('GET', '')).json.data as Json[]).some((one) => one.id === id));
  const store = await service.openStore();
  for (const { key } of await store.records.list('idempotency:')) await store.records.delete(key);
  await store.close();
  const again = await ask('DELETE', `/${id}`, { key: 'delete-1' });
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
});

test('an owner has twenty, however many ask at once; a deleted one makes room', async () => {
  const replies: Reply[] = [];
  await inParallel(
    Array.from({ length: 21 }, (_, index) => index),
    7,
    async (index) =>
      void replies.push(await ask('POST', '', { as: 'many', key: `many-${index}`, body: { url: URL_OF_SHOP } })),
  );
  const [tooMany, ...more] = replies.filter(({ status }) => status !== 201);
  assert.ok(tooMany);
  assert.equal(more.length, 0);
  refused(tooMany, 409, 'at most 20 webhook endpoints.');
  assert.equal((await ask('GET', '', { as: 'many' })).json.data.length, 20);
  const again = await ask('POST', '', { as: 'many', key: 'many-0', body: { url: URL_OF_SHOP } });
  assert.equal(again.headers.get('idempotent-replayed'), again.status === 201 ? 'true' : null);
  const [made] = replies.filter(({ status }) => status === 201);
  assert.equal((await ask('DELETE', `/${made?.json.data.id}`, { as: 'many' })).status, 200);
  await create({}, 'many');
});

test('an owner who creates and deletes in a loop is refused for the rest of the day', async () => {
  const as = 'hooks-cinema';
  const body = { url: URL_OF_SHOP };
  for (let n = 0; n < MOST_CREATED_A_DAY; n++) {
    const { id } = (await ask('POST', '', { as, key: `loop-${n}`, body })).json.data;
    assert.equal((await ask('DELETE', `/${id}`, { as })).status, 200);
  }
  const before = await service.events.end();
  const reply = await ask('POST', '', { as, key: 'loop-more', body });
  refused(reply, 429, 'Too many requests.');
  assert.match(reply.headers.get('retry-after') ?? '', /^8\d{4}$/);
  assert.equal(await service.events.end(), before);
  assert.equal((await ask('POST', '', { as: 'hooks-coffee', body })).status, 201);
});

test('a ping and a recovery stand in the log once they are answered', async () => {
  const { id } = await create();
  const pinged = await ask('POST', `/${id}/ping`, { key: 'ping-1' });
  const recovered = await ask('POST', `/${id}/recover`, { body: { since: '2026-05-04 14:30+0200' } });
  assert.deepEqual([pinged.status, recovered.status], [202, 202], pinged.text + recovered.text);
  const [, ping, recover] = await eventsOf(id as string);
  assert.deepEqual([ping?.type, pinged.json], ['WebhookPingRequested', { data: { event_id: ping?.id } }]);
  assert.deepEqual([recover?.type, recover?.data], ['WebhookRecoverRequested', { since: '2026-05-04T12:30:00.000Z' }]);
  assert.deepEqual(recovered.json, { data: { since: '2026-05-04T12:30:00.000Z' } });
  assert.deepEqual((await ask('POST', `/${id}/ping`, { key: 'ping-1' })).json, pinged.json);
  const message = 'since must be a time, such as 2026-05-04T12:30:00Z';
  for (const since of ['yesterday', '2026-05-04', '2026-13-01T00:00:00Z', '2016-12-31T23:59:60Z', ''])
    refused(await ask('POST', `/${id}/recover`, { body: { since } }), 422, message);
  const future = await ask('POST', `/${id}/recover`, { body: { since: '9999-01-01T00:00Z' } });
  assert.deepEqual([future.status, future.headers.get('error-field')], [422, 'since']);
  assert.match(future.json.error, /^since is still to come: it is /);
  refused(await ask('POST', `/${id}/recover`, { body: {} }), 422, 'since is required');
  assert.equal((await eventsOf(id as string)).length, 3);
});

test('refuses more pings, secrets and changes of an endpoint than a day may bring', async () => {
  const { id } = await create();
  const many = async (times: number, send: (n: number) => Promise<Reply>): Promise<void> => {
    for (let n = 0; n < times; n++) assert.ok((await send(n)).status < 300);
    const reply = await send(times);
    refused(
      reply,
      429,
      'too many requests of this kind for this webhook endpoint today: docs/limits.md says how many.',
    );
    assert.equal(reply.headers.get('retry-after'), '3600');
  };
  await many(20, async () => ask('POST', `/${id}/secret`));
  await many(100, async () => ask('POST', `/${id}/ping`));
  await many(100, async (n) => ask('PATCH', `/${id}`, { body: { description: `no. ${n}` } }));
  assert.equal((await ask('PATCH', `/${id}`, { body: { disabled: true } })).status, 200, 'it can be stopped');
  assert.equal((await ask('DELETE', `/${id}`)).status, 200);
  assert.equal((await eventsOf(id as string)).length, 1 + 220 + 2);
});

test('resends what the owner may know of, found by its position or among the attempts', async () => {
  const id = await createDisabled('hooks-coffee');
  assert.equal((await ask('PATCH', `/${id}`, { as: 'hooks-coffee', body: { types: null } })).status, 200);
  const gift = await buyOne(service, 'latte');
  assert.equal((await redeem(service, gift)).status, 201);
  const feed = async (token: string): Promise<Json[]> =>
    (await service.ask('GET', '/api/v2/events?limit=500', { token })).json.data as Json[];
  const coffee = await service.userToken('till-coffee');
  const of = (events: Json[], type: string): Json =>
    events.find((event) => event.type === type && event.data.gift_id === gift);
  await eventually(async () => of(await feed(coffee), 'gift.redeemed') !== undefined);
  const redeemed = of(await feed(coffee), 'gift.redeemed');
  const issued = of(await feed(await service.userToken('ann')), 'gift.issued');
  const resend = async (body: object): Promise<Reply> => ask('POST', `/${id}/resend`, { as: 'hooks-coffee', body });
  const known = { event_id: redeemed.id, position: redeemed.position };
  refused(await resend(known), 409, 'webhook endpoint is disabled.');
  assert.equal((await ask('PATCH', `/${id}`, { as: 'hooks-coffee', body: { disabled: false } })).status, 200);
  const reply = await resend(known);
  assert.deepEqual([reply.status, reply.json], [202, { data: { event_id: redeemed.id } }], reply.text);
  const position = (redeemed.position as string).split(':')[1] as string;
  assert.deepEqual((await eventsOf(id)).at(-1)?.data, { event_id: redeemed.id, position });
  const unknown: readonly object[] = [
    { event_id: issued.id, position: issued.position },
    { event_id: redeemed.id, position: issued.position },
    { event_id: 'other', position: redeemed.position },
    { event_id: redeemed.id, position: `00000000-0000-4000-8000-000000000000:${position}` },
    { event_id: 'never-tried' },
  ];
  for (const body of unknown) {
    const none = await resend(body);
    refused(none, 422, 'Event not found');
    assert.equal(none.headers.get('error-field'), 'event_id');
  }
  const malformed = await resend({ event_id: 'e', position: 'x' });
  refused(malformed, 422, 'position must be the `position` of an event');
  await withAttempts(id, [attemptOf(1, { event_id: redeemed.id, position })]);
  assert.equal((await resend({ event_id: redeemed.id })).status, 202);
  assert.equal(
    (await ask('PATCH', `/${id}`, { as: 'hooks-coffee', body: { types: ['gift.unredeemed'] } })).status,
    200,
  );
  const unwanted = 'event_id is of the type gift.redeemed, which the endpoint does not get';
  refused(await resend(known), 422, unwanted);
});

const attemptOf = (number: number, more: object = {}): WebhookAttempt => ({
  id: `0000000${number}-0000-4000-8000-000000000000`,
  event_id: `event-${number}`,
  type: 'ping',
  at: `2026-05-04T12:3${number}:00.000Z`,
  status: 200,
  response: 'ok',
  duration_ms: 12,
  ...more,
});

async function withAttempts(id: string, attempts: readonly WebhookAttempt[]): Promise<void> {
  const store = await service.openStore();
  for (const [index, attempt] of attempts.entries())
    await store.records.put(`${attemptRecords(id)}t${index}`, attempt, { expiresAt: Date.now() + 600_000 });
  await store.close();
}

test('shows the latest attempts, the newest first, by pages', async () => {
  const id = await createDisabled();
  const page = async (query = ''): Promise<Json> => (await ask('GET', `/${id}/attempts${query}`)).json;
  assert.deepEqual(await page(), { data: [], next: null, has_more: false });
  const { status: _, ...failed } = attemptOf(3, {
    error: 'no answer',
    response: '',
    next_at: '2026-05-04T12:40:00.000Z',
  });
  await withAttempts(id, [attemptOf(2, { position: '0000000000000042' }), failed, attemptOf(1)]);
  const first = await page('?limit=2');
  assert.deepEqual(first.data, [
    { ...failed, status: null, position: null },
    {
      ...attemptOf(2),
      position: `${service.events.logId}:0000000000000042`,
      error: null,
      next_at: null,
    },
  ]);
  assert.equal(first.has_more, true);
  const second = await page(`?limit=2&after=${first.next}`);
  assert.deepEqual([second.data.map((one: Json) => one.event_id as string), second.next], [['event-1'], null]);
  // The second attempt makes room for a later one.
  await withAttempts(id, [attemptOf(4)]);
  assert.deepEqual(await page(`?limit=2&after=${first.next}`), second);
  for (const after of ['00000009-0000-4000-8000-000000000000', 'x y'])
    refused(await ask('GET', `/${id}/attempts?after=${encodeURIComponent(after)}`), 422, 'after is not valid');
});

test('a disabled endpoint is asked for nothing', async () => {
  const id = await createDisabled();
  for (const [path, body] of [['/ping'], ['/recover', { since: '2026-05-04T12:30:00Z' }]] as const)
    refused(await ask('POST', `/${id}${path}`, { body }), 409, 'webhook endpoint is disabled.');
});

test.run();

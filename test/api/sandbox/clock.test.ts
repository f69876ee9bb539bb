import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { Validator } from '@seriousme/openapi-schema-validator';
import { suite } from 'uvu';
import { DEADLINE_MS, eventually } from '../../support/assertions/until.js';
import { purchaseOf, refused } from '../../support/service/giftFlow.js';
import {
  type Json,
  type Reply,
  request,
  type Service,
  startProcess,
  startService,
  userTokenOf,
} from '../../support/service/service.js';
import { GIFT } from '../../support/service/programs.js';
import { faultsOf } from '../openapi/check.js';

const DAY = 86_400;

const test = suite("the sandbox's clock");
let service: Service;

test.before(async () => {
  service = await startService({ env: { SANDBOX: '1', REMINDER_HOURS: '00:00-24:00' } });
});
test.after(() => service.close());

async function clientToken(url = service.url): Promise<string> {
  const body = { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' };
  return (await request(`${url}/oauth/token`, 'POST', { body })).json.access_token as string;
}

async function clockAt(url = service.url): Promise<{ now: string; offset_seconds: number }> {
  const reply = await request(`${url}/sandbox/clock`, 'GET', { token: await clientToken(url) });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.data;
}

async function move(body: unknown, url = service.url): Promise<Reply> {
  return request(`${url}/sandbox/clock`, 'POST', { token: await clientToken(url), body });
}

async function advance(seconds: number): Promise<void> {
  const reply = await move({ advance: seconds });
  assert.equal(reply.status, 200, reply.text);
}

/** The service that tests use remembers tokens, which do not outlive a move. */
async function asUser(user: string, method: string, path: string, body?: unknown): Promise<Reply> {
  const token = await userTokenOf(service.url, user);
  return service.ask(method, path, body === undefined ? { token } : { token, body });
}

test('goes ahead by seconds, or to a time, and goes on from there', async () => {
  const before = await clockAt();
  const moved = await move({ advance: 3_600 });
  assert.equal(moved.status, 200, moved.text);
  assert.equal(moved.json.data.offset_seconds, before.offset_seconds + 3_600);
  assert.equal(moved.headers.get('cache-control'), 'no-store');
  const target = new Date(Date.parse(moved.json.data.now) + 7_200_000);
  const named = await move({ now: target.toISOString().replace('Z', '+00:00') });
  assert.equal(named.status, 200, named.text);
  const late = Date.parse(named.json.data.now) - target.getTime();
  assert.ok(late >= 0 && late < DEADLINE_MS, `${late} ms late`);
  const after = await clockAt();
  assert.equal(after.offset_seconds, named.json.data.offset_seconds);
  assert.ok(after.now >= named.json.data.now);
});

test('refuses to go back, and more than ten years', async () => {
  const { now, offset_seconds } = await clockAt();
  const back = await move({ now });
  assert.equal(back.status, 422);
  assert.match(
    back.json.error,
    /^now must be later than the sandbox's clock, which is at \d{4}-.*Z: it only goes forward\.$/,
  );
  assert.equal(back.headers.get('error-field'), 'now');
  refused(
    await move({ advance: 316_000_000 }),
    422,
    'advance would put the clock more than 316000000 seconds ahead of the real time.',
  );
  assert.equal((await move({ now: '2999-01-01T00:00:00Z' })).status, 422);
  assert.equal((await clockAt()).offset_seconds, offset_seconds);
});

test('takes a time or seconds and nothing else', async () => {
  const { offset_seconds } = await clockAt();
  const both = 'the body must have now or advance, and not both.';
  refused(await move({}), 422, both);
  refused(await move({ now: '2040-01-01T00:00:00Z', advance: 1 }), 422, both);
  const bad: unknown[] = [
    ...['2040-01-01', '2040-02-30T00:00:00Z', '2040-01-01T00:00:00', 'soon', '', 7, null].map((now) => ({ now })),
    ...[0, -1, 1.5, '1', null, 316_000_001, 1e300, [1]].map((one) => ({ advance: one })),
    { advance: 1, offset: 1 },
    [],
    'x',
    null,
    ...Array.from({ length: 40 }, () => ({ [randomBytes(3).toString('hex')]: randomBytes(8).toString('base64') })),
    ...Array.from({ length: 40 }, () => ({ now: randomBytes(12).toString('latin1') })),
  ];
  const token = await clientToken();
  for (const body of bad) {
    const reply = await service.ask('POST', '/sandbox/clock', { token, body: JSON.stringify(body) });
    assert.ok([400, 422].includes(reply.status), `${JSON.stringify(body)}: ${reply.status} ${reply.text}`);
    assert.equal(typeof reply.json.error, 'string');
  }
  assert.equal((await clockAt()).offset_seconds, offset_seconds);
});

test('belongs to clients: neither users nor callers without a token may see or move it', async () => {
  for (const [method, body] of [
    ['GET', undefined],
    ['POST', { advance: 1 }],
    ['POST', {}],
  ] as const) {
    refused(
      await service.ask(method, '/sandbox/clock', body === undefined ? {} : { body }),
      401,
      'Authentication failed.',
    );
    for (const user of ['ann', 'till-coffee', 'sue'])
      refused(await asUser(user, method, '/sandbox/clock', body), 403, 'Forbidden.');
  }
  assert.equal((await service.ask('DELETE', '/sandbox/clock')).status, 405);
});

test('is described, and the description says that the service is a sandbox', async () => {
  const { json } = await service.ask('GET', '/openapi.json');
  assert.match(json.info.description, /This is a sandbox/);
  assert.deepEqual(Object.keys(json.paths['/sandbox/clock']), ['get', 'post']);
  assert.deepEqual(Object.keys(json.paths['/sandbox/reset']), ['post']);
  // The rest is checked without a sandbox, and takes seconds.
  const own = Object.entries(json.paths as object).filter(([path]) => path.startsWith('/sandbox/'));
  const only = { ...json, paths: Object.fromEntries(own), webhooks: {} } as Json;
  const valid = await new Validator().validate(structuredClone(only) as Record<string, unknown>);
  assert.equal(valid.valid, true, JSON.stringify(valid.errors));
  assert.deepEqual(faultsOf(only as object), []);
});

test('ends tokens whose life is over by it, and takes new ones', async () => {
  const [client, user] = [await clientToken(), await userTokenOf(service.url, 'ann')];
  const login = await service.ask('POST', '/oauth/token', {
    token: client,
    body: { grant_type: 'password', username: 'bob@test.example', password: 'bob-password' },
  });
  await advance(901);
  for (const token of [client, user])
    refused(await service.ask('GET', '/api/v2/products', { token }), 401, 'Authentication failed.');
  const app = { client_id: 'app', client_secret: 'app-secret', grant_type: 'refresh_token' };
  const body = { ...app, refresh_token: login.json.refresh_token };
  const refreshed = await service.ask('POST', '/oauth/token', { token: await clientToken(), body });
  assert.equal(refreshed.status, 200, refreshed.text);
  await advance(31 * DAY);
  const later = { ...app, refresh_token: refreshed.json.refresh_token };
  refused(
    await service.ask('POST', '/oauth/token', { token: await clientToken(), body: later }),
    401,
    'Authentication failed.',
  );
});

test('sends a purchase whose time has come', async () => {
  const sendAt = new Date(Date.parse((await clockAt()).now) + 30 * DAY * 1_000).toISOString();
  const bought = await asUser(
    'ann',
    'POST',
    '/api/v2/transactions',
    purchaseOf('latte', [{ phone_number: '+447700900123' }], { sendAt }),
  );
  assert.equal(bought.status, 201, bought.text);
  const [gift] = bought.json.data.gifts as [string];
  const types = async (): Promise<string[]> =>
    (await service.events.read(`notification-${gift}`)).map(({ type }) => type);
  await advance(29 * DAY);
  assert.deepEqual(await types(), []);
  await advance(DAY);
  await eventually(async () => (await types()).includes('NotificationSent'));
  const [started] = await service.events.read(`notification-${gift}`);
  assert.ok((started?.at ?? '') >= sendAt, `notified at ${started?.at}`);
});

test('reminds a receiver, then lets the gift expire', async () => {
  const gift = await buyOneAs('ann', { phone_number: '+447700900124' });
  const redeemed = async (): Promise<Reply> =>
    service.ask('POST', `/api/v2/gifts/${gift}/redemptions`, {
      token: await userTokenOf(service.url, 'till-coffee'),
      body: { location_id: 'bean-soho' },
    });
  const types = async (stream: string): Promise<string[]> =>
    (await service.events.read(stream)).map(({ type }) => type);
  const issued = await eventually(async () => (await service.events.read(`gift-${gift}`))[0]);
  const { expires_on } = issued.data as { expires_on: string };
  const monthBefore = new Date(Date.parse(`${expires_on}T12:00:00Z`) - 30 * DAY * 1_000).toISOString();
  assert.equal((await move({ now: monthBefore })).status, 200);
  await eventually(async () => (await types(`notification-${gift}`)).includes('ReminderSent'));
  await eventually(async () => (await types(`gift-${gift}`)).includes('GiftExpiring'));
  await advance(32 * DAY);
  refused(await redeemed(), 405, 'gift is expired and cannot be redeemed.');
  await eventually(async () => (await types(`gift-${gift}`)).includes('GiftExpired'));
});

async function buyOneAs(user: string, receiver: object = {}): Promise<string> {
  const bought = await asUser(user, 'POST', '/api/v2/transactions', purchaseOf('latte', [receiver]));
  assert.equal(bought.status, 201, bought.text);
  return (bought.json.data.gifts as [string])[0];
}

test('is kept by a process that starts later, and followed by every other', async () => {
  const { offset_seconds } = await clockAt();
  const second = await startProcess({ ...service.settings, ROLES: 'api' });
  try {
    const url = second.url ?? '';
    await eventually(async () => (await request(`${url}/readyz`, 'GET')).status === 200);
    assert.equal((await clockAt(url)).offset_seconds, offset_seconds);
    const moved = await move({ advance: 60 }, url);
    await eventually(async () => (await clockAt()).offset_seconds === moved.json.data.offset_seconds);
    await advance(60);
    const both = (await clockAt()).offset_seconds;
    assert.equal(both, moved.json.data.offset_seconds + 60);
    await eventually(async () => (await clockAt(url)).offset_seconds === both);
  } finally {
    await second.end();
  }
});

test('stamps what the command line appends with its time', async () => {
  await advance(DAY);
  const gift = await buyOneAs('ann');
  const { now } = await clockAt();
  const { PATH = '' } = process.env;
  for (const args of [
    ['history', gift],
    ['history', gift, '--as-of', now],
  ]) {
    const { stderr } = await promisify(execFile)(process.execPath, [GIFT, ...args], {
      env: { PATH, ...service.settings },
    });
    assert.doesNotMatch(stderr, /stamped later/);
  }
  const shown: string[] = [];
  for await (const { events } of service.events.readAll(undefined))
    shown.push(...events.filter(({ stream }) => stream.startsWith('access')).map(({ at }) => at));
  assert.ok(shown.length >= 2);
  for (const at of shown.slice(-2)) assert.ok(at >= now, `${at} is before ${now}`);
  const { transaction_id: transaction } = (
    await request(`${service.url}/api/v2/gifts/${gift}`, 'GET', { token: await userTokenOf(service.url, 'ann') })
  ).json.data;
  for (const args of [
    ['gifts', 'extend', gift, '--until', `${Number(now.slice(0, 4)) + 2}-12-31`],
    ['purchases', 'refund', transaction as string],
  ])
    await promisify(execFile)(process.execPath, [GIFT, ...args, '--reason', 'ticket 7'], {
      env: { PATH, ...service.settings },
    });
  const changed = [
    ...(await service.events.read(`gift-${gift}`)),
    ...(await service.events.read(`transaction-${transaction}`)),
  ].filter(({ type }) => ['GiftExtended', 'RefundRequested'].includes(type));
  assert.equal(changed.length, 2);
  for (const { at, type } of changed) assert.ok(at >= now, `${type} at ${at} is before ${now}`);
});

test.run();

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { eventually } from '../../support/assertions/until.js';
import { CONSOLE_CATALOGUE } from '../../support/service/console.js';
import { buyOne, redeem, refused } from '../../support/service/giftFlow.js';
import {
  type Json,
  type Reply,
  request,
  type Service,
  startProcess,
  startService,
} from '../../support/service/service.js';

const CALLER = 20;
const ADDRESS = 45;
const USER = 80;
const OPS = 10;
const ANONYMOUS = 60;

const test = suite('limits');
let service: Service;
let gift: string;

test.before(async () => {
  service = await startService({
    split: false,
    catalogue: CONSOLE_CATALOGUE,
    env: {
      UNKNOWN_GIFTS_PER_CALLER: String(CALLER),
      UNKNOWN_GIFTS_PER_ADDRESS: String(ADDRESS),
      USER_RATE_LIMIT: String(USER),
      CLIENT_RATE_LIMIT: '1000',
      OPS_RATE_LIMIT: String(OPS),
      ADDRESS_RATE_LIMIT: String(ANONYMOUS),
      TRUSTED_PROXIES: '127.0.0.0/8',
    },
  });
  gift = await buyOne(service, 'latte', {});
});
test.after(() => service.close());

const cookieOf = ({ headers }: Reply): string => (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
const unknown = (): string => randomBytes(10).toString('hex');

interface Asked {
  readonly user?: string;
  readonly from?: string;
  readonly method?: string;
  readonly body?: unknown;
  readonly url?: string;
}

async function ask(path: string, { user, from = '192.0.2.1', method = 'GET', body, url }: Asked = {}): Promise<Reply> {
  return request((url ?? service.url) + path, method, {
    headers: { 'X-Forwarded-For': from },
    ...(user === undefined ? {} : { token: await service.userToken(user) }),
    ...(body === undefined ? {} : { body }),
  });
}

/** What is left of a limit, by the header `RateLimit`; `undefined`: it does not name it. */
function leftOf({ headers }: Reply, name: string): { left: number; seconds: number } | undefined {
  const item = new RegExp(`(?:^|, )"${name}";r=(\\d+);t=(\\d+)(?:$|, )`).exec(headers.get('ratelimit') ?? '');
  return item === null ? undefined : { left: Number(item[1]), seconds: Number(item[2]) };
}

/** Waits where a window is about to end: no count would survive it. */
async function inOneWindow(seconds: number | undefined, needed = 10): Promise<void> {
  if (seconds !== undefined && seconds <= needed) await sleep(seconds * 1_000 + 50);
}

function limited(reply: Reply, name: string, quota: number, windowSeconds: number): void {
  refused(reply, 429, 'Too many requests.');
  assert.equal(reply.headers.get('error-code'), 'too_many_requests');
  const status = leftOf(reply, name);
  assert.equal(status?.left, 0);
  assert.equal(reply.headers.get('retry-after'), String(status?.seconds));
  assert.ok(status !== undefined && status.seconds >= 1 && status.seconds <= windowSeconds);
  assert.ok(reply.headers.get('ratelimit-policy')?.includes(`"${name}";q=${quota};w=${windowSeconds}`));
}

/** As many look-ups of unknown gifts as are left to the caller, and more where `count` says so. */
async function guess(requested: Asked, count: number): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (let index = 0; index < count; index++)
    replies.push(await ask(requested.user === undefined ? `/g/${unknown()}` : `/api/v2/gifts/${unknown()}`, requested));
  return replies;
}

test('counts an unknown gift on every route that takes one, by id and by shortcode', async () => {
  const { paths } = (await service.ask('GET', '/openapi.json')).json as {
    paths: Record<string, Record<string, Json>>;
  };
  const routes = Object.entries(paths).flatMap(([path, item]) =>
    path.startsWith('/ops/') || !path.includes('{giftId}') ? [] : Object.keys(item).map((method) => ({ method, path })),
  );
  assert.ok(routes.length >= 12, `${routes.length} routes`);
  const address = '192.0.2.2';
  await inOneWindow(leftOf(await ask(`/g/${unknown()}`, { from: address }), 'unknown-gifts-address')?.seconds);
  await inOneWindow(leftOf((await guess({ user: 'ann', from: address }, 1))[0] as Reply, 'unknown-gifts')?.seconds);
  let before = leftOf((await guess({ user: 'ann', from: address }, 1))[0] as Reply, 'unknown-gifts')?.left;
  for (const [index, { method, path }] of routes.entries()) {
    const id = index % 2 === 0 ? unknown() : service.shortcodeOf(unknown()).toLowerCase();
    const requested = path.replace('{giftId}', id).replace(/\{\w+\}/, 'latest');
    const reply = await ask(requested, {
      method: method.toUpperCase(),
      from: address,
      ...(path.startsWith('/api/') ? { user: 'ann' } : {}),
      ...(method === 'get' ? {} : { body: {} }),
    });
    assert.equal(reply.status, 404, `${method} ${path}: ${reply.text}`);
    if (!path.startsWith('/api/')) {
      assert.ok(leftOf(reply, 'unknown-gifts-address') !== undefined, path);
      continue;
    }
    const now = leftOf(reply, 'unknown-gifts')?.left;
    assert.equal(now, (before ?? 0) - 1, `${method} ${path}`);
    before = now;
  }
});

test('refuses a guesser gifts that there are, too, and leaves its other requests alone', async () => {
  const requested = { user: 'bob', from: '192.0.2.3' };
  await inOneWindow(leftOf((await guess(requested, 1))[0] as Reply, 'unknown-gifts')?.seconds);
  const replies = await guess(requested, CALLER);
  for (const reply of replies.slice(0, CALLER - 2)) refused(reply, 404, 'gift not found');
  for (const path of [
    `/api/v2/gifts/${unknown()}`,
    `/api/v2/gifts/${gift}`,
    `/api/v2/gifts/${service.shortcodeOf(gift)}/`,
  ])
    limited(await ask(path, requested), 'unknown-gifts', CALLER, 900);
  const redeeming = { ...requested, method: 'POST', body: { location_id: 'bean-soho' } };
  limited(await ask(`/api/v2/gifts/${gift}/redemptions`, redeeming), 'unknown-gifts', CALLER, 900);
  limited(await ask(`/api/v2/gifts/${gift}`, { ...requested, from: '192.0.2.4' }), 'unknown-gifts', CALLER, 900);
  assert.equal((await ask('/api/v2/me', requested)).status, 200);
  assert.equal((await ask(`/g/${service.shortcodeOf(gift)}`, { from: '192.0.2.3' })).status, 200);
  assert.equal((await ask(`/api/v2/gifts/${gift}`, { ...requested, user: 'ann' })).status, 200);
});

test('counts requests without a valid token by address, and refuses no login, webhook or token for it', async () => {
  const from = '192.0.2.77';
  const path = `/api/v2/gifts/${gift}`;
  await inOneWindow(leftOf(await ask(path, { from }), 'address')?.seconds);
  const first = await ask(path, { from });
  refused(first, 401, 'Authentication failed.');
  const { left = 0 } = leftOf(first, 'address') ?? {};
  assert.ok(left > 0 && left < ANONYMOUS);
  const form = { grant_type: 'nonsense' };
  refused(await ask('/oauth/token', { from, method: 'POST', body: form }), 400, 'Unsupported grant type.');
  assert.equal(leftOf(await ask('/ops/projections', { from }), 'address')?.left, left - 2, 'the faulty login counts');
  for (let sent = 0; sent < left - 2; sent++) await ask(`/g/${service.shortcodeOf(gift)}`, { from });
  for (const [requested, method, body] of [
    [path, 'GET', undefined],
    ['/ops/projections', 'GET', undefined],
    [`/g/${service.shortcodeOf(gift)}`, 'GET', undefined],
    ['/oauth/token', 'POST', form],
    ['/oauth/token', 'POST', []],
  ] as const)
    limited(await ask(requested, { from, method, body }), 'address', ANONYMOUS, 60);
  const login = { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' };
  assert.equal((await ask('/oauth/token', { from, method: 'POST', body: login })).status, 200);
  assert.equal((await ask(path, { from, user: 'ann' })).status, 200);
  assert.equal((await ask(`/g/${service.shortcodeOf(gift)}`, { from: '192.0.2.78' })).status, 200);
  for (const free of ['/healthz', '/readyz', '/openapi.json']) assert.equal((await ask(free, { from })).status, 200);
});

test('keeps support out of the console for no requests without a token at their address', async () => {
  const from = '192.0.2.79';
  const page = `/g/${service.shortcodeOf(gift)}`;
  await inOneWindow(leftOf(await ask(page, { from }), 'address')?.seconds);
  const { left = 0 } = leftOf(await ask(page, { from }), 'address') ?? {};
  for (let sent = 0; sent < left; sent++) await ask(page, { from });
  limited(await ask(page, { from }), 'address', ANONYMOUS, 60);
  const session = async (name: string, body: object, cookie = ''): Promise<Reply> =>
    request(`${service.url}/console/session/${name}`, 'POST', { headers: { 'X-Forwarded-For': from, cookie }, body });
  const started = await session('start', { username: 'sue@test.example', password: 'sue-password' });
  assert.equal(started.status, 200, started.text);
  const renewed = await session('refresh', {}, cookieOf(started));
  assert.equal(renewed.status, 200, renewed.text);
  assert.equal((await session('end', {}, cookieOf(renewed))).status, 200);
  refused(await session('refresh', {}, cookieOf(renewed)), 401, 'Authentication failed.');
  limited(await session('start', { username: 'sue@test.example' }), 'address', ANONYMOUS, 60);
});

test('answers no more guesses than the limit, however many are asked at once', async () => {
  const requested = { user: 'cat', from: '192.0.2.5' };
  const { left, seconds } = leftOf((await guess(requested, 1))[0] as Reply, 'unknown-gifts') ?? { left: 0, seconds: 0 };
  await inOneWindow(seconds);
  const replies = await Promise.all(
    Array.from({ length: 60 }, async () => ask(`/api/v2/gifts/${unknown()}`, requested)),
  );
  const count = (status: number): number => replies.filter((reply) => reply.status === status).length;
  const expected = seconds <= 10 ? CALLER : left;
  assert.deepEqual([count(404), count(429)], [expected, 60 - expected]);
});

test('counts guesses without a token by address, an IPv6 network of /64 as one', async () => {
  const network = (host: number): string => `2001:db8:0:7::${host.toString(16)}`;
  const first = await ask(`/g/${service.shortcodeOf(unknown())}`, { from: network(1) });
  refused(first, 404, 'gift not found');
  const { left, seconds } = leftOf(first, 'unknown-gifts-address') ?? { left: 0, seconds: 0 };
  await inOneWindow(seconds, 20);
  for (let index = 0; index < (seconds <= 20 ? ADDRESS : left); index++)
    assert.equal((await ask(`/g/${unknown()}`, { from: network(index) })).status, 404);
  for (const path of [`/g/${service.shortcodeOf(gift)}`, `/g/${unknown()}`])
    limited(await ask(path, { from: network(77) }), 'unknown-gifts-address', ADDRESS, 900);
  assert.equal((await ask(`/g/${service.shortcodeOf(gift)}`, { from: '2001:db8:0:8::1' })).status, 200);
  // Whoever shares the address with a guesser goes on, with a tenth of its own limit.
  assert.equal(
    (await ask(`/api/v2/gifts/${service.shortcodeOf(gift)}`, { user: 'sue', from: network(1) })).status,
    200,
  );
  const replies = await guess({ user: 'sue', from: network(1) }, 3);
  assert.deepEqual(
    replies.map(({ status }) => status),
    [404, 404, 429],
  );
  limited(replies[2] as Reply, 'unknown-gifts-address', ADDRESS, 900);
  assert.equal((await ask(`/api/v2/gifts/${service.shortcodeOf(gift)}`, { user: 'sue' })).status, 200);
});

test('does not believe an address that no trusted proxy tells', async () => {
  const far = { from: '192.0.2.9, 203.0.113.9' };
  const reply = await ask(`/g/${unknown()}`, far);
  const spoofed = await ask(`/g/${unknown()}`, { from: '198.51.100.1, 203.0.113.9' });
  const [one, other] = [leftOf(reply, 'unknown-gifts-address'), leftOf(spoofed, 'unknown-gifts-address')];
  assert.ok(one !== undefined && other !== undefined && (other.left === one.left - 1 || other.seconds > one.seconds));
});

test('says what is left to user and client, and refuses the user that has nothing left', async () => {
  const from = '192.0.2.10';
  const fresh = await ask('/api/v2/me', { user: 'till-coffee', from });
  await inOneWindow(leftOf(fresh, 'user')?.seconds, 5);
  const first = await ask('/api/v2/me', { user: 'till-coffee', from });
  assert.equal(first.status, 200);
  assert.match(first.headers.get('ratelimit') ?? '', /^"user";r=\d+;t=\d+, "client";r=\d+;t=\d+$/);
  assert.equal(first.headers.get('ratelimit-policy'), '"user";q=80;w=60, "client";q=1000;w=60');
  for (let left = leftOf(first, 'user')?.left ?? 0; left > 0; left--) {
    const reply = await ask('/api/v2/me', { user: 'till-coffee', from });
    assert.deepEqual([reply.status, leftOf(reply, 'user')?.left], [200, left - 1]);
  }
  const other = await ask('/api/v2/me', { user: 'ann', from });
  for (let count = 0; count < 5; count++)
    limited(await ask('/api/v2/me', { user: 'till-coffee', from }), 'user', USER, 60);
  const later = await ask('/api/v2/me', { user: 'ann', from });
  const [before, after] = [leftOf(other, 'client'), leftOf(later, 'client')];
  assert.ok(before !== undefined && after !== undefined);
  assert.ok(after.left === before.left - 1 || after.seconds > before.seconds, 'refused requests count for nobody');
  refused(await redeem(service, gift, 'till-coffee'), 429, 'Too many requests.');
  const page = await service.ask('GET', '/api/v2/brands', { token: await service.clientToken() });
  assert.match(page.headers.get('ratelimit') ?? '', /^"client";r=\d+;t=\d+$/);
  assert.equal(page.headers.get('ratelimit-policy'), '"client";q=1000;w=60');
});

test('keeps the headers on refusals, replays and conditional answers', async () => {
  const token = await service.userToken('ann');
  const requested = { token, key: 'limits-1', body: {} };
  const own = await buyOne(service, 'latte', undefined, 'ann');
  for (const replayed of [null, 'true']) {
    const reply = await service.ask('POST', `/api/v2/gifts/${service.shortcodeOf(own)}/claim`, requested);
    assert.equal(reply.headers.get('idempotent-replayed'), replayed);
    assert.ok(leftOf(reply, 'user') !== undefined);
  }
  const refusal = await service.ask('GET', '/api/v2/transactions?limit=x', { token });
  assert.equal(refusal.status, 422);
  assert.ok(leftOf(refusal, 'user') !== undefined);
  const { headers } = await service.ask('GET', '/api/v2/brands', { token });
  const again = await service.ask('GET', '/api/v2/brands', {
    token,
    headers: { 'If-None-Match': headers.get('etag') ?? '' },
  });
  assert.equal(again.status, 304);
  assert.ok(leftOf(again, 'user') !== undefined);
});

test('limits neither health, metrics nor the description', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json']) {
    const reply = await service.ask('GET', path, {});
    assert.equal(reply.headers.get('ratelimit'), null, path);
  }
});

test('limits support by itself: what callers of the API ask for keeps nobody out of /ops', async () => {
  const first = await ask('/ops/parked', { user: 'sue' });
  await inOneWindow(leftOf(first, 'ops')?.seconds);
  const before = leftOf(await ask('/ops/parked', { user: 'sue' }), 'ops')?.left ?? 0;
  const statuses: number[] = [];
  for (let n = 0; n <= USER; n++) statuses.push((await ask('/api/v2/brands', { user: 'sue' })).status);
  assert.equal(statuses.at(-1), 429, 'as a caller of the API');
  const there = await ask('/ops/parked', { user: 'sue' });
  assert.deepEqual([there.status, leftOf(there, 'ops')?.left], [200, before - 1]);
  assert.equal(leftOf(there, 'client'), undefined);
  let last = there;
  for (let n = 0; n < OPS; n++) last = await ask('/ops/parked', { user: 'sue' });
  limited(last, 'ops', OPS, 60);
  assert.equal(
    (await ask('/ops/access?from=2026-05-04&to=2026-05-04', { user: 'aud' })).status,
    200,
    'another person goes on',
  );
});

test('shows what was refused in the metrics', async () => {
  const { text } = await service.ask('GET', '/metrics');
  for (const name of ['user', 'unknown-gifts', 'unknown-gifts-address'])
    assert.match(text, new RegExp(`^gift_limited_requests_total\\{limit="${name}"\\} [1-9]\\d*$`, 'm'));
  assert.match(text, /^gift_limited_requests_total\{limit="client"\} 0$/m);
});

test('counts together with another process, also after that was killed and started anew', async () => {
  const from = '192.0.2.20';
  const start = (): ReturnType<typeof startProcess> => startProcess({ ...service.settings, ROLES: 'api' });
  const refuses = async (user: string, url = service.url): Promise<boolean> => {
    const reply = await ask(`/api/v2/gifts/${gift}`, { user, from, url });
    if (reply.status === 429) limited(reply, 'unknown-gifts', CALLER, 900);
    return reply.status === 429;
  };
  const other = await start();
  const url = other.url ?? '';
  try {
    for (const user of ['till-shops', 'vip'])
      await inOneWindow(leftOf((await guess({ user, from }, 1))[0] as Reply, 'unknown-gifts')?.seconds, 30);
    let answered = 0;
    for (let index = 0; index < CALLER * 2; index++) {
      const [reply] = await guess({ user: 'till-shops', from, ...(index % 2 === 0 ? {} : { url }) }, 1);
      if (reply?.status === 404) answered++;
      await sleep(15);
    }
    assert.ok(answered >= CALLER - 2 && answered < CALLER * 2 - 1, `${answered} guesses were answered`);
    assert.ok((await refuses('till-shops')) && (await refuses('till-shops', url)));
    await guess({ user: 'vip', from: '192.0.2.21', url }, CALLER);
    await eventually(async () => refuses('vip'), 'the limit in the first process');
  } finally {
    await other.end('SIGKILL');
  }
  const next = await start();
  try {
    await eventually(async () => refuses('vip', next.url), 'the limit after a restart');
  } finally {
    await next.end();
  }
});

test.run();

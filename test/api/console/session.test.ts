/** Logins of the console (docs/console.md#sign-in), and its page, as a browser asks for them. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';
import { CONSOLE_CATALOGUE } from '../../support/service/console.js';
import { client } from '../../support/fixtures/testCatalogue.js';

const test = suite<{ service: Service }>('console: sessions');

const BOSS = CONSOLE_CATALOGUE.users.at(-1);

test.before(async (context) => {
  context.service = await startService({ catalogue: CONSOLE_CATALOGUE });
});
test.after(async ({ service }) => service.close());

interface Sent {
  readonly cookie?: string;
  readonly site?: string;
  readonly body?: object;
}

const post = async (
  service: Service,
  path: string,
  { cookie, site = 'same-origin', body = {} }: Sent = {},
): Promise<Reply> =>
  service.ask('POST', `/console/session${path}`, {
    body,
    headers: { 'sec-fetch-site': site, ...(cookie === undefined ? {} : { cookie: `other=1; ${cookie}` }) },
  });

const signIn = async (service: Service, name: string, password = `${name}-password`): Promise<Reply> =>
  post(service, '/start', { body: { username: `${name}@test.example`, password } });

/** The cookie as a browser sends it back. */
const cookieOf = ({ headers }: Reply): string => (headers.get('set-cookie') ?? '').split(';')[0] ?? '';

const opsStatus = async (service: Service, token: string): Promise<number> =>
  (await service.ask('GET', '/ops/parked', { token })).status;

test('signs staff in, by a cookie for the console alone and a token for /ops', async ({ service }) => {
  const reply = await signIn(service, 'sue');
  assert.equal(reply.status, 200, reply.text);
  const { access_token, user_id, roles } = reply.json.data;
  assert.deepEqual([user_id, roles], ['sue', ['support']]);
  assert.match(reply.headers.get('set-cookie') ?? '', /^gift_console=[\w.-]+; Max-Age=900; HttpOnly; SameSite=Strict$/);
  assert.equal(reply.headers.get('cache-control'), 'no-store');
  assert.ok(!reply.text.includes(cookieOf(reply).split('=')[1] ?? '?'), 'the refresh token is in the cookie alone');
  assert.equal(await opsStatus(service, access_token), 200);
});

test('goes on by the cookie, each of which works once more only for a moment', async ({ service }) => {
  const first = await signIn(service, 'boss');
  const second = await post(service, '/refresh', { cookie: cookieOf(first) });
  assert.deepEqual([second.status, second.json.data.roles], [200, ['support', 'auditor']]);
  assert.notEqual(cookieOf(second), cookieOf(first));
  assert.equal(await opsStatus(service, second.json.data.access_token), 200);
  // Two tabs ask at once.
  assert.equal((await post(service, '/refresh', { cookie: cookieOf(first) })).status, 200);
});

test('ends the session at once, for its tokens too', async ({ service }) => {
  const reply = await signIn(service, 'aud');
  const cookie = cookieOf(reply);
  const ended = await post(service, '/end', { cookie });
  assert.equal(ended.status, 200);
  assert.match(ended.headers.get('set-cookie') ?? '', /^gift_console=; Max-Age=0;/);
  assert.equal((await post(service, '/refresh', { cookie })).status, 401);
  assert.equal(await opsStatus(service, reply.json.data.access_token), 401);
  assert.equal((await post(service, '/end')).status, 200);
});

test('refuses a wrong password, users without a role, and users that the client does not serve', async ({
  service,
}) => {
  assert.equal((await signIn(service, 'sue', 'wrong')).status, 401);
  assert.equal((await signIn(service, 'nobody')).status, 401);
  // As a wrong password, so that nobody learns here that theirs is right.
  for (const name of ['ann', 'bob']) {
    const refused = await signIn(service, name);
    assert.deepEqual(
      [refused.status, refused.text, refused.headers.get('set-cookie')],
      [401, (await signIn(service, name, 'wrong')).text, null],
    );
  }
  for (const cookie of [undefined, 'gift_console=', 'gift_console=nonsense'])
    assert.equal((await post(service, '/refresh', cookie === undefined ? {} : { cookie })).status, 401);
});

test('counts the right password of a user without a role as a failure, as a wrong one', async ({ service }) => {
  const statuses: number[] = [];
  for (let attempt = 1; attempt <= 11; attempt += 1) statuses.push((await signIn(service, 'cat')).status);
  // Otherwise a guesser would learn of the right password by the guesses that are left.
  assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 401), 429]);
});

test('refuses calls that the page of another site makes', async ({ service }) => {
  const cookie = cookieOf(await signIn(service, 'sue'));
  for (const site of ['cross-site', 'same-site']) {
    const body = { username: 'sue@test.example', password: 'sue-password' };
    assert.equal((await post(service, '/start', { site, body })).status, 403);
    for (const path of ['/refresh', '/end']) assert.equal((await post(service, path, { site, cookie })).status, 403);
  }
  assert.equal((await post(service, '/refresh', { cookie })).status, 200);
});

test('ends the session of the cookie that it replaces, and removes a cookie that opens nothing', async ({
  service,
}) => {
  const before = cookieOf(await signIn(service, 'sue'));
  const body = { username: 'aud@test.example', password: 'aud-password' };
  assert.equal((await post(service, '/start', { cookie: before, body })).status, 200);
  const refused = await post(service, '/refresh', { cookie: before });
  assert.equal(refused.status, 401);
  assert.match(refused.headers.get('set-cookie') ?? '', /^gift_console=; Max-Age=0;/);
});

test('takes no cookie for a call of /ops', async ({ service }) => {
  const cookie = cookieOf(await signIn(service, 'sue'));
  assert.equal((await service.ask('GET', '/ops/parked', { headers: { cookie } })).status, 401);
});

test('notices that a role was taken away, or the client, and says what to import without one', async () => {
  const service = await startService({ catalogue: CONSOLE_CATALOGUE });
  try {
    const signedIn = await signIn(service, 'boss');
    assert.equal(signedIn.status, 200, signedIn.text);
    const cookie = cookieOf(signedIn);
    await service.import({ users: [{ ...BOSS, roles: [] }] });
    let status = 200;
    await eventually(async () => (status = (await post(service, '/refresh', { cookie })).status) !== 200);
    assert.equal(status, 403);
    assert.equal((await post(service, '/refresh', { cookie })).status, 401);
    await service.import({ clients: [client('console', { staff: false })] });
    const refusal = async (): Promise<string | null> => (await signIn(service, 'sue')).headers.get('error-code');
    await eventually(async () => (await refusal()) === 'no_console_client');
    await service.import({ clients: [client('console', { active: false })] });
    assert.equal(await refusal(), 'no_console_client');
  } finally {
    await service.close();
  }
});

test('marks its cookie for https where the service is reached by https', async () => {
  const service = await startService({
    catalogue: CONSOLE_CATALOGUE,
    env: { PUBLIC_URL: 'https://gifts.example' },
    split: false,
  });
  try {
    assert.match((await signIn(service, 'sue')).headers.get('set-cookie') ?? '', /; Secure$/);
  } finally {
    await service.close();
  }
});

test('sends its page whole, under a policy without inline text, and only to reads', async ({ service }) => {
  const page = await service.ask('GET', '/console');
  assert.equal(page.status, 200);
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval/);
  for (const [, file = ''] of page.text.matchAll(/(?:href|src)="([^"]+)"/g))
    assert.equal((await service.ask('GET', `/${file}`)).status, 200, file);
  assert.equal((await service.ask('POST', '/console')).status, 405);
  assert.equal((await service.ask('GET', '/console/other.js')).status, 404);
});

test.run();

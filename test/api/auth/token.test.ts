/** The token endpoint and what tokens open, over HTTP (docs/api/tokens.md). */
import { hashedSubjects } from '../../support/fixtures/memorySubjects.js';
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hash as argon2 } from '@node-rs/argon2';
import { decodeJwt } from 'jose';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Auth, createAuth } from '../../../src/api/auth/auth.js';
import type { AccountDocument, UserDocument } from '../../../src/projections/accounts.js';
import { readBasic } from '../../../src/api/auth/clients.js';
import { throttle } from '../../../src/api/auth/throttle.js';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import type { Route, RouteCaller } from '../../../src/api/pipeline/route.js';
import type { PipelineDeps } from '../../../src/api/pipeline/exchange.js';
import { serve } from '../../../src/api/pipeline/pipeline.js';
import { routerMaker } from '../../../src/api/pipeline/router.js';
import { application } from '../../../src/api/pipeline/server.js';
import { costOf, hashPassword, PRESENT_COST } from '../../../src/lib/passwordHash.js';
import { shortcodesUnder } from '../../../src/domain/giftIds.js';
import { opaqueString } from '../../../src/lib/precis.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { type MemoryEvents, memoryEvents } from '../../support/engines/memoryEvents.js';
import {
  type Clock,
  type MemoryAccounts,
  type MemoryRecords,
  PASSWORD,
  SECRET,
  TOKEN_KEY,
  clockAt,
  hash,
  memoryRecords,
  someAccounts,
} from './support.js';

interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Readonly<Record<string, unknown>> & { readonly access_token: string; readonly refresh_token: string };
}
interface Process {
  readonly auth: Auth;
  readonly server: Server;
  /** Asks for a token; an object is sent as JSON, a string as it is. */
  token(body: object | string, headers?: Record<string, string>): Promise<Answered>;
  revoke(body: object, headers?: Record<string, string>): Promise<Answered>;
  login(username?: string, password?: string, client?: string): Promise<Answered>;
  refresh(refreshToken: string, client?: string, secret?: string): Promise<Answered>;
  clientToken(id?: string): Promise<string>;
  /** The status of a route that needs such a caller. */
  opens(accessToken: string | undefined, need?: RouteCaller): Promise<number>;
}

const test = suite<{
  clock: Clock;
  records: MemoryRecords;
  accounts: MemoryAccounts;
  log: MemoryEvents;
  here: Process;
  there: Process;
  lines: string[];
}>('tokens over HTTP');
const ttl = { access: 900, refresh: 30 * 86_400, session: 90 * 86_400 };

function probe(need: RouteCaller): Route {
  return {
    method: 'GET',
    path: `/api/v2/${need}`,
    operation: need,
    summary: need,
    tag: 'Test',
    caller: need,
    answers: [],
    errors: [],
    handle: async (call) => ({
      status: 200,
      body:
        call.principal.kind === 'user' ? { ...call.principal, user: call.principal.user.id } : { ...call.principal },
    }),
  };
}

async function send(
  server: Server,
  method: string,
  path: string,
  headers: Record<string, string>,
  body = '',
): Promise<Answered> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        port,
        method,
        path,
        headers: { ...headers, ...(body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }) },
        agent: false,
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: JSON.parse(text) as Answered['body'],
          }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

async function start(parts: {
  clock: Clock;
  records: MemoryRecords;
  accounts: MemoryAccounts;
  log: MemoryEvents;
  lines: string[];
}): Promise<Process> {
  const auth = createAuth({
    ...parts,
    passwordCosts: { find: async () => [] },
    now: parts.clock.now,
    tokenKeys: [TOKEN_KEY],
    hash,
    subjects: hashedSubjects(hash),
    ttl,
    trustedProxies: ['127.0.0.0/8'],
  });
  const logger = pino({ level: 'trace' }, { write: (line: string) => parts.lines.push(line) });
  const pipeline: PipelineDeps = {
    recognise: auth.recognise,
    authenticate: auth.authenticate,
    addressOf: (ctx) => auth.address(ctx.req.socket.remoteAddress, ctx.get('x-forwarded-for')),
    records: parts.records,
    hash,
    shortcodes: shortcodesUnder(hash),
    positions: {
      parse: () => undefined,
      stored: () => undefined,
      format: (position) => position,
      wait: async () => undefined,
      waitForEnd: async () => undefined,
    },
    onUnstored: () => undefined,
  };
  const routerOf = routerMaker((route, allow) => serve(route, pipeline, allow));
  const app = application(logger, [], {
    routers: [auth.router(routerOf), routerOf('/api/v2', [probe('any'), probe('user'), probe('none')])],
  });
  const handle = app.callback();
  const server = createServer((incoming, response) => void handle(incoming, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const process: Process = {
    auth,
    server,
    token: async (body, headers = {}) =>
      typeof body === 'string'
        ? send(
            server,
            'POST',
            '/oauth/token',
            { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
            body,
          )
        : send(
            server,
            'POST',
            '/oauth/token',
            { 'Content-Type': 'application/json', ...headers },
            JSON.stringify(body),
          ),
    revoke: async (body, headers = {}) =>
      send(server, 'POST', '/oauth/revoke', { 'Content-Type': 'application/json', ...headers }, JSON.stringify(body)),
    login: async (username = 'ada', password = PASSWORD, client = 'app') =>
      process.token(
        { grant_type: 'password', username, password },
        { Authorization: `Bearer ${await process.clientToken(client)}` },
      ),
    refresh: async (refreshToken, client = 'app', secret = SECRET) =>
      process.token({
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
        client_id: client,
        client_secret: secret,
      }),
    clientToken: async (id = 'app') =>
      (await process.token({ grant_type: 'client_credentials', client_id: id, client_secret: SECRET })).body
        .access_token,
    opens: async (accessToken, need = 'user') =>
      (
        await send(
          server,
          'GET',
          `/api/v2/${need}`,
          accessToken === undefined ? {} : { Authorization: `Bearer ${accessToken}` },
        )
      ).status,
  };
  return process;
}

test.before.each(async (context) => {
  const clock = clockAt();
  const parts = {
    clock,
    records: memoryRecords(clock.now),
    accounts: await someAccounts(),
    log: memoryEvents(),
    lines: [],
  };
  Object.assign(context, parts, { here: await start(parts), there: await start(parts) });
});

test.after.each(async ({ here, there }) => {
  for (const { auth, server } of [here, there]) {
    await new Promise((resolve) => server.close(resolve));
    await auth.close();
  }
});

function refused(answer: Answered, status: number, error: string): void {
  assert.is(answer.status, status);
  assert.equal(answer.body, { error });
  if (status !== 401) assert.is(answer.headers['www-authenticate'], undefined);
}
function failed(answer: Answered, challenge = 'Bearer'): void {
  refused(answer, 401, 'Authentication failed.');
  assert.is(answer.headers['www-authenticate'], challenge);
}
const BASIC = 'Basic realm="gift", charset="UTF-8"';

// What each grant gives.

test('client credentials in the body', async ({ here }) => {
  const answer = await here.token({ grant_type: 'client_credentials', client_id: 'app', client_secret: SECRET });
  assert.is(answer.status, 200);
  assert.equal(answer.body, { token_type: 'Bearer', expires_in: 900, access_token: answer.body.access_token });
  assert.is(answer.headers['cache-control'], 'no-store');
  assert.match(String(answer.headers['content-type']), /^application\/json/);
  assert.is(await here.opens(answer.body.access_token, 'any'), 200);
});

test('client credentials by HTTP Basic, encoded as RFC 6749 wants it or not', async ({ here }) => {
  const basic = (id: string, secret: string): Record<string, string> => ({
    Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
  });
  const form = (text: string): string => new URLSearchParams({ x: text }).toString().slice(2);
  assert.is((await here.token({ grant_type: 'client_credentials' }, basic('app', SECRET))).status, 200);
  assert.is((await here.token({ grant_type: 'client_credentials' }, basic(form('app'), form(SECRET)))).status, 200);
  assert.is((await here.token('grant_type=client_credentials', basic('app', SECRET))).status, 200);
  assert.is(
    (await here.token({ grant_type: 'client_credentials', client_id: 'app' }, basic('app', SECRET))).status,
    200,
  );
  for (const headers of [
    basic('app', 'wrong'),
    basic('nobody', SECRET),
    { Authorization: 'Basic' },
    { Authorization: 'Basic ' },
    { Authorization: 'Basic bm9jb2xvbg==' },
  ]) {
    failed(await here.token({ grant_type: 'client_credentials' }, headers), BASIC);
    failed(await here.token({ grant_type: 'refresh_token', refresh_token: 'x' }, headers), BASIC);
    failed(await here.revoke({ token: 'x' }, headers), BASIC);
  }
  failed(await here.token({ grant_type: 'client_credentials', client_id: 'other' }, basic('app', SECRET)), BASIC);
});

test('takes a form-encoded id in a Basic header, and a secret encoded or not', () => {
  const read = (text: string): unknown => readBasic(`Basic ${Buffer.from(text).toString('base64')}`);
  assert.equal(read('till%3A1:a+b%2B'), { id: 'till:1', secrets: ['a+b%2B', 'a b+'] });
  assert.equal(read('app:a+b'), { id: 'app', secrets: ['a+b', 'a b'] });
});

test('fields of a form are flat', async ({ here }) => {
  for (const id of ['client_id[a]', 'client_id[]', 'client_id.a', '[client_id]']) {
    const answered = await here.token(`grant_type=client_credentials&${id}=app&client_secret=${SECRET}`);
    assert.equal([answered.status, answered.body['error']], [422, 'client_id is required'], id);
  }
  const twice = await here.token(`grant_type=client_credentials&client_id=app&client_id=app&client_secret=${SECRET}`);
  assert.equal([twice.status, twice.body['error']], [422, 'client_id must be given only once']);
  const encoded = await here.token(
    `grant_type=client%5Fcredentials&%63lient_id=app&client_secret=${encodeURIComponent(SECRET)}&`,
  );
  assert.is(encoded.status, 200);
  for (const odd of ['__proto__=x', '__proto__[x]=y', '=x', '&&', '%ff=x'])
    assert.ok(
      [401, 422].includes(
        (await here.token(`grant_type=client_credentials&client_id=app&client_secret=wrong&${odd}`)).status,
      ),
      odd,
    );
});

test('a Basic header of spaces is read as fast as any', () => {
  assert.throws(
    () => readBasic(`basic${' '.repeat(1_000_000)}x`),
    (error: unknown) => error instanceof HttpError,
  );
  assert.is(readBasic(`basic${' '.repeat(1_000_000)}x y`), undefined);
  // In every way that spaces can be parted it took seconds for 60,000 of them, and would take hours for these.
});

test('a username with blanks around it, and one in another width; a password composed or not', async ({
  here,
  accounts,
}) => {
  for (const username of [' ada', 'ada\r\n', '\u3000ＡＤＡ', '\u202aada\u202c'])
    assert.is((await here.login(username)).status, 200, JSON.stringify(username));
  accounts.change('user-ada', { password_hash: await hashPassword(opaqueString('caf\u00e9 \u00a0na\u00efve')) });
  for (const password of ['caf\u00e9 \u00a0na\u00efve', 'cafe\u0301  nai\u0308ve', 'cafe\u0301 \u2003na\u00efve'])
    assert.is((await here.login('ada', password)).status, 200, JSON.stringify(password));
  for (const password of ['cafe  naive', 'caf\u00e9 na\u00efve', ' caf\u00e9  na\u00efve', 'CAF\u00c9  na\u00efve'])
    failed(await here.login('ada', password));
  accounts.change('user-ada', { password_hash: await hashPassword('cafe\u0301') });
  assert.is((await here.login('ada', 'cafe\u0301')).status, 200, 'as another system hashed it');
});

test("a user's login, as JSON and as a form", async ({ here }) => {
  const Authorization = `Bearer ${await here.clientToken()}`;
  const json = await here.token({ grant_type: 'password', username: 'ADA', password: PASSWORD }, { Authorization });
  const form = await here.token(
    new URLSearchParams({ grant_type: 'password', username: 'ada', password: PASSWORD }).toString(),
    { Authorization },
  );
  for (const { status, body, headers } of [json, form]) {
    assert.is(status, 200);
    assert.equal(body, {
      token_type: 'Bearer',
      expires_in: 900,
      access_token: body.access_token,
      refresh_token: body.refresh_token,
    });
    assert.is(headers['cache-control'], 'no-store');
    const [session, secret = ''] = body.refresh_token.split('.');
    assert.is(Buffer.from(secret, 'base64url').length, 32);
    const { sid, ...claims } = decodeJwt(body.access_token);
    assert.is(sid, `${session}.0`);
    assert.equal(Object.keys(claims).sort(), ['exp', 'iat', 'sub']);
    assert.is(claims.sub, 'ada');
    assert.is(await here.opens(body.access_token), 200);
  }
});

test('a refresh without an Authorization header, whatever stands in one', async ({ here }) => {
  const login = await here.login();
  const next = await here.refresh(login.body.refresh_token);
  assert.is(next.status, 200);
  assert.is(next.headers['cache-control'], 'no-store');
  assert.is.not(next.body.refresh_token, login.body.refresh_token);
  assert.is(await here.opens(next.body.access_token), 200);
  const body = {
    grant_type: 'refresh_token',
    refresh_token: next.body.refresh_token,
    client_id: 'app',
    client_secret: SECRET,
  };
  assert.is((await here.token(body, { Authorization: 'Bearer nonsense' })).status, 200);
});

// What is refused.

test('ignores parameters that a grant does not know, and those without a value (RFC 6749 3.2)', async ({ here }) => {
  const basic = (id: string): Record<string, string> => ({
    Authorization: `Basic ${Buffer.from(`${id}:${SECRET}`).toString('base64')}`,
  });
  const bearer = { Authorization: `Bearer ${await here.clientToken()}` };
  const more = {
    scope: '',
    audience: 'x',
    resource: ['a'],
    client_id: 'app',
    client_secret: '',
    constructor: 'x',
    nonce: null,
  };
  const login = await here.token({ grant_type: 'password', username: 'ada', password: PASSWORD, ...more }, bearer);
  assert.is(login.status, 200);
  assert.is(
    (
      await here.token(
        `grant_type=password&username=ada&password=${encodeURIComponent(PASSWORD)}&scope=&scope=&audience=x&client_id=app&`,
        bearer,
      )
    ).status,
    200,
  );
  const inJson = `{"grant_type":"client_credentials","client_id":"app","client_secret":${JSON.stringify(SECRET)},"__proto__":{"client_id":"other"},"scope":""}`;
  assert.is((await here.token(inJson, { 'Content-Type': 'application/json' })).status, 200);
  assert.is(
    (await here.token({ grant_type: 'client_credentials', client_id: '', client_secret: '', scope: 'x' }, basic('app')))
      .status,
    200,
  );
  // Clients that send HTTP Basic to get a token send it to refresh it, too (RFC 6749 2.3.1).
  const refresh = { grant_type: 'refresh_token', refresh_token: login.body.refresh_token, scope: '' };
  failed(await here.token({ ...refresh, client_id: 'other' }, basic('app')), BASIC);
  assert.is((await here.token({ ...refresh, client_id: 'app' }, basic('app'))).status, 200);
});

test('what a body lacks is named, an unknown grant is refused', async ({ here }) => {
  const Authorization = `Bearer ${await here.clientToken()}`;
  const cases: [body: object | string, status: number, error: string][] = [
    [{}, 422, 'grant_type is required'],
    [[], 422, 'the body must be an object'],
    [{ grant_type: 5 }, 422, 'grant_type must be a string'],
    [{ grant_type: 'authorization_code' }, 400, 'Unsupported grant type.'],
    [{ grant_type: '__proto__', username: 'ada' }, 400, 'Unsupported grant type.'],
    [{ grant_type: 'password' }, 422, 'username is required'],
    [{ grant_type: 'password', username: 'ada' }, 422, 'password is required'],
    [{ grant_type: 'password', username: ['ada'], password: 'x' }, 422, 'username must be a string'],
    [{ grant_type: 'password', username: 'x'.repeat(1_025), password: 'x' }, 422, 'username: at most 1024 characters'],
    [{ grant_type: 'password', username: 'ada', password: '', scope: 'all' }, 422, 'password is required'],
    ['grant_type=&username=ada', 422, 'grant_type is required'],
    ['grant_type=client_credentials&client_id=app&client_secret=', 422, 'client_secret is required'],
    ['grant_type=password&username=ada&username=bob&password=x', 422, 'username must be given only once'],
    [{ grant_type: 'refresh_token', client_id: 'app', client_secret: SECRET }, 422, 'refresh_token is required'],
    [{ grant_type: 'refresh_token', refresh_token: 'x', client_secret: SECRET }, 422, 'client_id is required'],
    [{ grant_type: 'refresh_token', refresh_token: 'x', client_id: 'app' }, 422, 'client_secret is required'],
    [{ grant_type: 'client_credentials' }, 422, 'client_id is required'],
    [{ grant_type: 'client_credentials', client_id: 'app' }, 422, 'client_secret is required'],
    [{ grant_type: 'client_credentials', client_id: 'app', client_secret: null }, 422, 'client_secret is required'],
  ];
  for (const [body, status, error] of cases) refused(await here.token(body, { Authorization }), status, error);
});

test('wrong credentials', async ({ here, accounts }) => {
  for (const [username, password] of [
    ['ada', 'wrong'],
    ['nobody', PASSWORD],
    ['ada\0', PASSWORD],
    ['eve', PASSWORD],
  ] as const) {
    failed(await here.login(username, password));
  }
  const { refresh_token } = (await here.login()).body;
  for (const [id, secret] of [
    ['app', 'wrong'],
    ['nobody', SECRET],
    ['gone', SECRET],
    ['x'.repeat(500), SECRET],
  ] as const) {
    failed(await here.token({ grant_type: 'client_credentials', client_id: id, client_secret: secret }));
    failed(await here.refresh(refresh_token, id, secret));
  }
  assert.ok(
    accounts.requested.every((id) => id.length < 100),
    'what is longer than any id is not looked up',
  );
  for (const bad of ['x', `${refresh_token}x`]) failed(await here.refresh(bad));
  assert.is((await here.refresh(refresh_token)).status, 200);
});

test("a password login needs a client's own token, and that comes before the body", async ({ here }) => {
  const user = (await here.login()).body.access_token;
  for (const headers of [
    {},
    { Authorization: `Bearer ${user}` },
    { Authorization: 'Bearer x' },
    { Authorization: user },
  ] as Record<string, string>[]) {
    failed(await here.token({ grant_type: 'password', username: 'ada', password: PASSWORD }, headers));
    failed(await here.token({ grant_type: 'password' }, headers));
  }
});

test('a restricted client: wrong credentials are 401 before its 403', async ({ here }) => {
  assert.is((await here.login('bob', PASSWORD, 'till')).status, 200);
  refused(await here.login('ada', PASSWORD, 'till'), 403, 'Forbidden.');
  failed(await here.login('ada', 'wrong', 'till'));
  failed(await here.login('nobody', PASSWORD, 'till'));
});

test("a client restricted meanwhile can no longer refresh that user's login", async ({ here, accounts }) => {
  const login = await here.login();
  accounts.change('client-app', { users: ['bob'] });
  failed(await here.refresh(login.body.refresh_token));
});

test('each route takes the callers it says', async ({ here }) => {
  const user = (await here.login()).body.access_token;
  const client = await here.clientToken();
  assert.equal(
    [await here.opens(user, 'any'), await here.opens(user, 'user'), await here.opens(client, 'any')],
    [200, 200, 200],
  );
  refused(await send(here.server, 'GET', '/api/v2/user', { Authorization: `Bearer ${client}` }), 403, 'Forbidden.');
  assert.is(await here.opens(undefined, 'none'), 200);
  const bad = [
    undefined,
    '',
    'x',
    `Basic ${user}`,
    user,
    `Bearer`,
    `Bearer  `,
    `Bearer ${user}x`,
    `Bearer ${user} ${user}`,
    `Bearer ey`,
    `Token ${user}`,
    `Token bearer ${user}`,
  ];
  for (const Authorization of bad) {
    failed(await send(here.server, 'GET', '/api/v2/any', Authorization === undefined ? {} : { Authorization }));
  }
  for (const Authorization of [`bearer ${user}`, `BEARER   ${user}`]) {
    assert.is((await send(here.server, 'GET', '/api/v2/any', { Authorization })).status, 200);
  }
});

test('the caller is known by what is looked up', async ({ here }) => {
  const login = (await here.login('bob', PASSWORD, 'till')).body;
  const sessionId = login.refresh_token.slice(0, 22);
  const { body } = await send(here.server, 'GET', '/api/v2/user', { Authorization: `Bearer ${login.access_token}` });
  assert.equal(body, { kind: 'user', clientId: 'till', sessionId, user: 'bob' } as unknown);
});

// How long tokens last.

test('an access token lasts as long as it says', async ({ here, clock }) => {
  const { body } = await here.login();
  clock.ms += 899_999;
  assert.is(await here.opens(body.access_token), 200);
  clock.ms += 1;
  assert.is(await here.opens(body.access_token), 401);
});

test('a token used again ends its whole family, in every process, once its 30 seconds are over', async ({
  here,
  there,
  clock,
}) => {
  const login = (await here.login()).body;
  const second = (await here.refresh(login.refresh_token)).body;
  const third = (await there.refresh(second.refresh_token)).body;
  const elsewhere = (await here.login()).body;
  for (const { access_token } of [login, second, third]) assert.is(await there.opens(access_token), 200);
  clock.ms += 30_001;
  failed(await here.refresh(login.refresh_token));
  clock.ms += 999;
  for (const { access_token } of [login, second, third])
    assert.equal([await here.opens(access_token), await there.opens(access_token)], [401, 401]);
  failed(await there.refresh(third.refresh_token));
  assert.is(await there.opens(elsewhere.access_token), 200);
  assert.is((await there.refresh(elsewhere.refresh_token)).status, 200);
});

test('a lost answer: the spent token gives another pair within 30 seconds, and both live on', async ({
  here,
  there,
  clock,
}) => {
  const login = (await here.login()).body;
  const first = (await here.refresh(login.refresh_token)).body;
  assert.is(await there.opens(first.access_token), 200);
  clock.ms += 30_000;
  const again = await there.refresh(login.refresh_token);
  assert.is(again.status, 200);
  for (const { access_token } of [first, again.body])
    assert.equal([await here.opens(access_token), await there.opens(access_token)], [200, 200]);
  for (const { refresh_token } of [first, again.body]) assert.is((await here.refresh(refresh_token)).status, 200);
});

test('two refreshes at once: both pairs live on, and so do their successors', async ({ here, there, clock }) => {
  const login = (await here.login()).body;
  const pairs = await Promise.all([here.refresh(login.refresh_token), there.refresh(login.refresh_token)]);
  assert.equal(
    pairs.map(({ status }) => status),
    [200, 200],
  );
  clock.ms += 600_000;
  for (const { body } of pairs) {
    const next = (await here.refresh(body.refresh_token)).body;
    assert.equal([await here.opens(body.access_token), await there.opens(next.access_token)], [200, 200]);
    assert.is((await there.refresh(next.refresh_token)).status, 200);
  }
});

test("refreshes for the login's client only; another one with a spent token ends the family", async ({ here }) => {
  const login = (await here.login()).body;
  failed(await here.refresh(login.refresh_token, 'other'));
  const next = await here.refresh(login.refresh_token);
  assert.is(next.status, 200);
  failed(await here.refresh(login.refresh_token, 'other'));
  assert.is(await here.opens(next.body.access_token), 401);
});

test('a refresh token lasts 30 days', async ({ here, clock }) => {
  const login = (await here.login()).body;
  clock.ms += ttl.refresh * 1000 - 1;
  const next = await here.refresh(login.refresh_token);
  assert.is(next.status, 200);
  clock.ms += ttl.refresh * 1000;
  failed(await here.refresh(next.body.refresh_token));
});

const endings: [what: string, id: string, change: Parameters<MemoryAccounts['change']>[1] | undefined][] = [
  ['a new password', 'user-ada', { credential: 2 }],
  ['disabling the user', 'user-ada', { active: false, credential: 2 }],
  ['pruning the user', 'user-ada', { active: false }],
  ['a user nobody knows any more', 'user-ada', undefined],
  ['a new client secret', 'client-app', { credential: 2 }],
  ['disabling the client', 'client-app', { active: false, credential: 2 }],
  ['pruning the client', 'client-app', { active: false }],
  ['a client nobody knows any more', 'client-app', undefined],
];
for (const [what, id, change] of endings) {
  test(`${what} ends sessions within a second, access tokens included`, async ({ here, there, accounts, clock }) => {
    const client = await here.clientToken();
    const login = (await here.login()).body;
    const others = (await here.login('bob', PASSWORD, 'other')).body;
    for (const one of [here, there])
      assert.equal([await one.opens(login.access_token), await one.opens(client, 'any')], [200, 200]);
    if (change === undefined) accounts.documents.delete(id);
    else accounts.change(id, change);
    clock.ms += 500;
    for (const one of [here, there]) {
      assert.is(await one.opens(login.access_token), 401);
      assert.is(await one.opens(client, 'any'), id === 'client-app' ? 401 : 200);
      assert.is(await one.opens(others.access_token), 200);
    }
    failed(await there.refresh(login.refresh_token));
    assert.is((await there.refresh(others.refresh_token, 'other')).status, 200);
  });
}

for (const [what, stream, added, change] of [
  [
    'a new password',
    'user-ada',
    'UserAdded',
    { type: 'UserChanged', data: { password_hash: await hashPassword('another') } },
  ],
  ['disabling the user', 'user-ada', 'UserAdded', { type: 'UserChanged', data: { active: false } }],
  ['pruning the user', 'user-ada', 'UserAdded', { type: 'UserRetired', data: { reason: 'left' } }],
  ['disabling the client', 'client-app', 'ClientAdded', { type: 'ClientChanged', data: { active: false } }],
  [
    'a new client secret',
    'client-app',
    'ClientAdded',
    { type: 'ClientChanged', data: { secret_hash: await hashPassword('another') } },
  ],
] as const) {
  test(`${what} hands out no more tokens, whether the read model has heard of it or not`, async ({
    here,
    accounts,
    log,
  }) => {
    const { entry: _entry, credential: _credential, ...data } = accounts.documents.get(stream) as UserDocument;
    log.given(stream, { type: added, data });
    const client = await here.clientToken();
    const login = (await here.login()).body;
    const next = (await here.refresh(login.refresh_token)).body;
    log.given(stream, change);
    failed(await here.refresh(next.refresh_token));
    failed(
      await here.token(
        { grant_type: 'password', username: 'ada', password: stream === 'user-ada' ? PASSWORD : 'wrong' },
        { Authorization: `Bearer ${client}` },
      ),
    );
    if (stream === 'client-app')
      failed(await here.token({ grant_type: 'client_credentials', client_id: 'app', client_secret: SECRET }));
    assert.is((await here.login('bob', PASSWORD, 'other')).status, 200);
  });
}

/** The event that makes the document, which is one of an entry or of a name. */
function addedAs({ entry, ...document }: AccountDocument): { readonly type: string; readonly data: object } {
  if (entry === 'username') return { type: 'UsernameTaken', data: document };
  const { credential: _, ...data } = document as UserDocument;
  return { type: entry === 'user' ? 'UserAdded' : 'ClientAdded', data };
}

for (const [what, id, before] of [
  ['a new user', 'user-ada', undefined],
  ['a user with a new password', 'user-ada', { password_hash: await hashPassword('the old one') }],
  ['a user who is active again', 'user-ada', { active: false }],
  ['a new name of a user', `username-${hash('username', 'ada')}`, undefined],
  ['a new client', 'client-other', undefined],
  ['a client with a new secret', 'client-other', { secret_hash: await hashPassword('the old one') }],
] as const) {
  test(`lets ${what} in, though the read model is behind the log`, async ({ here, accounts, log }) => {
    const app = await here.clientToken();
    for (const [stream, document] of accounts.documents) log.given(stream, addedAs(document));
    if (before === undefined) accounts.documents.delete(id);
    else accounts.change(id, before);
    accounts.reached = async () => false;
    const grant = id.startsWith('client')
      ? { grant_type: 'client_credentials', client_id: 'other', client_secret: SECRET }
      : { grant_type: 'password', username: 'ada', password: PASSWORD };
    assert.is((await here.token(grant, { Authorization: `Bearer ${app}` })).status, 200);
  });
}

for (const [what, before] of [
  ['a new user', undefined],
  ['a user with a new password', { password_hash: await hashPassword('the old one') }],
  ['a user who is active again', { active: false }],
] as const) {
  test(`refreshes the login of ${what}, though the read model is behind the log`, async ({ here, accounts, log }) => {
    for (const [stream, document] of accounts.documents)
      if (before === undefined || stream !== 'user-ada') log.given(stream, addedAs(document));
    const { entry: _entry, credential: _credential, ...data } = accounts.documents.get('user-ada') as UserDocument;
    if (before !== undefined) {
      log.given('user-ada', { type: 'UserAdded', data: { ...data, ...before } });
      log.given('user-ada', { type: 'UserChanged', data });
      accounts.change('user-ada', before);
    } else accounts.documents.delete('user-ada');
    accounts.reached = async () => false;
    const login = await here.login();
    assert.is(login.status, 200);
    assert.is(await here.opens(login.body.access_token), 200);
    assert.is((await here.refresh(login.body.refresh_token)).status, 200);
  });
}

test('refuses wrong passwords and unknown names though the read model is behind the log', async ({
  here,
  accounts,
  log,
}) => {
  for (const [stream, document] of accounts.documents) log.given(stream, addedAs(document));
  accounts.reached = async () => false;
  for (const name of ['ada', 'nobody']) failed(await here.login(name, 'wrong'));
});

test('a token of a login with a new password is good at once, whatever is remembered of the user', async ({
  here,
  accounts,
}) => {
  assert.is(await here.opens((await here.login()).body.access_token), 200);
  accounts.change('user-ada', { credential: 2 });
  assert.is(await here.opens((await here.login()).body.access_token), 200);
});

test("where the log can't be reached, or hangs, the read model alone says who may log in", async ({ here, log }) => {
  const client = await here.clientToken();
  const down = async (): Promise<never> => {
    throw new UnavailableError('the log is down');
  };
  for (const read of [down, () => new Promise<never>(() => undefined)]) {
    log.read = read;
    const login = await here.token(
      { grant_type: 'password', username: 'ada', password: PASSWORD },
      { Authorization: `Bearer ${client}` },
    );
    assert.is(login.status, 200);
    assert.is((await here.refresh(login.body.refresh_token)).status, 200);
  }
});

test('a right client secret is remembered in every process, until the client gets another one', async ({
  here,
  there,
  accounts,
  records,
}) => {
  const charged = async (one: Process, secret: string): Promise<[status: number, charged: boolean]> => {
    const before = records.calls.put;
    const grant = { grant_type: 'client_credentials', client_id: 'app', client_secret: secret };
    const { status } = await one.token(grant);
    // A token's session is a record, too.
    return [status, records.calls.put > before + (status === 200 ? 1 : 0)];
  };
  assert.equal(await charged(here, SECRET), [200, true]);
  for (const one of [here, there]) assert.equal(await charged(one, SECRET), [200, false]);
  accounts.change('client-app', { secret_hash: (accounts.documents.get('user-ada') as UserDocument).password_hash });
  for (const one of [here, there]) assert.equal(await charged(one, SECRET), [401, true]);
  assert.equal(await charged(there, PASSWORD), [200, true]);
  for (const one of [here, there]) assert.equal(await charged(one, PASSWORD), [200, false]);
});

test('a secret that was right is remembered for its own client alone', async ({ here, accounts }) => {
  await here.clientToken('app');
  accounts.change('client-other', { secret_hash: (accounts.documents.get('user-ada') as UserDocument).password_hash });
  failed(await here.token({ grant_type: 'client_credentials', client_id: 'other', client_secret: SECRET }));
});

test('logs a user with a hash of another cost in, hashes the password again, and ends no session', async ({
  here,
  there,
  accounts,
  records,
}) => {
  accounts.change('user-ada', {
    password_hash: await argon2(PASSWORD, { memoryCost: 64, timeCost: 3, parallelism: 1 }),
  });
  const first = (await here.login()).body;
  const [renewed] = await records.list<{ hash: string }>('login-hash:');
  assert.is(costOf(renewed?.value.hash ?? ''), PRESENT_COST);
  const second = await there.login();
  assert.is(second.status, 200);
  for (const { access_token } of [first, second.body]) assert.is(await here.opens(access_token), 200);
  failed(await there.login('ada', 'wrong'));
  accounts.change('user-ada', { password_hash: await hashPassword('another'), credential: 2 });
  failed(await here.login());
  assert.is((await here.login('ada', 'another')).status, 200);
});

// Guessing.

test('answers 429 after ten failures for a username from an address, in every process', async ({
  here,
  there,
  clock,
}) => {
  const Authorization = `Bearer ${await here.clientToken()}`;
  const login = async (one: Process, username: string, password: string, address = '198.51.100.1'): Promise<Answered> =>
    one.token({ grant_type: 'password', username, password }, { Authorization, 'X-Forwarded-For': address });
  for (const username of ['ada', 'nobody', 'eve']) {
    for (let count = 0; count < 10; count += 1) failed(await login(count % 2 === 0 ? here : there, username, 'wrong'));
    for (const one of [here, there]) {
      const answer = await login(one, username.toUpperCase(), PASSWORD);
      refused(answer, 429, 'Too many requests.');
      assert.is(answer.headers['retry-after'], '900');
    }
  }
  assert.is((await login(here, 'bob', PASSWORD)).status, 200);
  assert.is((await login(here, 'ada', PASSWORD, '198.51.100.2')).status, 200);
  clock.ms += 899_000;
  assert.is((await login(here, 'ada', PASSWORD)).headers['retry-after'], '1');
  clock.ms += 1_000;
  assert.is((await here.login('ada', PASSWORD)).status, 200);
});

test("a success resets the username's failures", async ({ here }) => {
  for (let round = 0; round < 2; round += 1) {
    for (let count = 0; count < 9; count += 1) failed(await here.login('ada', 'wrong'));
    assert.is((await here.login()).status, 200);
  }
});

test('answers users 429 after a hundred failures for one username from anywhere, or from one address', async ({
  here,
  records,
  clock,
}) => {
  const counters = throttle(records, hash, clock.now);
  const wrong = async (reserve: () => Promise<void>): Promise<boolean> => (await reserve(), false);
  const named = (name: string) => ({ usernameHash: hash('username', name), userId: undefined });
  const Authorization = `Bearer ${await here.clientToken()}`;
  const from = async (address: string, username: string, password: string): Promise<Answered> =>
    here.token({ grant_type: 'password', username, password }, { Authorization, 'X-Forwarded-For': address });
  assert.is((await from('203.0.113.9', 'bob', PASSWORD)).status, 200);
  for (let count = 0; count < 99; count += 1) {
    await counters.attempt({ address: `192.0.2.${count}`, ...named('ada') }, wrong);
    await counters.attempt({ address: '203.0.113.9', ...named(`user ${count}`) }, wrong);
  }
  failed(await from('198.51.100.1', 'ada', 'wrong'));
  failed(await from('203.0.113.9', 'nobody', 'wrong'));
  for (const address of ['198.51.100.2', '203.0.113.9']) {
    const answer = await from(address, 'ada', PASSWORD);
    refused(answer, 429, 'Too many requests.');
    assert.is(answer.headers['retry-after'], '900');
  }
  // Who has logged in from there is kept out by nobody's failures but their own.
  assert.is((await from('203.0.113.9', 'bob', PASSWORD)).status, 200);
});

/** Wrong secrets of all grants until the limits are reached, and beyond them. */
async function guess(here: Process, address: string, refreshToken: string): Promise<void> {
  const headers = { 'X-Forwarded-For': address };
  for (let count = 0; count < 120; count += 1) {
    const client = { client_id: count % 2 === 0 ? 'app' : `unknown ${count}`, client_secret: `wrong ${count}` };
    const grants = [
      here.token({ grant_type: 'client_credentials', ...client }, headers),
      here.revoke({ token: 'x', ...client }, headers),
      here.token({ grant_type: 'refresh_token', refresh_token: refreshToken, ...client }, headers),
    ];
    for (const { status } of await Promise.all(grants)) assert.ok([401, 429].includes(status), String(status));
  }
}

test('refuses no right client secret, refresh or revocation for wrong ones from its address', async ({
  here,
  there,
  clock,
}) => {
  const headers = { 'X-Forwarded-For': '203.0.113.9' };
  const grant = (id: string, secret = SECRET): object => ({
    grant_type: 'client_credentials',
    client_id: id,
    client_secret: secret,
  });
  const login = (await here.login()).body;
  const guessers = (await here.login('bob')).body;
  await guess(here, '203.0.113.9', guessers.refresh_token);
  // What the guesser sends tells nothing more: neither of a known client, nor of an unknown one.
  for (const id of ['app', 'other', 'gone', 'nobody']) {
    const answer = await here.token(grant(id, 'wrong'), headers);
    refused(answer, 429, 'Too many requests.');
    assert.is(answer.headers['retry-after'], '900');
  }
  const own = { client_id: 'app', client_secret: SECRET };
  for (const one of [here, there]) {
    assert.is((await one.token(grant('app'), headers)).status, 200, 'a secret that was right before');
    assert.is((await one.token(grant('other'), headers)).status, 200, 'a secret that never was');
  }
  const next = await here.token({ grant_type: 'refresh_token', refresh_token: login.refresh_token, ...own }, headers);
  assert.is(next.status, 200);
  failed(await here.token({ grant_type: 'refresh_token', refresh_token: 'x', ...own }, headers));
  failed(
    await here.token(
      { grant_type: 'refresh_token', refresh_token: next.body.refresh_token, ...own, client_secret: 'wrong' },
      headers,
    ),
  );
  for (const token of ['x', next.body.access_token, guessers.refresh_token])
    assert.is((await here.revoke({ token, ...own }, headers)).status, 200);
  assert.is(await here.opens(next.body.access_token), 401);
  // Users' logins from there are not refused either.
  assert.is(
    (
      await here.token(
        { grant_type: 'password', username: 'ada', password: PASSWORD },
        { Authorization: `Bearer ${await here.clientToken()}`, ...headers },
      )
    ).status,
    200,
  );
  clock.ms += 900_000;
  failed(await here.token(grant('app', 'wrong'), headers));
});

test("a flood of a client's wrong secrets, which was never proved, holds one check at a time", async ({
  here,
  accounts,
}) => {
  const headers = { 'X-Forwarded-For': '203.0.113.9' };
  const ask = async (secret: string): Promise<number> =>
    (await here.token({ grant_type: 'client_credentials', client_id: 'app', client_secret: secret }, headers)).status;
  for (let count = 0; count < 10; count += 1) assert.is(await ask('wrong'), 401);
  const [right, ...wrong] = await Promise.all([
    ask(SECRET),
    ...Array.from({ length: 30 }, async (_, index) => ask(`wrong ${index}`)),
  ]);
  assert.equal([right, [...new Set(wrong)]], [200, [429]]);
  assert.ok(accounts.documents.has('client-app'));
});

test('answers a forged refresh token without the costly check of a secret', async ({ here, records }) => {
  const before = records.calls.put;
  failed(await here.refresh('x'.repeat(90)));
  failed(await here.refresh('x', 'app', 'wrong'));
  assert.is(records.calls.put, before);
});

// Trouble and secrets.

test("engines that can't be reached: 503, and nothing is counted or ended", async ({
  here,
  accounts,
  records,
  clock,
}) => {
  const login = (await here.login()).body;
  const next = (await here.refresh(login.refresh_token)).body;
  for (const engine of [accounts, records]) {
    engine.down = true;
    clock.ms += 500;
    assert.is(await here.opens(next.access_token), 503);
    refused(await here.refresh(next.refresh_token), 503, 'Service unavailable.');
    refused(
      await here.token({ grant_type: 'client_credentials', client_id: 'till', client_secret: SECRET }),
      503,
      'Service unavailable.',
    );
    engine.down = false;
  }
  assert.is(await here.opens(next.access_token), 200);
  assert.is((await here.refresh(next.refresh_token)).status, 200);
});

test('no secret, token or username shows in a record or in the log', async ({ here, records, lines }) => {
  const login = (await here.login()).body;
  const next = (await here.refresh(login.refresh_token)).body;
  await here.login('ada', 'wrong');
  await here.opens(next.access_token);
  const secrets = [
    PASSWORD,
    SECRET,
    TOKEN_KEY,
    ...[login, next].flatMap((pair) => [pair.refresh_token.slice(22), pair.access_token]),
  ];
  const shown = `${records.text()}${lines.join('')}`;
  for (const secret of secrets) assert.not.ok(shown.includes(secret));
  assert.not.match(records.keys().join(' '), /ada|127\.0/);
  assert.ok(lines.length > 4);
});

test.run();

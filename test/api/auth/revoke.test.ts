import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { eventually } from '../../support/assertions/until.js';
import { refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('revocation of tokens');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

const APP = { client_id: 'app', client_secret: 'app-secret' };
const POS = { client_id: 'pos', client_secret: 'pos-secret' };
const post = async (path: string, body: unknown, headers = {}, token?: string): Promise<Reply> =>
  service.ask('POST', `/oauth/${path}`, { body, headers, ...(token === undefined ? {} : { token }) });

async function login(user = 'ann', client = 'app'): Promise<Json> {
  const body = { grant_type: 'password', username: `${user}@test.example`, password: `${user}-password` };
  const reply = await post('token', body, {}, await service.clientToken(client));
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}
const acts = async (token: string): Promise<boolean> =>
  (await service.ask('GET', '/api/v2/me', { token })).status === 200;
const ended = async (token: string): Promise<boolean> => eventually(async () => !(await acts(token)));
const refresh = async (refresh_token: string, client = APP): Promise<Reply> =>
  post('token', { grant_type: 'refresh_token', refresh_token, ...client });

test('a refresh token takes its whole login with it, and no other', async () => {
  const [one, other] = [await login(), await login()];
  const next = (await refresh(one.refresh_token)).json;
  const reply = await post('revoke', { token: next.refresh_token, token_type_hint: 'access_token', ...APP });
  assert.deepEqual([reply.status, reply.json, reply.headers.get('cache-control')], [200, {}, 'no-store']);
  for (const { access_token } of [one, next]) assert.ok(await ended(access_token));
  refused(await refresh(next.refresh_token), 401, 'Authentication failed.');
  assert.ok(await acts(other.access_token));
  const again = await post('revoke', { token: next.refresh_token, ...APP });
  assert.equal(again.status, 200);
});

test('an access token takes its refresh token with it; a client revokes its own token', async () => {
  const { access_token, refresh_token } = await login();
  assert.equal((await post('revoke', { token: access_token, ...APP })).status, 200);
  assert.ok(await ended(access_token));
  refused(await refresh(refresh_token), 401, 'Authentication failed.');
  const own = (await post('token', { grant_type: 'client_credentials', ...APP })).json.access_token as string;
  const asks = async (): Promise<number> => (await service.ask('GET', '/api/v2/brands', { token: own })).status;
  assert.equal(await asks(), 200);
  assert.equal((await post('revoke', { token: own, ...APP })).status, 200);
  await eventually(async () => (await asks()) === 401);
});

test('takes forms and HTTP Basic, as the token endpoint does', async () => {
  const { access_token } = await login();
  const basic = { authorization: `Basic ${Buffer.from('app:app-secret').toString('base64')}` };
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const reply = await post('revoke', `token=${access_token}&client_secret=`, { ...basic, ...form });
  assert.equal(reply.status, 200, reply.text);
  assert.ok(await ended(access_token));
  refused(await post('revoke', { token: 'x', client_id: 'pos' }, basic), 401, 'Authentication failed.');
});

test('a token of another client is refused and stays; an unknown one is answered 200', async () => {
  const { access_token, refresh_token } = await login('till-coffee', 'pos');
  for (const token of [access_token, refresh_token])
    refused(await post('revoke', { token, ...APP }), 401, 'Authentication failed.');
  assert.ok(await acts(access_token));
  assert.equal((await refresh(refresh_token, POS)).status, 200);
  for (const token of ['nonsense', 'x'.repeat(5_000), `${access_token}x`, '🎁'])
    assert.deepEqual((await post('revoke', { token, ...APP })).json, {}, token);
});

test('refuses clients that do not prove who they are, and a body without a token', async () => {
  const { access_token } = await login();
  for (const client of [
    { ...APP, client_secret: 'wrong' },
    { ...APP, client_id: 'nobody' },
    { client_id: 'off', client_secret: 'off-secret' },
  ])
    refused(await post('revoke', { token: access_token, ...client }), 401, 'Authentication failed.');
  const without = await post('revoke', APP);
  refused(without, 422, 'token is required');
  assert.equal(without.headers.get('error-field'), 'token');
  refused(await post('revoke', { token: access_token }), 422, 'client_id is required');
  assert.ok(await acts(access_token));
});

test.run();

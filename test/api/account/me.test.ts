import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { refused } from '../../support/service/giftFlow.js';
import { type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('api/account/me');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

const me = async (token: string | undefined, headers = {}): Promise<Reply> =>
  service.ask('GET', '/api/v2/me', { ...(token === undefined ? {} : { token }), headers });

test('shows a user who they are here, and nothing secret', async () => {
  const reply = await me(await service.userToken('ann'));
  assert.equal(reply.status, 200);
  assert.deepEqual(reply.json, {
    data: {
      id: 'ann',
      username: 'ann@test.example',
      name: 'ann',
      phone_number: '+447700900001',
      locale: null,
      merchant_id: null,
      permissions: [],
      roles: [],
    },
  });
  assert.equal(reply.headers.get('cache-control'), 'no-store');
});

test('shows a merchant’s user their merchant and permissions, support their role', async () => {
  const till = (await me(await service.userToken('till-redeem-only'))).json.data;
  assert.deepEqual([till.merchant_id, till.permissions, till.phone_number], ['coffee', ['redeem'], '']);
  assert.deepEqual((await me(await service.userToken('sue'))).json.data.roles, ['support']);
});

test('refuses a client’s token and none', async () => {
  refused(await me(await service.clientToken()), 403, 'Forbidden.');
  refused(await me(undefined), 401, 'Authentication failed.');
});

test('shows what an import changed to a reader who sends its position', async () => {
  const token = await service.userToken('dan');
  await me(token);
  const before = (await me(token)).json.data;
  await service.import({
    users: [{ id: 'dan', username: 'dan@test.example', password: 'dan-password', name: 'Daniel', locale: 'en-GB' }],
  });
  assert.equal(before.name, 'dan');
  // The new password ends the session: another one is wanted.
  const fresh = await eventually(async () => {
    const client = await service.clientToken();
    const { json } = await service.ask('POST', '/oauth/token', {
      token: client,
      body: { grant_type: 'password', username: 'dan@test.example', password: 'dan-password' },
    });
    return json.access_token as string | undefined;
  });
  const shown = await me(fresh, { 'gift-position': `${service.events.logId}:${await service.events.end()}` });
  assert.deepEqual([shown.json.data.name, shown.json.data.locale], ['Daniel', 'en-GB']);
});

test.run();

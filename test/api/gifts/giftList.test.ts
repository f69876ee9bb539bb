import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { hashSync } from '@node-rs/argon2';
import { buy, buyOne, notificationOver, purchaseOf, redeem, refused } from '../../support/service/giftFlow.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('lists of gifts');
let service: Service;

/** Users whose number changes; another hash would end their sessions. */
const HASHES = new Map(
  ['ida', 'eve'].map((id) => [id, hashSync(`${id}-password`, { memoryCost: 4_096, timeCost: 3, parallelism: 1 })]),
);
const mover = (id: string, more: object = {}): object => ({
  id,
  username: `${id}@test.example`,
  password_hash: HASHES.get(id),
  name: id,
  ...more,
});

test.before(async () => {
  service = await startService({
    catalogue: { ...CATALOGUE, users: [...CATALOGUE.users, mover('ida'), mover('eve')] },
  });
});
test.after(() => service.close());

/** Shows all that was written before. */
async function list(user: string, query = ''): Promise<Reply> {
  const reply = await service.ask('GET', `/api/v2/gifts?${query}`, {
    token: await service.userToken(user),
    headers: { 'gift-position': `${service.events.logId}:${await service.events.end()}` },
  });
  return reply;
}
const idsIn = ({ json, text }: Reply): string[] => {
  assert.ok(Array.isArray(json?.data), text);
  return json.data.map(({ id }: Json) => id as string);
};

/** All pages, and how many there were. */
async function pages(user: string, query: string, between = async (): Promise<void> => undefined): Promise<string[]> {
  const seen: string[] = [];
  for (let after = '', more = true; more;) {
    const reply = await list(user, query + after);
    seen.push(...idsIn(reply));
    more = reply.json.has_more as boolean;
    assert.equal(reply.json.next !== null, more);
    after = `&after=${reply.json.next}`;
    await between();
  }
  return seen;
}
const claim = async (gift: string, user: string): Promise<Reply> =>
  service.ask('POST', `/api/v2/gifts/${service.shortcodeOf(gift)}/claim`, { token: await service.userToken(user) });

test('lists what a user received, claimed and bought, the latest first, each once', async () => {
  assert.deepEqual((await list('dan')).json, { data: [], next: null, has_more: false });
  const named = await buyOne(service, 'latte', { user_id: 'dan' });
  const shared = await buyOne(service, 'latte');
  const later = await buyOne(service, 'latte', { user_id: 'dan' }, 'bob');
  assert.deepEqual(idsIn(await list('dan')), [later, named]);
  assert.equal((await claim(shared, 'dan')).status, 200);
  assert.deepEqual(idsIn(await list('dan')), [shared, later, named], 'in the place of its claim');
  assert.deepEqual(idsIn(await list('dan', 'as=sender')), []);
  assert.deepEqual(idsIn(await list('bob', 'as=sender')), [later]);
  const own = await buyOne(service, 'latte', { user_id: 'bob' }, 'bob');
  for (const query of ['', 'as=holder&limit=1', 'as=sender&limit=1'])
    assert.equal(idsIn(await list('bob', query)).filter((id) => id === own).length, 1, query);
  assert.deepEqual(idsIn(await list('bob')), [own, later]);
  const [shown] = (await list('dan')).json.data;
  const one = await service.ask('GET', `/api/v2/gifts/${shared}`, { token: await service.userToken('dan') });
  assert.deepEqual(shown, one.json.data);
});

test('lists gifts to a number for the user who had it then, also once it moves on', async () => {
  const before = await buyOne(service, 'latte', { phone_number: '07700 900001' }, 'bob');
  assert.deepEqual(idsIn(await list('ann', 'as=holder')), [before]);
  const ahead = await buyOne(service, 'latte', { phone_number: '07700 900098' }, 'bob');
  await service.import({ users: [mover('ida', { phone_number: '07700 900098' })] });
  assert.deepEqual(idsIn(await list('ida')), [ahead], 'sent before anybody had the number');
  await service.import({
    users: [mover('ida'), mover('eve', { phone_number: '07700 900098' })],
  });
  const next = await buyOne(service, 'latte', { phone_number: '07700 900098' }, 'bob');
  assert.deepEqual(idsIn(await list('eve')), [next]);
  assert.deepEqual(idsIn(await list('ida')), [ahead]);
});

test('takes a gift that support reassigned from one list into the other', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'vip' });
  assert.deepEqual(idsIn(await list('vip')), [gift]);
  await notificationOver(service, gift);
  const moved = await service.ask('POST', `/ops/gifts/${gift}/reassign`, {
    token: await service.userToken('sue'),
    body: { phone_number: '07700 900002', reason: 'wrong receiver' },
  });
  assert.equal(moved.status, 200, moved.text);
  assert.deepEqual(idsIn(await list('vip')), []);
  assert.equal(idsIn(await list('bob', 'as=holder'))[0], gift);
  assert.ok(idsIn(await list('ann', 'as=sender')).includes(gift));
});

test('lists what is not paid for to its buyer alone', async () => {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', [{ user_id: 'cat' }, {}], { reference: 'pm_card_visa_chargeDeclined' }),
  });
  assert.equal(reply.status, 402);
  assert.deepEqual(idsIn(await list('cat')), []);
  const cancelled = (await list('ann', 'status=cancelled')).json.data as Json[];
  assert.deepEqual(
    cancelled.map(({ gift_status, sender_id }) => [gift_status, sender_id]),
    [
      ['cancelled', 'ann'],
      ['cancelled', 'ann'],
    ],
  );
});

test('pages of any size make up the whole list, through large purchases, while others are made', async () => {
  const many = await buy(service, 'latte', Array(30).fill({ user_id: 'cat' }));
  const spread = await buy(service, 'latte', [{ user_id: 'cat' }, {}, { phone_number: '07700 900001' }]);
  for (const [user, query] of [
    ['cat', ''],
    ['ann', 'as=sender'],
    ['ann', ''],
  ] as const) {
    const whole = await pages(user, `${query}&limit=100`);
    assert.equal(new Set(whole).size, whole.length);
    for (const id of [...many, ...spread.slice(0, user === 'cat' ? 1 : 3)]) assert.ok(whole.includes(id));
    for (const limit of [1, 7, 30]) {
      let left = 3;
      const paged = await pages(user, `${query}&limit=${limit}`, async () => {
        if (left-- > 0) await buyOne(service, 'latte', { user_id: 'cat' });
      });
      assert.deepEqual(paged, whole, `${user} ${query} ${limit}`);
      // What came meanwhile stands before the first page.
      const now = await pages(user, `${query}&limit=100`);
      assert.deepEqual(now.slice(-whole.length), whole);
      whole.splice(0, whole.length, ...now);
    }
  }
});

test('filters by status, under either name', async () => {
  const [gift = ''] = await buy(service, 'latte', [{ user_id: 'till-cinema' }, { user_id: 'till-cinema' }]);
  assert.equal((await redeem(service, gift)).status, 201);
  for (const name of ['status', 'gift_status'])
    assert.deepEqual(idsIn(await list('till-cinema', `${name}=redeemed`)), [gift]);
  assert.equal(idsIn(await list('till-cinema', 'status=sent')).length, 1);
  assert.deepEqual((await list('till-cinema', 'status=pending')).json, { data: [], next: null, has_more: false });
});

test('refuses what is no status, role, limit or place, by its name', async () => {
  for (const [query, field] of [
    ['status=5', 'status'],
    ['as=owner', 'as'],
    ['limit=101', 'limit'],
    ['after=x', 'after'],
    [`after=000000000.${'0'.repeat(32)}`, 'after'],
    ['after=2026-01-01T00:00:00.000Z.1', 'after'],
  ] as const) {
    const reply = await list('ann', query);
    assert.deepEqual(
      [reply.status, reply.headers.get('error-code'), reply.headers.get('error-field')],
      [422, 'schema', field],
    );
  }
  refused(await service.ask('GET', '/api/v2/gifts', { token: await service.clientToken() }), 403, 'Forbidden.');
  refused(await service.ask('GET', '/api/v2/gifts'), 401, 'Authentication failed.');
});

test.run();

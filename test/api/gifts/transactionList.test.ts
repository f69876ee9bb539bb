import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { eventually } from '../../support/assertions/until.js';
import { buy, purchaseOf, refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('lists of transactions');
let service: Service;
let bought: string[] = [];

test.before(async () => {
  service = await startService();
  for (let n = 0; n < 5; n++) bought.unshift(await transactionOf('ann'));
  await buy(service, 'latte', undefined, 'bob');
});
test.after(() => service.close());

async function transactionOf(user: string, reference?: string): Promise<string> {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken(user),
    body: purchaseOf('latte', undefined, reference === undefined ? {} : { reference }),
  });
  return reply.headers.get('location')?.split('/')[4] ?? '';
}

/** Reads all that was written before. */
async function list(query = '', user = 'ann'): Promise<Reply> {
  return service.ask('GET', `/api/v2/transactions${query}`, {
    token: await service.userToken(user),
    headers: { 'gift-position': `${service.events.logId}:${await service.events.end()}` },
  });
}
const idsIn = ({ json }: Reply): string[] => json.data.map(({ id }: Json) => id as string);

test('lists the caller’s purchases alone, the latest first, as one of them is shown', async () => {
  const reply = await list();
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual([idsIn(reply), reply.json.next, reply.json.has_more], [bought, null, false]);
  const one = await service.ask('GET', `/api/v2/transactions/${bought[0]}`, { token: await service.userToken('ann') });
  assert.deepEqual(reply.json.data[0], one.json.data);
  assert.equal((await list('', 'bob')).json.data.length, 1);
  assert.deepEqual((await list('', 'cat')).json, { data: [], next: null, has_more: false });
});

test('pages neither skip nor repeat a purchase while others are made', async () => {
  const before = [...bought];
  const seen: string[] = [];
  let after = '';
  for (let page = 0; page < 3; page++) {
    const reply = await list(`?limit=2${after}`);
    seen.push(...idsIn(reply));
    assert.equal(reply.json.has_more, page < 2);
    after = `&after=${reply.json.next}`;
    bought.unshift(await transactionOf('ann'));
  }
  assert.deepEqual(seen, before);
  assert.deepEqual(idsIn(await list('?limit=3')), bought.slice(0, 3));
});

test('lists declined purchases and refunds by their status', async () => {
  const declined = await transactionOf('ann', 'pm_card_visa_chargeDeclined');
  bought.unshift(declined);
  const refund = await service.ask('POST', `/ops/transactions/${bought[1]}/refund`, {
    token: await service.userToken('sue'),
    body: { reason: 'wrong product' },
  });
  assert.equal(refund.status, 200, refund.text);
  assert.deepEqual(
    (await list('?limit=3')).json.data.map(({ status }: Json) => status),
    ['declined', 'refunded', 'charged'],
  );
});

test('a purchase is found by the name that its caller gave it, by nobody else', async () => {
  const reference_id = 'Order 2026/77 “½”';
  const order = async (user: string, reference: string): Promise<Reply> => {
    const body = purchaseOf('latte') as { readonly purchase: object };
    return service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken(user),
      body: { ...body, purchase: { ...body.purchase, reference_id: reference } },
    });
  };
  const query = `?reference_id=${encodeURIComponent(reference_id)}`;
  const made: string[] = [];
  for (const user of ['ann', 'ann', 'bob']) {
    const reply = await order(user, reference_id);
    assert.deepEqual([reply.status, reply.json.data.reference_id], [201, reference_id], reply.text);
    made.push(reply.json.data.id as string);
  }
  assert.equal((await order('ann', 'Order 2026/78')).status, 201);

  const listed = await list(query);
  assert.deepEqual(idsIn(listed), [made[1], made[0]]);
  assert.deepEqual(new Set(listed.json.data.map((one: Json) => one['reference_id'])), new Set([reference_id]));
  assert.deepEqual(idsIn(await list(query, 'bob')), [made[2]]);
  const first = await list(`${query}&limit=1`);
  assert.deepEqual(idsIn(await list(`${query}&limit=1&after=${first.json.next}`)), [made[0]]);
  assert.deepEqual(idsIn(await list('?reference_id=order')), []);

  const token = await service.userToken('ann');
  const ofOrder = await eventually(async () => {
    const { data } = (await service.ask('GET', '/api/v2/events?limit=500', { token })).json;
    const events = (data as Json[]).filter((event) => event['data'].transaction_id === made[0]);
    return events.some(({ type }) => type === 'transaction.charged') && events;
  }, 'the charge in the feed');
  for (const { type, data: told } of ofOrder)
    assert.equal(told.reference_id, type.startsWith('transaction.') ? reference_id : undefined, type);

  for (const [reference, error] of [
    ['', /^purchase\.reference_id /],
    ['x'.repeat(256), /^purchase\.reference_id: at most 255 characters$/],
    ['a\u0000', /^purchase\.reference_id must not contain control characters/],
  ] as const) {
    const reply = await order('ann', reference);
    assert.equal(reply.status, 422);
    assert.match(reply.json.error, error);
  }
});

test('refuses a limit or place that is none, by its name', async () => {
  for (const [query, field, error] of [
    ['?limit=0', 'limit', 'limit must be at least 1'],
    ['?limit=101', 'limit', 'limit must be at most 100'],
    ['?limit=x', 'limit', 'limit must be a whole number'],
    [`?after=000000000.${'0'.repeat(20)}`, 'after', 'after is not valid'],
    ['?after=0000000000000001', 'after', 'after is not valid'],
    [`?after=../../${bought[0]}`, 'after', 'after is not valid'],
  ] as const) {
    const reply = await list(query);
    refused(reply, 422, error);
    assert.deepEqual([reply.headers.get('error-code'), reply.headers.get('error-field')], ['schema', field]);
  }
  refused(await service.ask('GET', '/api/v2/transactions', { token: await service.clientToken() }), 403, 'Forbidden.');
});

test.run();

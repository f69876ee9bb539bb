import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { purchaseOf, refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('lists of payment methods');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

/** Shows all that was written before. */
const list = async (user: string, query = ''): Promise<Reply> =>
  service.ask('GET', `/api/v2/payment-methods${query}`, {
    token: await service.userToken(user),
    headers: { 'gift-position': `${service.events.logId}:${await service.events.end()}` },
  });
const referencesIn = ({ json }: Reply): string[] => json.data.map(({ reference }: Json) => reference as string);

const ANNS = ['pm_card_slow', 'pm_card_visa', 'pm_card_visa_chargeDeclined', 'wallet-invoice', 'wallet-prepaid'];

test('lists what the caller may pay with, and neither other users nor the provider’s customer', async () => {
  const reply = await list('ann');
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual([referencesIn(reply), reply.json.next, reply.json.has_more], [ANNS, null, false]);
  assert.deepEqual(reply.json.data.at(-1), { reference: 'wallet-prepaid', kind: 'wallet', prepaid: true });
  assert.deepEqual(referencesIn(await list('bob')), ['pm_card_visa']);
  assert.deepEqual((await list('cat')).json, { data: [], next: null, has_more: false });
  const paid = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('bob'),
    body: purchaseOf('latte', undefined, { reference: 'pm_card_visa' }),
  });
  assert.equal(paid.status, 201);
});

test('pages neither skip nor repeat one while others are added and taken away', async () => {
  const method = (reference: string, users = ['ann']): object => ({ reference, kind: 'card', users });
  const first = await list('ann', '?limit=2');
  assert.deepEqual([referencesIn(first), first.json.next], [ANNS.slice(0, 2), 'pm_card_visa']);
  await service.import({ payment_methods: [method('pm_a'), method('pm_card_slow', ['cat']), method('pm_card_zed')] });
  const second = await list('ann', `?limit=2&after=${first.json.next}`);
  assert.deepEqual(referencesIn(second), [ANNS[2], 'pm_card_zed']);
  const third = await list('ann', `?limit=2&after=${second.json.next}`);
  assert.deepEqual([referencesIn(third), third.json.has_more], [ANNS.slice(3), false]);
  assert.deepEqual(referencesIn(await list('cat')), ['pm_card_slow'], 'whose it is by now');
  assert.deepEqual(referencesIn(await list('ann', '?limit=1')), ['pm_a']);
});

test('refuses a place that is none, a client’s token and none', async () => {
  for (const after of ['a/b', 'pm_nobodys', `000000000.${'0'.repeat(20)}`]) {
    const reply = await list('ann', `?after=${encodeURIComponent(after)}`);
    refused(reply, 422, 'after is not valid');
    assert.equal(reply.headers.get('error-field'), 'after');
  }
  const token = await service.clientToken();
  refused(await service.ask('GET', '/api/v2/payment-methods', { token }), 403, 'Forbidden.');
  refused(await service.ask('GET', '/api/v2/payment-methods'), 401, 'Authentication failed.');
});

test.run();

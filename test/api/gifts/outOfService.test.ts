/** Lists leave out a document that is out of service, and are not out of service with it (docs/support.md#finding-purchases). */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { suite } from 'uvu';
import type { CollectionSpec } from '../../../src/ports/readStore.js';
import { accountsProjection } from '../../../src/projections/accounts.js';
import { type GiftDocument, giftsProjection } from '../../../src/projections/gifts.js';
import { feedProjection, numberHolders, userNumbers } from '../../../src/projections/feed/feed.js';
import type { UserNumbers } from '../../../src/projections/feed/parties.js';
import { reversalsProjection } from '../../../src/projections/reversals.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { quarantineDocument } from '../../../src/runtime/readmodels/quarantine.js';
import { eventually } from '../../support/assertions/until.js';
import { buy, purchaseOf, redeem } from '../../support/service/giftFlow.js';
import { type Json, type Service, startService } from '../../support/service/service.js';

const test = suite('lists with documents out of service');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

async function takeOut({ name, version, indexes }: CollectionSpec, id: string): Promise<void> {
  const position = (await service.events.end()) ?? '';
  const broken = { documentId: id, position, cause: 'broken' };
  const store = await service.openStore();
  await store.write([{ collection: { name, version, indexes }, documents: [quarantineDocument(id, broken)] }]);
  await store.close();
}

/** Ids of all pages of a list, once it has so many. */
async function listed(path: string, user: string, count: number, field = 'id'): Promise<string[]> {
  const token = await service.userToken(user);
  return eventually(async () => {
    const ids: string[] = [];
    for (let after = ''; ;) {
      const { status, json, text } = await service.ask('GET', `${path}limit=2${after}`, { token });
      assert.ok(status === 200 || status === 503, text);
      if (status === 503) return undefined;
      ids.push(...(json.data as Json[]).map((one) => one[field] as string));
      if (json.next === null) return ids.length === count && ids;
      after = `&after=${encodeURIComponent(json.next as string)}`;
    }
  }, `${count} entries of ${path}`);
}

async function transaction(user = 'ann', receiver: object = { user_id: 'dan' }): Promise<string> {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken(user),
    body: purchaseOf('latte', [receiver]),
  });
  assert.equal(reply.status, 201, reply.text);
  return reply.json.data.id as string;
}

test('of purchases, and of their gifts', async () => {
  const bought: string[] = [];
  for (let n = 0; n < 5; n++) bought.unshift(await transaction());
  const gifts = await listed('/api/v2/gifts?', 'ann', 5);
  assert.deepEqual(await listed('/api/v2/transactions?', 'ann', 5), bought);
  const person = '/ops/gifts?person=ann&reason=call&';
  await listed(person, 'sue', 5, 'gift_id');

  await takeOut(transactionsProjection, bought[1] ?? '');
  const left = bought.filter((_, index) => index !== 1);
  assert.deepEqual(await listed('/api/v2/transactions?', 'ann', 4), left);
  assert.deepEqual(await listed('/ops/transactions?buyer=ann&', 'sue', 4, 'transaction_id'), left);
  assert.deepEqual(await listed('/ops/transactions?', 'sue', 4, 'transaction_id'), left);
  const giftsLeft = gifts.filter((_, index) => index !== 1);
  assert.deepEqual(await listed(person, 'sue', 4, 'gift_id'), giftsLeft);
  for (const [query, user] of [
    ['', 'ann'],
    ['as=sender&', 'ann'],
    ['as=holder&', 'dan'],
  ] as const)
    assert.deepEqual(await listed(`/api/v2/gifts?${query}`, user, 4), giftsLeft, query);

  await takeOut(reversalsProjection, bought[3] ?? '');
  assert.deepEqual(await listed('/api/v2/transactions?', 'ann', 3), [bought[0], bought[2], bought[4]]);
  assert.deepEqual(await listed('/ops/transactions?status=charged&', 'sue', 4, 'transaction_id'), left);

  await takeOut(giftsProjection, gifts[4] ?? '');
  for (const [query, user] of [
    ['as=sender&', 'ann'],
    ['as=holder&', 'dan'],
  ] as const)
    assert.deepEqual(await listed(`/api/v2/gifts?${query}`, user, 3), [gifts[0], gifts[2], gifts[3]], query);
});

test('of the gifts of one purchase, and of those that its answer embeds', async () => {
  const token = await service.userToken('ann');
  const phone = '07700 900411';
  const bought = await service.ask('POST', '/api/v2/transactions', {
    token,
    body: purchaseOf('latte', [{ user_id: 'dan' }, { user_id: 'dan' }, { phone_number: phone }]),
  });
  assert.equal(bought.status, 201, bought.text);
  const { id, gifts } = bought.json.data as { id: string; gifts: [string, string, string] };
  const [document] = await eventually(async () => {
    const store = await service.openStore();
    const found = await store.getMany<GiftDocument>(giftsProjection, gifts.slice(2));
    await store.close();
    return found[0] !== undefined && found;
  }, 'the gifts to be folded');
  await takeOut(giftsProjection, gifts[0]);
  await takeOut(accountsProjection, `phone-${document?.body.receiver.phone_id}`);
  const path = `/api/v2/transactions/${id}`;
  await eventually(async () => {
    const { status, json } = await service.ask('GET', `${path}/gifts`, { token });
    return (
      status === 200 &&
      isDeepStrictEqual(
        (json.data as Json[]).map((one) => one.id),
        [gifts[1]],
      ) &&
      json.to === 3
    );
  }, 'the page');
  const shown = await service.ask('GET', `${path}?embed[]=gifts`, { token });
  assert.deepEqual([shown.status, (shown.json.embedded.gifts as Json[]).map((one) => one.id)], [200, [gifts[1]]]);
  const again = await service.ask('POST', '/api/v2/transactions?embed[]=gifts', {
    token,
    body: purchaseOf('latte', [{ user_id: 'dan' }, { phone_number: phone }]),
  });
  assert.deepEqual([again.status, (again.json.embedded.gifts as Json[]).length], [201, 1], again.text);
});

test('but not the event feed of a user of whose number it is not known who had it', async () => {
  const token = await service.userToken('bob');
  const status = async (): Promise<number> => (await service.ask('GET', '/api/v2/events', { token })).status;
  assert.equal(await status(), 200);
  const store = await service.openStore();
  const numbers = await store.get<UserNumbers>(feedProjection, userNumbers('bob'));
  await store.close();
  await takeOut(feedProjection, numberHolders(numbers?.body.phone_ids[0] ?? ''));
  await eventually(async () => (await status()) === 503, 'the refusal');
});

test('of payment methods and of redemptions, where an account is out of service', async () => {
  const methods = await listed('/api/v2/payment-methods?', 'ann', 5, 'reference');
  const [gift = ''] = await buy(service, 'latte', [{ user_id: 'cat' }], 'bob');
  assert.equal((await redeem(service, gift, 'till-redeem-only')).status, 201);
  assert.deepEqual(await listed('/api/v2/redemptions?', 'till-coffee', 1, 'user_id'), ['till-redeem-only']);

  await takeOut(accountsProjection, `paymentMethod-${methods[2]}`);
  await takeOut(accountsProjection, 'user-till-redeem-only');
  assert.deepEqual(
    await listed('/api/v2/payment-methods?', 'ann', 4, 'reference'),
    methods.filter((_, index) => index !== 2),
  );
  const token = await service.userToken('till-coffee');
  await eventually(async () => {
    const { status, json } = await service.ask('GET', '/api/v2/redemptions', { token });
    return status === 200 && json.data.length === 1 && json.data[0].user_id === null;
  }, 'the redemption without its user');
});

test.run();

/**
 * What the API answers while its read models are late: what has been written is told all the same, and what is missing
 * is not told as if there were none.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { giftStream } from '../../src/domain/gift/events.js';
import { giftsProjection } from '../../src/projections/gifts.js';
import { buy, buyOne, purchaseOf, refused } from '../support/service/giftFlow.js';
import { type HeldCollection, heldCollection } from '../support/faults/heldCollection.js';
import { type Reply, type Service, startService } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('late read models');
let service: Service;
let held: HeldCollection[];

test.before.each(async () => {
  held = [heldCollection('gifts'), heldCollection('transactions')];
  service = await startService({
    app: { through: (engines) => held.reduce((seen, { through }) => through(seen), engines) },
  });
});
test.after.each(async () => {
  await free();
  const gift = await buyOne(service);
  await eventually(async () => (await look(gift, 'ann')).json.data?.gift_status === 'sent');
  await service.close();
});

const hold = (...which: number[]): void => which.forEach((n) => held[n]?.hold());
const free = async (): Promise<void> => void (await Promise.all(held.map((one) => one.free())));
const issued = (gift: string): Promise<true> =>
  eventually(async () => (await service.events.read(giftStream(gift))).length > 0);

async function look(gift: string, user: string): Promise<Reply> {
  return service.ask('GET', `/api/v2/gifts/${gift}`, { token: await service.userToken(user) });
}

async function write(path: string, user: string, key: string): Promise<Reply> {
  return service.ask('POST', `/api/v2/gifts/${path}`, { token: await service.userToken(user), key });
}

const typesOf = async (gift: string): Promise<string[]> =>
  (await service.events.read(giftStream(gift))).map(({ type }) => type);

test('answers a written claim and its repeats, though no read model knows the gift yet', async () => {
  hold(0, 1);
  const gift = await buyOne(service);
  await issued(gift);
  const first = await write(`${gift}/claim`, 'bob', 'late-claim');
  assert.equal(first.status, 200, first.text);
  const { data } = first.json;
  assert.deepEqual(
    [data.id, data.receiver_id, data.gift_status, data.status_code, data.sender_id, data.purchase_id],
    [gift, 'bob', 'sent', 'SE', 'ann', 'latte'],
  );
  assert.notEqual(data.sent_date, '');
  assert.deepEqual(await typesOf(gift), ['GiftIssued', 'GiftClaimed']);
  assert.deepEqual((await write(`${gift}/claim`, 'bob', 'late-claim')).text, first.text);
  refused(await write(`${gift}/claim`, 'cat', 'late-claim'), 405, 'gift already claimed.');
  await free();
  await eventually(async () => (await look(gift, 'bob')).json.data?.receiver_id === 'bob');
  assert.deepEqual((await look(gift, 'bob')).json, first.json);
});

test('so is a V1 voucher, made now or before', async () => {
  hold(0, 1);
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await issued(gift);
  const first = await write(`${gift}/voucher`, 'bob', 'late-v1');
  assert.equal(first.status, 200, first.text);
  assert.deepEqual(
    [first.json.data.id, first.json.data.receiver_id, first.json.data.voucher_id, first.json.data.status_code],
    [gift, 'bob', first.json.embedded.vouchers[0].id, 'SE'],
  );
  const again = await write(`${gift}/voucher`, 'bob', 'late-v1-again');
  assert.deepEqual([again.status, again.json], [200, first.json]);
  assert.deepEqual(await typesOf(gift), ['GiftIssued', 'VoucherAssigned']);
});

test('a gift with a voucher names it, though the read model has the gift of before', async () => {
  const gift = await buyOne(service);
  await issued(gift);
  hold(0);
  assert.equal((await write(`${gift}/voucher/claimed`, 'ann', 'v2')).status, 200);
  const { data, embedded } = (await write(`${gift}/voucher`, 'ann', 'v1')).json;
  assert.equal(data.voucher_id, embedded.vouchers[0].id);
});

test('does not show a paid gift as pending while the read model has an older purchase', async () => {
  held[1]?.hold();
  const gift = await buyOne(service);
  await issued(gift);
  const claimed = (await write(`${gift}/claim`, 'bob', 'paid')).json.data;
  assert.deepEqual([claimed.gift_status, claimed.sent_date === ''], ['sent', false]);
});

test('a purchase whose gifts the read model lacks is not listed as if it had none', async () => {
  hold(0);
  const gifts = await buy(service, 'latte', [{}, {}, {}]);
  const token = await service.userToken('ann');
  const bought = await service.ask('POST', '/api/v2/transactions', { token, body: purchaseOf('latte') });
  const list = (): Promise<Reply> => service.ask('GET', bought.headers.get('location') ?? '', { token });
  const one = (): Promise<Reply> =>
    service.ask('GET', `/api/v2/transactions/${bought.json.data.id as string}?embed[]=gifts`, { token });
  for (const ask of [list, one]) {
    const reply = await ask();
    refused(reply, 503, 'Service unavailable.');
    assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  }
  await free();
  await eventually(async () => (await list()).status === 200);
  assert.equal((await list()).json.data.length, 1);
  assert.equal((await one()).json.embedded.gifts.length, 1);
  assert.equal(gifts.length, 3);
});

test('does not refuse an unissued gift for good while the read model lacks it', async () => {
  hold(0);
  const charge = purchaseOf('latte', [{ user_id: 'bob' }, {}], { reference: 'pm_card_slow' });
  const bought = service.ask('POST', '/api/v2/transactions', { token: await service.userToken('ann'), body: charge });
  const { events } = service;
  const ids = await eventually(async () => {
    for await (const batch of events.readAll(undefined, { types: ['GiftsPurchased'] })) {
      const last = batch.events.at(-1);
      if (last !== undefined) return giftsProjection.documentIds(last);
    }
    return undefined;
  });
  assert.equal(ids.length, 2);
  const [sent = '', shared = ''] = ids;
  const asked = async (): Promise<Reply[]> => [
    await service.ask('POST', `/api/v2/gifts/${sent}/redemptions`, {
      token: await service.userToken('bob'),
      key: 'late-redeem',
      body: { location_id: 'bean-soho' },
    }),
    await write(`${sent}/voucher/claimed`, 'bob', 'late-v2'),
    await write(`${shared}/claim`, 'bob', 'late-claim'),
  ];
  for (const reply of await asked()) refused(reply, 503, 'Service unavailable.');
  await free();
  assert.equal((await bought).status, 201);
  await issued(sent);
  await issued(shared);
  assert.deepEqual(
    (await asked()).map(({ status }) => status),
    [201, 405, 200],
  );
  refused(await write(`${'0'.repeat(20)}/claim`, 'bob', 'none'), 404, 'gift not found');
});

test.run();

import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { randomUUID } from 'node:crypto';
import { bodyHashOf, keyedCommandId, keyRoute } from '../../../src/api/pipeline/idempotency.js';
import type { Principal } from '../../../src/api/pipeline/principal.js';
import { REDEEM_ROUTE } from '../../../src/api/gifts/redemptionKeys.js';
import { idFrom } from '../../../src/commands/commandIds.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import { commandPartOf } from '../../../src/domain/gift/redemptionIds.js';
import { ANSWERS } from '../../../src/domain/recordKeys.js';
import { redeemedAtBean } from '../../support/fixtures/pastPurchase.js';
import { buyOne, purchaseOf, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('redemptions by their keys');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

const redeemWith = async (gift: string, key: string): Promise<Reply> =>
  redeem(service, gift, 'till-coffee', 'bean-soho', { key });
const cancel = async (gift: string, key: string, user = 'till-coffee', more = {}): Promise<Reply> =>
  unredeem(service, gift, `key:${encodeURIComponent(key)}`, user, more);
const lookUp = async (gift: string, key: string, user = 'till-coffee'): Promise<Reply> =>
  service.ask('GET', `/api/v2/idempotency-keys/${encodeURIComponent(key)}?gift_id=${gift}`, {
    token: await service.userToken(user),
  });
const typesOf = async (gift: string): Promise<string[]> =>
  (await service.events.read(giftStream(gift))).map(({ type }) => type).filter((type) => type.includes('ede'));

test('says what a key redeemed, with the first answer, and what has become of it', async () => {
  const gift = await buyOne(service);
  const key = 'till-7/1?';
  const named = { key, gift_id: gift };
  assert.deepEqual((await lookUp(gift, key)).json, { data: { ...named, status: 'unseen' } });
  const { json } = await redeemWith(gift, key);
  const found = await lookUp(service.shortcodeOf(gift), key);
  const answer = { status: 201, body: json };
  assert.deepEqual(found.json, { data: { ...named, status: 'done', answer, redemption: json.data } });
  assert.ok(found.headers.get('gift-position'));
  const reversed = (await cancel(gift, key)).json.data as Json;
  assert.deepEqual([reversed['id'], reversed['redeemed']], [json.data.id, false]);
  assert.deepEqual((await lookUp(gift, key)).json, {
    data: { ...named, status: 'done', answer, redemption: reversed },
  });
});

test('says what a key was refused for, and nothing of the keys of others', async () => {
  const gift = await buyOne(service);
  assert.equal((await redeemWith(gift, 'first')).status, 201);
  refused(await redeemWith(gift, 'second'), 405, 'gift already redeemed.');
  assert.deepEqual((await lookUp(gift, 'second')).json.data, {
    key: 'second',
    gift_id: gift,
    status: 'done',
    answer: { status: 405, body: { error: 'gift already redeemed.' } },
  });
  for (const user of ['till-redeem-only', 'till-cinema', 'ann'])
    assert.equal((await lookUp(gift, 'first', user)).json.data.status, 'unseen', user);
});

test('says what a key bought, or was refused for, as long as an answer is kept or the purchase stands', async () => {
  const lookUpPurchase = async (key: string, user = 'ann'): Promise<Reply> =>
    service.ask('GET', `/api/v2/idempotency-keys/${encodeURIComponent(key)}`, { token: await service.userToken(user) });
  const buyWith = async (key: string, product: string): Promise<Reply> =>
    service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      body: purchaseOf(product),
      key,
    });
  assert.deepEqual((await lookUpPurchase('order/1')).json.data, { key: 'order/1', status: 'unseen' });
  const bought = await buyWith('order/1', 'latte');
  assert.equal(bought.status, 201);
  const id = bought.json.data.id as string;
  const found = await lookUpPurchase('order/1');
  assert.deepEqual(found.json.data, {
    key: 'order/1',
    status: 'done',
    answer: { status: 201, body: bought.json },
    transaction_id: id,
  });
  assert.ok(found.headers.get('gift-position'));
  assert.equal((await lookUpPurchase('order/1', 'bob')).json.data.status, 'unseen');
  const refusedPurchase = await buyWith('order/2', 'unknown');
  assert.deepEqual((await lookUpPurchase('order/2')).json.data, {
    key: 'order/2',
    status: 'done',
    answer: { status: refusedPurchase.status, body: refusedPurchase.json },
  });
  const store = await service.openStore();
  try {
    for (const { key } of await store.records.list(ANSWERS)) await store.records.delete(key);
  } finally {
    await store.close();
  }
  assert.deepEqual((await lookUpPurchase('order/1')).json.data, { key: 'order/1', status: 'done', transaction_id: id });
  assert.deepEqual((await lookUpPurchase('order/2')).json.data, { key: 'order/2', status: 'unseen' });
});

test('a cancelled key reverses what it redeemed, once, however often it is cancelled', async () => {
  const gift = await buyOne(service);
  assert.equal((await redeemWith(gift, 'k')).status, 201);
  const first = await cancel(gift, 'k', 'till-coffee', { key: 'c' });
  assert.equal(first.status, 200);
  for (const more of [{}, { key: 'c' }, { key: 'd' }])
    assert.deepEqual((await cancel(gift, 'k', 'till-coffee', more)).json, first.json);
  assert.equal((await redeemWith(gift, 'k')).headers.get('idempotent-replayed'), 'true');
  assert.deepEqual(await typesOf(gift), ['GiftRedeemed', 'GiftUnredeemed']);
});

test('a key in quotes is the key between them, wherever it is written', async () => {
  const gift = await buyOne(service);
  const key = randomUUID();
  const first = await redeemWith(gift, `"${key}"`);
  assert.equal(first.status, 201);
  const again = await redeemWith(gift, key);
  assert.deepEqual([again.json, again.headers.get('idempotent-replayed')], [first.json, 'true']);
  for (const written of [key, `"${key}"`]) {
    const { data } = (await lookUp(gift, written)).json;
    assert.deepEqual([data.key, data.status], [key, 'done']);
  }
  assert.equal((await cancel(gift, `"${key}"`)).json.data.id, first.json.data.id);
  assert.equal((await lookUp(gift, key)).json.data.redemption.redeemed, false);

  assert.equal((await redeemWith(gift, 'back\\slash "quote"'.replaceAll(' ', ''))).status, 201);
  assert.equal((await lookUp(gift, '"back\\\\slash\\"quote\\""')).json.data.status, 'done');
  for (const empty of ['""', '"two words"']) refused(await redeemWith(gift, empty), 400, 'Invalid idempotency key.');
});

test('a key that is cancelled before it came is void, and its late request refused for good', async () => {
  const gift = await buyOne(service);
  const first = await cancel(gift, 'late');
  assert.equal(first.status, 200);
  const { id, redeemed, location_id } = first.json.data as Json;
  assert.deepEqual([redeemed, location_id], [false, null]);
  assert.deepEqual((await cancel(gift, 'late')).json, first.json);
  assert.equal((await lookUp(gift, 'late')).json.data.status, 'void');
  const late = await redeemWith(gift, 'late');
  refused(late, 422, 'Redemption voided.');
  assert.equal(late.headers.get('error-code'), 'redemption_voided');
  assert.deepEqual(await typesOf(gift), ['RedemptionVoided']);
  assert.equal((await redeemWith(gift, 'another')).status, 201);
  assert.deepEqual(await typesOf(gift), ['RedemptionVoided', 'GiftRedeemed']);
  assert.notEqual((await lookUp(gift, 'another')).json.data.redemption.id, id);
  assert.equal((await cancel(gift, 'late')).status, 200);
  assert.equal((await lookUp(gift, 'another')).json.data.redemption.redeemed, true);
});

/** The command of a key that `till-coffee` redeems the gift with. */
function commandOf(gift: string, key: string): string {
  const till = { kind: 'user', clientId: 'app', sessionId: '', user: { id: 'till-coffee' } } as Principal;
  return keyedCommandId(service.hash, till, keyRoute(REDEEM_ROUTE, { giftId: gift }), key);
}

test('ids of redemptions sort by time, and keys know their last 20 digits, which name nothing', async () => {
  const gift = await buyOne(service);
  const ids: string[] = [];
  for (const key of ['one', 'two', undefined]) {
    const { data } = (await (key === undefined ? redeem(service, gift) : redeemWith(gift, key))).json;
    const { id, creation_at } = data as { readonly id: string; readonly creation_at: string };
    assert.match(id, /^[0-9a-f]{31}$/);
    assert.equal(Number.parseInt(id.slice(0, 11), 16), Date.parse(creation_at));
    if (key !== undefined) assert.equal(commandPartOf(id), idFrom(commandOf(gift, key), 'redemption'));
    assert.ok(id > (ids.at(-1) ?? ''), `${id} after ${ids.join()}`);
    ids.push(id);
    refused(await unredeem(service, gift, commandPartOf(id)), 404, 'Redemption not found');
    assert.equal((await unredeem(service, gift, id)).json.data.id, id);
  }
  assert.equal((await cancel(gift, 'two')).json.data.id, ids[1]);
  const voided = (await cancel(gift, 'three')).json.data;
  assert.deepEqual([voided.id, voided.location_id], [idFrom(commandOf(gift, 'three'), 'redemption'), null]);
  refused(await unredeem(service, gift, voided.id as string), 404, 'Redemption not found');
});

test('keys find redemptions whose ids are older, of 20 digits; these ids still name them', async () => {
  const gift = await buyOne(service);
  // The gift is issued at the latest by a redemption.
  assert.equal((await redeem(service, gift)).status, 201);
  assert.equal((await unredeem(service, gift)).status, 200);
  const older = async (key: string): Promise<string> => {
    const commandId = commandOf(gift, key);
    const id = idFrom(commandId, 'redemption');
    const bodyHash = service.hash('body', bodyHashOf({ location_id: 'bean-soho' }));
    const metadata = { commandId, bodyHash, correlationId: 'older', by: { user: 'till-coffee' } };
    const at = new Date().toISOString();
    await service.events.append(giftStream(gift), [{ ...redeemedAtBean(id), id: randomUUID(), at, metadata }], 'any');
    return id;
  };
  const first = await older('older');
  assert.equal(first.length, 20);
  const found = (await lookUp(gift, 'older')).json.data;
  assert.deepEqual([found.status, found.redemption.id, found.redemption.redeemed], ['done', first, true]);
  const again = await redeemWith(gift, 'older');
  assert.equal(again.status, 201, again.text);
  assert.deepEqual([again.json.data.id, again.headers.get('idempotent-replayed')], [first, 'true']);
  const reversed = (await cancel(gift, 'older')).json.data;
  assert.deepEqual([reversed.id, reversed.redeemed, reversed.location_id], [first, false, 'bean-soho']);
  const second = await older('another');
  assert.equal((await unredeem(service, gift, second)).json.data.id, second);
  assert.deepEqual(
    (await typesOf(gift)).filter((type) => type === 'RedemptionVoided'),
    [],
  );
});

test('cancels only keys of the caller, for whom may reverse', async () => {
  const gift = await buyOne(service);
  assert.equal((await redeemWith(gift, 'mine')).status, 201);
  for (const user of ['till-redeem-only', 'ann', 'till-cinema'])
    refused(await cancel(gift, 'mine', user), 403, 'Cannot unredeem this gift.');
  refused(await cancel(gift, ''), 400, 'Invalid idempotency key.');
  refused(await cancel('0'.repeat(20), 'mine'), 404, 'gift not found');
  assert.deepEqual(await typesOf(gift), ['GiftRedeemed']);
});

test('of a redemption and its cancellation at one moment, nothing redeemed is left', async () => {
  for (let n = 0; n < 20; n++) {
    const gift = await buyOne(service);
    const [done, cancelled] = await Promise.all([redeemWith(gift, 'k'), cancel(gift, 'k')]);
    assert.equal(cancelled.status, 200, cancelled.text);
    const void_ = cancelled.json.data.location_id === null;
    assert.deepEqual(
      [done.status, await typesOf(gift)],
      [void_ ? 422 : 201, void_ ? ['RedemptionVoided'] : ['GiftRedeemed', 'GiftUnredeemed']],
    );
  }
});

test('knows what keys did, and that one is void, once their records are gone; no refusal', async () => {
  const [gift, other] = [await buyOne(service), await buyOne(service)];
  const done = await redeemWith(gift, 'did');
  assert.equal((await redeemWith(gift, 'refused')).status, 405);
  assert.equal((await cancel(other, 'cancelled')).status, 200);
  assert.equal((await redeemWith(other, 'cancelled')).status, 422);
  const store = await service.openStore();
  try {
    for (const record of await store.records.list('idempotency:')) await store.records.delete(record.key);
  } finally {
    await store.close();
  }
  assert.deepEqual((await lookUp(gift, 'did')).json.data.answer, { status: 201, body: done.json });
  assert.equal((await lookUp(gift, 'refused')).json.data.status, 'unseen');
  assert.equal((await lookUp(other, 'cancelled')).json.data.status, 'void');
  refused(await redeemWith(other, 'cancelled'), 422, 'Redemption voided.');
});

test.run();

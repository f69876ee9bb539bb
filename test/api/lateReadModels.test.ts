/**
 * What the API answers while its read models are late: what has been written is told all the same, and what is missing
 * is not told as if there were none.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { randomUUID } from 'node:crypto';
import { giftStream } from '../../src/domain/gift/events.js';
import { giftsProjection } from '../../src/projections/gifts.js';
import { buyOne, notificationOver, purchaseOf, redeem, refused } from '../support/service/giftFlow.js';
import { type HeldCollection, heldCollection } from '../support/faults/heldCollection.js';
import { user } from '../support/fixtures/testCatalogue.js';
import { type Reply, type Service, startService } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('late read models');
let service: Service;
let held: HeldCollection[];

const GIFTS = 0;
const TRANSACTIONS = 1;
const CATALOGUE = 3;
const ALL = [GIFTS, TRANSACTIONS, 2, 3, 4];

test.before.each(async () => {
  held = ['gifts', 'transactions', 'accounts', 'catalogue', 'byUser'].map(heldCollection);
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

async function look(gift: string, name: string): Promise<Reply> {
  return service.ask('GET', `/api/v2/gifts/${gift}`, { token: await service.userToken(name) });
}

async function write(path: string, name: string, key: string): Promise<Reply> {
  return service.ask('POST', `/api/v2/gifts/${path}`, { token: await service.userToken(name), key });
}

const typesOf = async (gift: string): Promise<string[]> =>
  (await service.events.read(giftStream(gift))).map(({ type }) => type);

test('answers a written claim and its repeats, though no read model knows the gift yet', async () => {
  hold(GIFTS, TRANSACTIONS);
  const gift = await buyOne(service);
  await issued(gift);
  const first = await write(`${service.shortcodeOf(gift)}/claim`, 'bob', 'late-claim');
  assert.equal(first.status, 200, first.text);
  const { data } = first.json;
  assert.deepEqual(
    [data.id, data.receiver_id, data.gift_status, data.status_code, data.sender_id, data.purchase_id],
    [gift, 'bob', 'sent', 'SE', 'ann', 'latte'],
  );
  assert.notEqual(data.sent_date, '');
  assert.deepEqual(await typesOf(gift), ['GiftIssued', 'GiftClaimed']);
  assert.deepEqual((await write(`${service.shortcodeOf(gift)}/claim`, 'bob', 'late-claim')).text, first.text);
  refused(await write(`${service.shortcodeOf(gift)}/claim`, 'cat', 'late-claim'), 405, 'gift already claimed.');
  await free();
  await eventually(async () => (await look(gift, 'bob')).json.data?.receiver_id === 'bob');
  assert.deepEqual((await look(gift, 'bob')).json, first.json);
});

test('so is a V1 voucher, made now or before', async () => {
  hold(GIFTS, TRANSACTIONS);
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
  hold(GIFTS);
  assert.equal((await write(`${gift}/voucher/claimed`, 'ann', 'v2')).status, 200);
  const { data, embedded } = (await write(`${gift}/voucher`, 'ann', 'v1')).json;
  assert.equal(data.voucher_id, embedded.vouchers[0].id);
});

test('shows a voucher of a segment that only the log knows yet, as one that another process gave', async () => {
  const gift = await buyOne(service);
  await issued(gift);
  hold(CATALOGUE);
  await service.import({ segments: [{ id: 'seg-late', name: 'Late', voucherType: 'qr', expiry: 30 }] });
  const expires_at = '2099-01-01T23:59:59.999Z';
  const data = { voucher_id: 'v-late', segment_id: 'seg-late', code: 'LATE', pin: null, expires_at };
  const metadata = { commandId: 'late', correlationId: 'late', by: { user: 'ann' } };
  const at = new Date().toISOString();
  const assigned = { id: randomUUID(), type: 'VoucherAssigned', data, at, metadata };
  await service.events.append(giftStream(gift), [assigned], 'any');
  for (const shown of [
    await look(`${gift}/voucher/claimed`, 'ann'),
    await write(`${gift}/voucher/claimed`, 'ann', 'v'),
  ]) {
    assert.equal(shown.status, 200, shown.text);
    assert.deepEqual([shown.json.segment.name, shown.json.data[0].value], ['Late', 'LATE']);
  }
});

test('does not show a paid gift as pending while the read model has an older purchase', async () => {
  hold(TRANSACTIONS);
  const gift = await buyOne(service);
  await issued(gift);
  const claimed = (await write(`${service.shortcodeOf(gift)}/claim`, 'bob', 'paid')).json.data;
  assert.deepEqual([claimed.gift_status, claimed.sent_date === ''], ['sent', false]);
});

test('shows a purchase and its gifts, issued or not, as read models that lack them will', async () => {
  hold(...ALL);
  const token = await service.userToken('ann');
  const made = await service.ask('POST', '/api/v2/transactions', {
    token,
    body: purchaseOf('latte', [{ user_id: 'bob' }, { phone_number: '+447700900123' }, {}], { message: 'Well done' }),
  });
  const id = made.json.data.id as string;
  const [sent = '', byNumber = '', shared = ''] = made.json.data.gifts as string[];
  for (const gift of [sent, byNumber, shared]) await issued(gift);
  await notificationOver(service, sent);
  assert.equal((await write(`${sent}/voucher/claimed`, 'bob', 'v2')).status, 200);
  const redemption = await redeem(service, sent);
  assert.equal(redemption.status, 201, redemption.text);
  const redeemed = redemption.headers.get('gift-position') ?? '';
  assert.equal((await write(`${service.shortcodeOf(shared)}/claim`, 'bob', 'claim')).status, 200);
  const embeds = ['message', 'redeemed', 'voucher.segment', 'purchase.brand.stores'].map((one) => `embed[]=${one}`);
  const pages = [
    // The number is nobody's: its gift opens by the shortcode.
    ...[sent, service.shortcodeOf(byNumber), shared].map((gift) => `/api/v2/gifts/${gift}?${embeds.join('&')}`),
    `/api/v2/gifts/${sent}/redemptions`,
    `/api/v2/gifts/${sent}/voucher/options`,
    `/api/v2/transactions/${id}?embed[]=gifts&embed[]=gifts.message`,
    `/api/v2/transactions/${id}/gifts?embed[]=voucher`,
  ];
  const shown = async (name: string): Promise<Reply['json'][]> =>
    Promise.all(
      pages
        .filter((path) => name === 'ann' || !path.includes('transactions'))
        .map(async (path) => {
          const reply = await service.ask('GET', path, {
            token: await service.userToken(name),
            headers: { 'Gift-Position': redeemed },
          });
          assert.equal(reply.status, 200, `${path}: ${reply.text}`);
          return reply.json;
        }),
    );
  const early = [await shown('ann'), await shown('bob')];
  const [[redeemedGift, , claimedGift] = []] = early.slice(1);
  assert.equal(redeemedGift?.['embedded'].redemptions[0].redeemed, true);
  assert.equal(claimedGift?.['data'].receiver_id, 'bob');
  await free();
  await eventually(async () => (await service.ask('GET', '/api/v2/gifts', { token })).json['data']?.length === 3);
  assert.deepEqual(early, [await shown('ann'), await shown('bob')]);
});

test('opens a gift by its id to the user who just got its number, and to no stranger', async () => {
  const number = '+447700900123';
  const gift = await buyOne(service, 'latte', { phone_number: number });
  await issued(gift);
  hold(...ALL);
  await service.import({ users: [user('new', { phone_number: number })] });
  const shown = await look(gift, 'new');
  assert.equal(shown.status, 200, shown.text);
  assert.equal(shown.json.data.receiver_id, 'new');
  const options = await service.ask('GET', `/api/v2/gifts/${gift}/voucher/options`, {
    token: await service.userToken('new'),
  });
  assert.equal(options.status, 200, options.text);
  refused(await look(gift, 'bob'), 404, 'gift not found');
});

test('refuses at once what neither read models that are behind nor the log allow', async () => {
  hold(...ALL);
  await buyOne(service);
  const ann = await service.userToken('ann');
  const buying = async (product: string, receivers?: object[], reference?: string): Promise<Reply> =>
    service.ask('POST', '/api/v2/transactions', {
      token: ann,
      body: purchaseOf(product, receivers, reference === undefined ? {} : { reference }),
    });
  refused(await buying('old'), 422, 'Invalid product.');
  refused(await buying('unknown'), 422, 'Invalid product.');
  refused(await buying('latte', [{ user_id: 'gone' }]), 422, 'Receiver not found.');
  refused(await buying('latte', [{ user_id: 'x'.repeat(100) }]), 422, 'Receiver not found.');
  refused(await buying('latte', undefined, 'pm_unknown'), 422, 'Invalid payment reference.');
  const bob = await service.userToken('bob');
  refused(
    await service.ask('POST', '/api/v2/transactions', {
      token: bob,
      body: purchaseOf('latte', undefined, { reference: 'pm_card_slow' }),
    }),
    403,
    'Cannot use this payment method.',
  );
  const none = '0'.repeat(20);
  refused(await look(none, 'ann'), 404, 'gift not found');
  refused(await write(`${none}/claim`, 'bob', 'none'), 404, 'gift not found');
  refused(await service.ask('GET', `/api/v2/transactions/${none}`, { token: ann }), 404, 'transaction not found');
  refused(await service.ask('GET', '/api/v2/products/unknown', { token: ann }), 404, 'Product not found');
  refused(
    await service.ask('GET', '/api/v2/product-tags/categories/unknown', { token: ann }),
    404,
    'Category not found',
  );
  const gift = await buyOne(service);
  await issued(gift);
  refused(await redeem(service, gift, 'ann', 'nowhere'), 422, 'Invalid location.');
  refused(await redeem(service, gift, 'till-cinema'), 403, 'Cannot redeem this gift.');
});

test('sells what was imported just now to whom, and refuses what was withdrawn, by the log', async () => {
  hold(...ALL);
  const products = [
    { id: 'fresh', brand_id: 'bean', name: 'Fresh', sale_price: 300 },
    { id: 'never', brand_id: 'bean', name: 'Never', sale_price: 300, active: false },
  ];
  const users = [user('new')];
  const cards = [{ reference: 'pm_card_new', kind: 'card', users: ['ann'] }];
  await service.import({ products, users, payment_methods: cards });
  const buying = async (product: string): Promise<Reply> =>
    service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      body: purchaseOf(product, [{ user_id: 'new' }], { reference: 'pm_card_new' }),
    });
  refused(await buying('never'), 422, 'Invalid product.');
  assert.equal((await buying('fresh')).status, 201);
  await service.import({ products: [{ ...products[0], active: false }] });
  refused(await buying('never'), 422, 'Invalid product.');
  refused(await buying('fresh'), 422, 'Invalid product.');
});

test('shows a user who was imported just now their account', async () => {
  hold(...ALL);
  await service.import({ users: [user('newest')] });
  const reply = await service.ask('GET', '/api/v2/me', { token: await service.userToken('newest') });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.json.data.id, 'newest');
});

test('says of an unissued gift that it is not paid for, though the read model lacks it', async () => {
  hold(GIFTS);
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
  const requested = async (): Promise<Reply[]> => [
    await service.ask('POST', `/api/v2/gifts/${sent}/redemptions`, {
      token: await service.userToken('bob'),
      key: 'late-redeem',
      body: { location_id: 'bean-soho' },
    }),
    await write(`${sent}/voucher/claimed`, 'bob', 'late-v2'),
    await write(`${service.shortcodeOf(shared)}/claim`, 'bob', 'late-claim'),
  ];
  for (const reply of await requested()) refused(reply, 405, 'gift is not paid for yet.');
  assert.equal((await look(sent, 'ann')).json.data.status_code, 'PE');
  await free();
  assert.equal((await bought).status, 201);
  await issued(sent);
  await issued(shared);
  assert.deepEqual(
    (await requested()).map(({ status }) => status),
    [201, 405, 200],
  );
  refused(await write(`${'0'.repeat(20)}/claim`, 'bob', 'none'), 404, 'gift not found');
});

test.run();

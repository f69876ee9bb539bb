import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { isGiftId } from '../../../src/domain/giftIds.js';
import type { Engines } from '../../../src/ports/engines.js';
import { checked, answerOf, unharmed } from '../../support/service/answers.js';
import { farLog } from '../../support/faults/farLog.js';
import { buy, buyOne, purchaseOf, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { boughtBefore, daysFromNow, happenedBefore, redeemedAtBean } from '../../support/fixtures/pastPurchase.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('gifts');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(async () => {
  await unharmed(service);
  await service.close();
});

/** What opens it to anybody: an id's shortcode, and anything else as it is. */
const opening = (gift: string): string => (isGiftId(gift) ? service.shortcodeOf(gift) : gift);

async function look(
  gift: string,
  user = 'ann',
  query = '',
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  return service.ask('GET', `/api/v2/gifts/${opening(gift)}${query}`, {
    token: await service.userToken(user),
    headers,
  });
}

async function claim(gift: string, user: string, key?: string): Promise<Reply> {
  return service.ask('POST', `/api/v2/gifts/${opening(gift)}/claim`, {
    token: await service.userToken(user),
    ...(key === undefined ? {} : { key }),
  });
}

async function codes(gift: string, user: string): Promise<Reply> {
  return service.ask('GET', `/api/v2/gifts/${gift}/product/adjustment-codes`, { token: await service.userToken(user) });
}

/** A user of the catalogue with some fields changed; the password hash stays, so nobody is logged out. */
function changedUser(id: string, more: object): object {
  const user = (CATALOGUE.users as { id: string }[]).find((one) => one.id === id);
  return { ...user, ...more };
}

test('every field of a gift', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  const reply = await look(gift, 'bob');
  checked(answerOf(reply));
  const { data } = reply.json;
  const today = new Date().toISOString().slice(0, 10);
  assert.deepEqual(reply.json, {
    data: {
      id: gift,
      shortcode: service.shortcodeOf(gift),
      sender_id: 'ann',
      receiver_id: 'bob',
      purchase_id: 'latte',
      transaction_id: data.transaction_id,
      message_id: data.message_id,
      voucher_id: null,
      redeemed_id: null,
      code: '',
      vid: '',
      redeem_code: '',
      reminder_sent: '',
      type: '',
      expiry_date: new Date(Date.parse(today) + 365 * 86_400_000).toISOString().slice(0, 10),
      created_at: data.created_at,
      updated_at: data.updated_at,
      sent_date: data.sent_date,
      deleted_at: null,
      assigned_date: null,
      assigned_client: null,
      viewed_date: null,
      viewed_client: null,
      account_id: null,
      order_id: null,
      cover_image_url: null,
      image_url: null,
      theme_id: '',
      theme_info: { clientIds: [], name: '', type: '', label: '', id: '' },
      launch_url: `${service.url}/g/${service.shortcodeOf(gift)}`,
      reminders_sent: [],
      is_expired: false,
      gift_status: 'sent',
      status_code: 'SE',
      status: 5,
    },
  });
  for (const name of ['created_at', 'updated_at', 'sent_date'])
    assert.match(data[name], /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/, name);
  assert.match(data.message_id, /^[0-9a-f]{20}$/);
  assert.notEqual(data.message_id, gift);
  assert.match(data.transaction_id, /^[0-9a-f]{32}$/);
});

test('finds a gift by shortcode for any user, by id for those who have to do with it, not for a client', async () => {
  const gift = await buyOne(service);
  const code = service.shortcodeOf(gift);
  const byId = async (user: string, path = gift): Promise<Reply> =>
    service.ask('GET', `/api/v2/gifts/${path}`, { token: await service.userToken(user) });
  const groups = code.match(/.{4}/g) ?? [];
  const typed = [groups.join('-'), groups.join(' '), `${code}\r`].map(encodeURIComponent);
  for (const spelling of [code, code.toLowerCase(), `${code}/`, ...typed])
    assert.equal((await look(spelling, 'dan')).json.data.id, gift, spelling);
  for (const user of ['ann', 'bob', 'vip', 'till-cinema', 'till-nothing', 'sue', 'aud'])
    assert.equal((await look(code, user)).status, 200, user);
  for (const user of ['ann', 'till-coffee', 'till-redeem-only'])
    for (const path of [gift, `${gift}/`]) assert.equal((await byId(user, path)).json.data.shortcode, code, user);
  for (const user of ['bob', 'vip', 'till-cinema', 'till-nothing', 'sue', 'aud'])
    for (const rest of ['', '/voucher/options', '/redemptions'])
      refused(await byId(user, `${gift}${rest}`), 404, 'gift not found');
  refused(await service.ask('GET', `/api/v2/gifts/${gift}`, { token: await service.clientToken() }), 403, 'Forbidden.');
  refused(await service.ask('GET', `/api/v2/gifts/${gift}`), 401, 'Authentication failed.');
  for (const unknown of [
    '0'.repeat(20),
    '0'.repeat(16),
    gift.toUpperCase(),
    gift.slice(1),
    `${gift}0`,
    ` ${gift}`,
    'U'.repeat(16),
  ])
    refused(await byId('ann', encodeURIComponent(unknown)), 404, 'gift not found');
});

test('embeds: every relation, and several at once, each entity once', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  const embedded = async (query: string, user = 'bob'): Promise<Json> => (await look(gift, user, query)).json.embedded;
  assert.deepEqual(Object.keys(await embedded('?embed[]=message')), ['messages']);
  assert.deepEqual(await embedded('?embed[]=redeemed&embed[]=voucher.segment'), {
    redemptions: [],
    vouchers: [],
    segments: [],
  });
  const redemption = (await redeem(service, gift)).json.data;
  assert.deepEqual(await embedded('?embed=redeemed'), { redemptions: [redemption] });
  assert.equal((await unredeem(service, gift)).status, 200);
  assert.deepEqual(await embedded('?embed=redeemed'), { redemptions: [] });
  const voucher = (
    await service.ask('POST', `/api/v2/gifts/${gift}/voucher`, {
      token: await service.userToken('bob'),
      body: { segmentId: 'seg-alpha' },
    })
  ).json;
  assert.deepEqual(await embedded('?embed[]=voucher'), { vouchers: voucher.embedded.vouchers });
  const withSegment = await embedded('?embed[]=voucher.segment');
  assert.deepEqual(withSegment.vouchers, voucher.embedded.vouchers);
  assert.deepEqual(
    withSegment.segments.map((one: Json) => one.id),
    ['seg-alpha'],
  );
  const product = (await embedded('?embed[]=purchase')).products[0];
  assert.deepEqual(
    [product.id, product.brand_id, product.name, product.sale_price, product.price],
    ['latte', 'bean', 'Café latte', 350, '3.50'],
  );
  const brand = (await embedded('?embed[]=purchase.brand')).brands[0];
  assert.deepEqual([brand.id, brand.consolidated, brand.consolidated_products], ['bean', 0, ['any-20']]);
  assert.ok(brand.products.includes('latte') && !brand.products.includes('old'));
  const all = await embedded(
    [
      'message',
      'redeemed',
      'voucher',
      'voucher.segment',
      'purchase',
      'purchase.brand',
      'purchase.segments',
      'purchase.brand.stores',
      'purchase.brand.integration',
      'purchase',
    ]
      .map((one) => `embed[]=${one}`)
      .join('&')
      .replace(/^/, '?'),
  );
  const ids: Record<string, string[]> = {};
  for (const [kind, entities] of Object.entries<Json[]>(all))
    ids[kind] = entities.map((one) => one.id as string).sort();
  assert.deepEqual(ids, {
    messages: [voucher.data.message_id],
    redemptions: [],
    vouchers: [voucher.data.voucher_id],
    segments: ['seg-alpha', 'seg-qr'],
    products: ['latte'],
    brands: ['bean'],
    stores: ['bean-leeds', 'bean-soho'],
    integrations: ['1'],
  });
  assert.deepEqual(all.integrations, [{ id: '1', name: 'Till' }]);
  assert.deepEqual(
    all.segments.find((one: Json) => one.id === 'seg-qr'),
    { id: 'seg-qr', name: 'At the till', voucherType: 'qr', expiry: 30, configuration: { colour: 'red' } },
  );
  refused(await look(gift, 'bob', '?embed[]=nonsense'), 422, 'Unknown embed: nonsense.');
  refused(await look(gift, 'bob', '?embed[]=gifts'), 422, 'Unknown embed: gifts.');
  refused(await look(gift, 'bob', '?embed[]='), 422, 'Unknown embed: .');
  refused(await look('0'.repeat(20), 'bob', '?embed[]=nonsense'), 404, 'gift not found');
});

test('what was bought stays visible when it is sold no more, and to those who could not buy it', async () => {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('vip'),
    body: purchaseOf('secret'),
  });
  const { embedded } = (await look(reply.json.data.gifts[0], 'cat', '?embed[]=purchase.brand')).json;
  assert.deepEqual([embedded.products[0].id, embedded.brands[0].id], ['secret', 'club']);
});

test('statuses: SE with a receiver or claimed, UC without, RE while redeemed, CA when declined', async () => {
  const status = async (gift: string): Promise<unknown[]> => {
    const { gift_status, status: number, status_code, redeemed_id } = (await look(gift)).json.data;
    return [gift_status, number, status_code, redeemed_id === null];
  };
  const [user = '', phone = '', nobodys = '', shared = ''] = await buy(service, 'latte', [
    { user_id: 'bob' },
    { phone_number: '07700 900002' },
    { phone_number: '07700 900999' },
    {},
  ]);
  for (const gift of [user, phone, nobodys]) assert.deepEqual(await status(gift), ['sent', 5, 'SE', true]);
  assert.deepEqual(await status(shared), ['sent', 12, 'UC', true]);
  await claim(shared, 'cat');
  assert.deepEqual(await status(shared), ['sent', 5, 'SE', true]);
  await redeem(service, shared);
  assert.deepEqual(await status(shared), ['redeemed', 1, 'RE', false]);
  await unredeem(service, shared);
  assert.deepEqual(await status(shared), ['sent', 5, 'SE', true]);

  const declined = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', undefined, { reference: 'pm_card_visa_chargeDeclined' }),
  });
  assert.equal(declined.status, 402);
  const [cancelled = ''] = (
    await service.ask('GET', declined.headers.get('location') ?? '', { token: await service.userToken('ann') })
  ).json.data.map((one: Json) => one.id);
  assert.deepEqual(await status(cancelled), ['cancelled', 3, 'CA', true]);
  assert.equal((await look(cancelled)).json.data.sent_date, '');
  refused(await redeem(service, cancelled), 405, 'gift is cancelled and cannot be redeemed.');
  refused(await claim(cancelled, 'cat'), 405, 'gift is cancelled and cannot be redeemed.');
});

test('claim: the first wins, the owner again gets it again, others are refused', async () => {
  const gift = await buyOne(service);
  const first = await claim(service.shortcodeOf(gift), 'bob');
  assert.equal(first.status, 200);
  assert.deepEqual(
    [first.json.data.id, first.json.data.receiver_id, first.json.data.sender_id, first.json.data.status_code],
    [gift, 'bob', 'ann', 'SE'],
  );
  assert.match(first.headers.get('gift-position') ?? '', /^[0-9a-f-]{36}:/);
  assert.equal((await claim(gift, 'bob')).status, 200);
  for (const user of ['cat', 'ann']) {
    const late = await claim(gift, user);
    refused(late, 405, 'gift already claimed.');
    assert.equal(late.headers.get('allow'), 'POST');
  }
  refused(await redeem(service, gift, 'ann'), 403, 'Cannot redeem this gift.');
  assert.equal((await redeem(service, gift, 'bob')).status, 201);
  assert.equal((await claim(gift, 'bob')).status, 200);
  for (const receiver of [{ user_id: 'bob' }, { phone_number: '07700 900002' }, { phone_number: '07700 900999' }]) {
    const sent = await buyOne(service, 'latte', receiver);
    for (const user of ['bob', 'cat', 'ann']) refused(await claim(sent, user), 403, 'Cannot claim this gift.');
    const malformed = { token: await service.userToken('cat'), body: { colour: 'red' } };
    refused(
      await service.ask('POST', `/api/v2/gifts/${opening(sent)}/claim`, malformed),
      403,
      'Cannot claim this gift.',
    );
  }
  refused(await claim('0'.repeat(20), 'bob'), 404, 'gift not found');
  const redeemed = await buyOne(service);
  await redeem(service, redeemed);
  refused(await claim(redeemed, 'cat'), 405, 'gift already redeemed.');
  refused(await claim(await boughtBefore(service), 'cat'), 405, 'gift is expired and cannot be redeemed.');
  assert.equal((await claim(await buyOne(service), 'ann')).json.data.receiver_id, 'ann');
});

test('of twenty who claim at once one has it', async () => {
  const gift = await buyOne(service);
  const users = Array.from({ length: 20 }, (_, index) => ['bob', 'cat', 'dan', 'vip'][index % 4] ?? '');
  const replies = await Promise.all(users.map((user) => claim(gift, user)));
  const winners = new Set(users.filter((_, index) => replies[index]?.status === 200));
  assert.equal(winners.size, 1);
  for (const reply of replies.filter(({ status }) => status !== 200)) refused(reply, 405, 'gift already claimed.');
});

test('receiver_id: for the owner, and for a buyer who named that user', async () => {
  const [named = '', phone = '', shared = ''] = await buy(service, 'latte', [
    { user_id: 'bob' },
    { phone_number: '07700 900002' },
    {},
  ]);
  const seen = async (gift: string): Promise<string[]> =>
    Promise.all(
      ['ann', 'bob', 'cat', 'till-coffee', 'sue'].map(async (user) => (await look(gift, user)).json.data.receiver_id),
    );
  assert.deepEqual(await seen(named), ['bob', 'bob', '', '', '']);
  assert.deepEqual(await seen(phone), ['', 'bob', '', '', '']);
  assert.deepEqual(await seen(shared), ['', '', '', '', '']);
  await claim(shared, 'cat');
  assert.deepEqual(await seen(shared), ['', '', 'cat', '', '']);
});

test('message: for sender and owner, and for any caller while the gift has no owner', async () => {
  const token = await service.userToken('ann');
  const body = purchaseOf(
    'latte',
    [{ user_id: 'bob' }, { phone_number: '07700 900002' }, { phone_number: '07700 900998' }, {}],
    { message: 'Just for you' },
  );
  const [named, phone, nobodys, shared] = (await service.ask('POST', '/api/v2/transactions', { token, body })).json.data
    .gifts as string[];
  const readers = async (gift = ''): Promise<string[]> => {
    const all = ['ann', 'bob', 'cat', 'till-coffee', 'sue'];
    const shown = await Promise.all(
      all.map(async (user) => (await look(gift, user, '?embed[]=message')).json.embedded.messages as Json[]),
    );
    return all.filter((_, index) => shown[index]?.[0]?.message === 'Just for you');
  };
  assert.deepEqual(await readers(named), ['ann', 'bob']);
  assert.deepEqual(await readers(phone), ['ann', 'bob']);
  assert.deepEqual(await readers(nobodys), ['ann', 'bob', 'cat', 'till-coffee'], 'not for staff');
  assert.deepEqual(await readers(shared), ['ann']);
  await claim(shared ?? '', 'cat');
  assert.deepEqual(await readers(shared), ['ann', 'cat']);
  const silent = (await look(await buyOne(service), 'ann', '?embed[]=message')).json;
  assert.deepEqual(
    [silent.embedded.messages[0].id, silent.embedded.messages[0].message, silent.embedded.messages[0].sender_id],
    [silent.data.message_id, '', 'ann'],
  );
});

test('an unpaid purchase does not reveal which numbers have users', async () => {
  const token = await service.userToken('ann');
  const body = purchaseOf('latte', [{ phone_number: '07700 900002' }, { phone_number: '07700 900998' }], {
    message: 'Whose is it?',
    reference: 'pm_card_visa_chargeDeclined',
  });
  const declined = await service.ask('POST', '/api/v2/transactions', { token, body });
  refused(declined, 402, 'Payment declined.');
  const { json } = await service.ask('GET', declined.headers.get('location') ?? '', { token });
  const [bobs, nobodys] = (json.data as Json[]).map(({ id }) => id as string);
  const messages = async (gift = '', user = ''): Promise<number> =>
    ((await look(gift, user, '?embed[]=message')).json.embedded.messages as Json[]).length;
  for (const gift of [bobs, nobodys])
    assert.deepEqual([await messages(gift, 'ann'), await messages(gift, 'cat')], [1, 0]);
});

test('gives a gift of an unowned number to its first owner, who keeps it after the number moves', async () => {
  const number = '07700 900055';
  const early = await buyOne(service, 'latte', { phone_number: number });
  for (const user of ['ann', 'cat', 'dan'])
    refused(await redeem(service, early, user), 403, 'Cannot redeem this gift.');
  const owns = async (gift: string, user: string): Promise<boolean> =>
    (await look(gift, user)).json.data.receiver_id === user;

  await service.import({ users: [changedUser('cat', { phone_number: number })] });
  await eventually(() => owns(early, 'cat'));
  const second = await buyOne(service, 'latte', { phone_number: '+44 7700 900055' });
  await service.import({
    users: [changedUser('cat', { phone_number: '07700 900056' }), changedUser('dan', { phone_number: number })],
  });
  const third = await buyOne(service, 'latte', { phone_number: number });
  await eventually(() => owns(third, 'dan'));
  for (const gift of [early, second]) {
    assert.equal((await look(gift, 'cat')).json.data.receiver_id, 'cat');
    assert.equal((await look(gift, 'dan')).json.data.receiver_id, '');
    refused(await redeem(service, gift, 'dan'), 403, 'Cannot redeem this gift.');
    assert.equal((await redeem(service, gift, 'cat')).status, 201);
  }
  refused(await redeem(service, third, 'cat'), 403, 'Cannot redeem this gift.');
  assert.equal((await redeem(service, third, 'dan')).status, 201);
});

test('adjustment codes: for tills that may redeem, of their own merchant', async () => {
  const gift = await buyOne(service);
  const answered = await codes(service.shortcodeOf(gift), 'till-coffee');
  assert.equal(answered.status, 200);
  assert.deepEqual(answered.json, { data: { product_id: 'latte', adjustment_codes: ['C1', 'C2'] } });
  assert.deepEqual((await codes(gift, 'till-redeem-only')).json.data.adjustment_codes, ['C1', 'C2']);
  for (const user of ['ann', 'bob', 'till-cinema', 'till-shops', 'till-nothing', 'sue', 'aud'])
    refused(await codes(gift, user), 403, 'Cannot redeem this gift.');
  refused(await codes('0'.repeat(20), 'till-coffee'), 404, 'gift not found');
  refused(await codes('nonsense', 'ann'), 404, 'gift not found');
  refused(await service.ask('GET', `/api/v2/gifts/${gift}/product/adjustment-codes`), 401, 'Authentication failed.');
  const anywhere = await buyOne(service, 'any-20');
  assert.deepEqual((await codes(anywhere, 'till-cinema')).json.data, { product_id: 'any-20', adjustment_codes: [] });
  assert.deepEqual((await codes(anywhere, 'till-shops')).json.data, { product_id: 'any-20', adjustment_codes: ['S1'] });
  await redeem(service, gift);
  refused(await codes(gift, 'till-coffee'), 422, 'gift already redeemed.');
  refused(await codes(gift, 'ann'), 403, 'Cannot redeem this gift.');
  await unredeem(service, gift);
  assert.equal((await codes(gift, 'till-coffee')).status, 200);
  assert.equal((await codes(await boughtBefore(service), 'till-coffee')).status, 200);
});

test('the last day is still valid; after it the gift is expired', async () => {
  const lastDay = await boughtBefore(service, { days: -1, expires: 0 });
  assert.equal(
    (await look(lastDay)).json.data.is_expired,
    new Date().toISOString().slice(0, 10) > daysFromNow(0).slice(0, 10),
  );
  assert.equal((await redeem(service, lastDay)).status, 201);
  const expired = await boughtBefore(service, { days: -2, expires: -1 });
  const { data } = (await look(expired)).json;
  assert.deepEqual([data.is_expired, data.gift_status, data.expiry_date], [true, 'sent', daysFromNow(-1).slice(0, 10)]);
  const reply = await redeem(service, expired);
  refused(reply, 405, 'gift is expired and cannot be redeemed.');
  assert.equal(reply.headers.get('allow'), 'GET, HEAD, POST');
  refused(await redeem(service, expired, 'till-coffee', 'nowhere'), 422, 'Invalid location.');
  refused(await redeem(service, expired, 'bob'), 403, 'Cannot redeem this gift.');
});

test('redeemed and then expired: already redeemed; unredeemed and then expired: expired', async () => {
  const gift = await boughtBefore(service);
  const position = await happenedBefore(service, gift, -9.5, redeemedAtBean('r1'));
  const shown = (await look(gift, 'ann', '?embed[]=redeemed', { 'gift-position': position })).json;
  assert.deepEqual(
    [shown.data.is_expired, shown.data.gift_status, shown.embedded.redemptions[0].id],
    [true, 'redeemed', 'r1'],
  );
  refused(await redeem(service, gift), 405, 'gift already redeemed.');
  refused(await claim(gift, 'bob'), 405, 'gift already redeemed.');
  assert.equal((await unredeem(service, gift, 'r1')).status, 200);
  refused(await redeem(service, gift), 405, 'gift is expired and cannot be redeemed.');
  refused(await unredeem(service, gift), 422, 'gift not redeemed.');
  assert.deepEqual((await look(gift)).json.data.redeemed_id, null);
});

test("answers a write once the read models it touches show it, where readers don't wait", async () => {
  /** The read models that were waited for, while anybody counts. */
  let waited: string[] | undefined;
  const through = (engines: Engines): Engines => {
    const reached: typeof engines.store.reached = async (collection, ...requested) => {
      if (waited === undefined) return engines.store.reached(collection, ...requested);
      // The scheduler waits by itself, whatever is written.
      if (!collection.startsWith('schedule@')) waited.push(collection);
      await sleep(100);
      return engines.store.reached(collection, ...requested);
    };
    return { ...farLog(engines), store: { ...engines.store, reached } };
  };
  const own = await startService({ app: { through } });
  const waitedBy = async (write: () => Promise<Reply>): Promise<number> => {
    const counted: string[] = [];
    waited = counted;
    const { status } = await write();
    waited = undefined;
    assert.ok(status < 300, `${status}`);
    return new Set(counted).size;
  };
  try {
    const [gift, token] = [await buyOne(own), await own.userToken('bob')];
    assert.equal(await waitedBy(() => own.ask('POST', `/api/v2/gifts/${own.shortcodeOf(gift)}/claim`, { token })), 1);
    assert.equal(await waitedBy(() => own.ask('POST', `/api/v2/gifts/${gift}/voucher/claimed`, { token })), 1);
    assert.equal(await waitedBy(() => redeem(own, gift)), 0, 'redemptions wait for none');
    assert.equal(await waitedBy(() => unredeem(own, gift)), 0);
    assert.equal(
      await waitedBy(() => own.ask('POST', '/api/v2/transactions', { token, body: purchaseOf('latte') })),
      2,
      'the purchase and its gifts',
    );
  } finally {
    await own.close();
  }
});

test('sees own writes by Gift-Position; ignores other logs, refuses malformed and future ones', async () => {
  const gift = await buyOne(service);
  const own = (await redeem(service, gift)).headers.get('gift-position') ?? '';
  assert.equal((await look(gift, 'ann', '', { 'gift-position': own })).json.data.gift_status, 'redeemed');
  const [, position = ''] = own.split(':');
  assert.equal(
    (
      await look(gift, 'ann', '', {
        'gift-position': `00000000-0000-4000-8000-000000000000:${'9'.repeat(position.length)}`,
      })
    ).status,
    200,
  );
  for (const malformed of [
    '',
    'x',
    position,
    `${service.events.logId}:`,
    `${service.events.logId}:A B`,
    `${service.events.logId}:${'1'.repeat(65)}`,
    own.slice(0, -1),
    `${own}0`,
    `${own},${own}`,
    `${service.events.logId.toUpperCase()}:${position}`,
  ]) {
    refused(await look(gift, 'ann', '', { 'gift-position': malformed }), 400, 'Invalid position.');
  }
  refused(
    await service.ask('GET', '/api/v2/products', {
      token: await service.clientToken(),
      headers: { 'gift-position': 'x' },
    }),
    400,
    'Invalid position.',
  );
  await Promise.all(
    [`/api/v2/gifts/${gift}`, '/api/v2/products', `/api/v2/transactions/nonsense`].map(async (path) => {
      const started = performance.now();
      // Far beyond the end, and still a number that a position of any engine can be.
      const future = await service.ask('GET', path, {
        token: await service.userToken('ann'),
        headers: { 'gift-position': `${service.events.logId}:0${'8'.repeat(position.length - 1)}` },
      });
      const took = performance.now() - started;
      refused(future, 503, 'Service unavailable.');
      assert.match(future.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      assert.ok(took > 900, `${took} ms`);
    }),
  );
});

test('a catalogue change is seen by a read that asks for its position', async () => {
  await service.import({ categories: [{ id: 'fresh', name: 'Fresh', products: ['latte'] }] });
  const end = await service.events.end();
  const reply = await service.ask('GET', '/api/v2/product-tags/categories/fresh', {
    token: await service.clientToken(),
    headers: { 'gift-position': `${service.events.logId}:${end}` },
  });
  assert.equal(reply.status, 200, reply.text);
});

test.run();

import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { positionText } from '../../../src/ports/positionText.js';
import { codePool } from '../../../src/commands/codePool.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { type VoucherCodeDocument, voucherCodesProjection } from '../../../src/projections/voucherCodes.js';
import { answerOf, checked, unharmed } from '../../support/service/answers.js';
import { isGeneratedCode } from '../../support/fixtures/generatedCode.js';
import { buy, buyOne, purchaseOf, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { heldCollection } from '../../support/faults/heldCollection.js';
import { boughtBefore, daysFromNow } from '../../support/fixtures/pastPurchase.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { DEADLINE_MS, eventually } from '../../support/assertions/until.js';

const test = suite('vouchers');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(async () => {
  await unharmed(service);
  await service.close();
});

type Format = 'voucher' | 'voucher/claimed';

async function generate(format: Format, gift: string, user = 'ann', body?: object, query = ''): Promise<Reply> {
  return service.ask('POST', `/api/v2/gifts/${gift}/${format}${query}`, {
    token: await service.userToken(user),
    ...(body === undefined ? {} : { body }),
  });
}

async function get(path: string, user = 'ann'): Promise<Reply> {
  return service.ask('GET', path, { token: await service.userToken(user) });
}

const claimed = (gift: string, user = 'ann'): Promise<Reply> => get(`/api/v2/gifts/${gift}/voucher/claimed`, user);
const codeOf = (v1: Reply): string => v1.json.embedded.vouchers[0].code as string;
/** Imports, and retires what the file names no more. */
const prune = (file: object): ReturnType<Service['import']> => service.import(file, { reason: 'test', yes: false });
const EXPIRED = 'gift is expired and cannot be redeemed.';

test('options: the product’s segments, for every caller who may look the gift up', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  for (const user of ['ann', 'bob', 'cat', 'till-cinema']) {
    const reply = await get(`/api/v2/gifts/${service.shortcodeOf(gift)}/voucher/options`, user);
    assert.equal(reply.status, 200);
    const { dateCreated, dateModified, ...rest } = reply.json;
    assert.deepEqual(rest, {
      segments: [
        { id: 'seg-qr', name: 'At the till', expiry: 30 },
        { id: 'seg-alpha', name: 'In the app', expiry: 9000 },
      ],
      productId: 'latte',
    });
    for (const time of [dateCreated, dateModified]) assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
  assert.deepEqual((await get(`/api/v2/gifts/${await buyOne(service, 'mocha')}/voucher/options`)).json.segments, []);
  refused(await get(`/api/v2/gifts/${'0'.repeat(20)}/voucher/options`), 404, 'gift not found');
  refused(
    await service.ask('GET', `/api/v2/gifts/${gift}/voucher/options`, { token: await service.clientToken() }),
    403,
    'Forbidden.',
  );
});

test('V1: shows the gift with its voucher and check digit; a repeat answers the same', async () => {
  const gift = await buyOne(service);
  const first = await generate('voucher', service.shortcodeOf(gift));
  checked(answerOf(first));
  assert.equal(first.status, 200);
  assert.deepEqual(Object.keys(first.json), ['data', 'embedded']);
  const { data, embedded } = first.json;
  assert.deepEqual(Object.keys(embedded), ['vouchers']);
  const [voucher] = embedded.vouchers;
  assert.deepEqual(Object.keys(voucher).sort(), [
    'code',
    'created_at',
    'expiry_date',
    'gift_id',
    'id',
    'segment_id',
    'updated_at',
  ]);
  assert.deepEqual([data.id, data.voucher_id, voucher.gift_id, voucher.segment_id], [gift, voucher.id, gift, 'seg-qr']);
  for (const name of ['created_at', 'updated_at', 'expiry_date'])
    assert.match(voucher[name], /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  assert.ok(isGeneratedCode(voucher.code), voucher.code);
  assert.match(first.headers.get('gift-position') ?? '', /:/);
  assert.equal((await get(`/api/v2/gifts/${gift}`)).json.data.voucher_id, voucher.id);
  const again = await generate('voucher', gift, 'ann', { segmentId: 'seg-alpha' });
  assert.deepEqual(again.json.embedded.vouchers, [voucher]);
  assert.equal(
    (await service.events.read(giftStream(gift))).filter(({ type }) => type === 'VoucherAssigned').length,
    1,
  );
});

test('V1: the segment is embedded when asked for, in query or body', async () => {
  const gift = await buyOne(service);
  const segment = { id: 'seg-alpha', name: 'In the app', voucherType: 'alpha/qr', expiry: 9000, configuration: {} };
  const inBody = await generate('voucher', gift, 'ann', { segmentId: 'seg-alpha', embed: ['voucher.segment'] });
  assert.deepEqual(inBody.json.embedded.segments, [segment]);
  assert.deepEqual(
    (await generate('voucher', gift, 'ann', undefined, '?embed[]=voucher.segment')).json.embedded.segments,
    [segment],
  );
  assert.deepEqual(Object.keys((await generate('voucher', gift, 'ann', { embed: ['voucher'] })).json.embedded), [
    'vouchers',
  ]);
  refused(await generate('voucher', gift, 'ann', { embed: ['message'] }), 422, 'Unknown embed: message.');
  refused(await generate('voucher', gift, 'ann', { embed: 'voucher' }), 422, 'embed must be a list');
});

test('V2 by the kind of segment', async () => {
  const shape = async (product: string, segmentId?: string): Promise<Json> => {
    const gift = await buyOne(service, product);
    refused(await claimed(gift), 404, 'Voucher not found');
    const made = await generate('voucher/claimed', gift, 'ann', segmentId === undefined ? undefined : { segmentId });
    assert.equal(made.status, 200, made.text);
    checked(answerOf(made));
    assert.deepEqual((await claimed(gift)).json, made.json);
    assert.deepEqual((await claimed(service.shortcodeOf(gift), 'ann')).json, made.json);
    assert.deepEqual(Object.keys(made.json).sort(), [
      'data',
      'dateCreated',
      'dateModified',
      'expiresAt',
      'giftId',
      'segment',
      'voucherType',
    ]);
    assert.equal(made.json.giftId, gift);
    for (const name of ['dateCreated', 'dateModified', 'expiresAt'])
      assert.match(made.json[name], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    return made.json;
  };
  const qr = await shape('latte');
  assert.deepEqual(
    [qr.voucherType, qr.segment],
    ['qr', { id: 'seg-qr', name: 'At the till', voucherType: 'qr', expiry: 30, configuration: { colour: 'red' } }],
  );
  assert.deepEqual(
    qr.data.map(({ type, label }: Json) => [type, label]),
    [['qr', '']],
  );
  assert.ok(isGeneratedCode(qr.data[0].value));
  const alpha = await shape('latte', 'seg-alpha');
  assert.deepEqual(
    alpha.data.map(({ type, label }: Json) => [type, label]),
    [['alpha/qr', '']],
  );
  const pin = await shape('ticket');
  assert.deepEqual(
    pin.data.map(({ type, label }: Json) => [type, label]),
    [
      ['alpha/qr', 'Code'],
      ['alpha/pin', 'PIN'],
    ],
  );
  assert.ok(isGeneratedCode(pin.data[0].value));
  assert.match(pin.data[1].value, /^\d{4}$/);
});

test('a gift has one code, whichever endpoint made it', async () => {
  const first = await buyOne(service);
  const v1 = await generate('voucher', first);
  assert.equal((await generate('voucher/claimed', first)).json.data[0].value, codeOf(v1));
  assert.equal((await claimed(first)).json.data[0].value, codeOf(v1));
  const second = await buyOne(service);
  const v2 = await generate('voucher/claimed', second, 'ann', { segmentId: 'seg-alpha' });
  const shown = await generate('voucher', second, 'ann', { segmentId: 'seg-qr' });
  assert.deepEqual([codeOf(shown), shown.json.embedded.vouchers[0].segment_id], [v2.json.data[0].value, 'seg-alpha']);
  const [embedded] = (await get(`/api/v2/gifts/${second}?embed[]=voucher`)).json.embedded.vouchers;
  assert.deepEqual([embedded.code, embedded.id], [v2.json.data[0].value, shown.json.data.voucher_id]);
});

test('of twenty at once for one gift one code is made', async () => {
  const gift = await buyOne(service);
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      generate(index % 2 === 0 ? 'voucher' : 'voucher/claimed', gift, index % 3 === 0 ? 'till-coffee' : 'ann'),
    ),
  );
  assert.deepEqual(
    replies.map(({ status }) => status),
    Array(20).fill(200),
  );
  assert.equal(
    new Set(replies.map((reply, index) => (index % 2 === 0 ? codeOf(reply) : reply.json.data[0].value))).size,
    1,
  );
});

test('V1 is for integrations 1 to 6, V2 for every product with a segment', async () => {
  assert.equal((await generate('voucher', await buyOne(service, 'any-20'))).status, 200);
  const online = await buyOne(service, 'ticket');
  refused(await generate('voucher', online), 422, 'Voucher not available.');
  assert.equal((await generate('voucher/claimed', online)).status, 200);
  const without = await buyOne(service, 'mocha');
  refused(await generate('voucher', without), 422, 'Voucher not available.');
  refused(await generate('voucher/claimed', without), 422, 'Voucher not available.');
});

test('what is refused, in order', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  for (const format of ['voucher', 'voucher/claimed'] as const) {
    refused(await generate(format, '0'.repeat(20)), 404, 'gift not found');
    for (const user of ['ann', 'cat', 'till-cinema', 'till-nothing', 'sue'])
      refused(await generate(format, gift, user, { nonsense: 1 }), 403, 'Cannot redeem this gift.');
    refused(await generate(format, gift, 'bob', { nonsense: 1 }), 422, 'nonsense is not a known field');
    refused(await generate(format, gift, 'bob', { segmentId: 7 }), 422, 'segmentId must be a string');
    refused(await generate(format, gift, 'bob', []), 422, 'the body must be an object');
    refused(
      await service.ask('POST', `/api/v2/gifts/${gift}/${format}`, {
        token: await service.userToken('bob'),
        body: 'null',
      }),
      422,
      'the body must be an object',
    );
    for (const segmentId of ['seg-pin', 'nothing', '', '__proto__', 'constructor'])
      refused(await generate(format, gift, 'bob', { segmentId }), 422, 'Invalid segment.');
  }
  for (const user of ['ann', 'cat', 'till-cinema', 'till-nothing'])
    refused(await claimed(gift, user), 403, 'Cannot redeem this gift.');
  refused(await claimed('0'.repeat(20)), 404, 'gift not found');
  refused(await claimed(gift, 'bob'), 404, 'Voucher not found');
  assert.equal((await generate('voucher', gift, 'till-coffee')).status, 200);
});

test('a body is optional and then needs no content type; an empty one with a type is none either', async () => {
  const token = await service.userToken('ann');
  for (const headers of [{}, { 'content-type': 'text/plain' }, { 'content-type': 'application/json' }]) {
    const reply = await service.ask('POST', `/api/v2/gifts/${await buyOne(service)}/voucher`, { token, headers });
    assert.equal(reply.status, 200, reply.text);
  }
  refused(
    await service.ask('POST', `/api/v2/gifts/${await buyOne(service)}/voucher`, {
      token,
      headers: { 'content-type': 'text/plain' },
      body: '{}',
    }),
    415,
    'Unsupported content type.',
  );
});

test('only callers who may redeem see the code in embeds; all see voucher_id', async () => {
  const bought = (
    await service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      body: purchaseOf('latte', [{ user_id: 'bob' }, {}]),
    })
  ).json.data;
  const [named = '', shared = ''] = bought.gifts as string[];
  for (const gift of [named, shared]) assert.equal((await generate('voucher', gift, 'till-coffee')).status, 200);
  const seen = async (gift: string, user: string): Promise<[number, number, boolean]> => {
    const { data, embedded } = (await get(`/api/v2/gifts/${service.shortcodeOf(gift)}?embed[]=voucher.segment`, user))
      .json;
    return [embedded.vouchers.length, embedded.segments.length, data.voucher_id !== null];
  };
  assert.deepEqual(await seen(named, 'bob'), [1, 1, true]);
  assert.deepEqual(await seen(named, 'till-redeem-only'), [1, 1, true]);
  for (const user of ['ann', 'cat', 'till-cinema', 'till-nothing', 'sue'])
    assert.deepEqual(await seen(named, user), [0, 0, true], user);
  assert.deepEqual(await seen(shared, 'ann'), [1, 1, true]);
  for (const path of [
    `/api/v2/transactions/${bought.id}?embed[]=gifts.voucher.segment`,
    `/api/v2/transactions/${bought.id}/gifts?embed[]=voucher.segment`,
  ]) {
    const { embedded } = (await get(path)).json;
    assert.deepEqual(
      embedded.vouchers.map((one: Json) => one.gift_id),
      [shared],
      path,
    );
    assert.equal(embedded.segments.length, 1);
  }
  await service.ask('POST', `/api/v2/gifts/${service.shortcodeOf(shared)}/claim`, {
    token: await service.userToken('cat'),
  });
  assert.deepEqual(await seen(shared, 'cat'), [1, 1, true]);
  assert.deepEqual(await seen(shared, 'ann'), [0, 0, true]);
});

test('it ends with the gift or so many days after it was made, whichever is earlier', async () => {
  const until = async (product: string, segmentId?: string): Promise<[Json, Json, Json]> => {
    const gift = await buyOne(service, product);
    const v2 = (await generate('voucher/claimed', gift, 'ann', segmentId === undefined ? {} : { segmentId })).json;
    return [(await get(`/api/v2/gifts/${gift}?embed[]=voucher`)).json, v2, gift];
  };
  const [shortly, short] = await until('latte');
  assert.equal(Date.parse(short.expiresAt) - Date.parse(short.dateCreated), 30 * 86_400_000);
  assert.equal(
    shortly.embedded.vouchers[0].expiry_date,
    `${short.expiresAt.slice(0, 10)} ${short.expiresAt.slice(11, 19)}`,
  );
  const [long, longest] = await until('latte', 'seg-alpha');
  assert.equal(longest.expiresAt, `${long.data.expiry_date}T23:59:59.999Z`);
});

test('a redeemed or expired gift gets no new voucher, and keeps the one it has', async () => {
  for (const format of ['voucher', 'voucher/claimed'] as const) {
    const redeemed = await buyOne(service);
    await redeem(service, redeemed);
    const reply = await generate(format, redeemed);
    refused(reply, 405, 'gift already redeemed.');
    assert.equal(reply.headers.get('allow'), format === 'voucher' ? 'POST' : 'GET, HEAD, POST');
    refused(await generate(format, redeemed, 'ann', { segmentId: 'nothing' }), 422, 'Invalid segment.');
    refused(await generate(format, await boughtBefore(service, { product: 'latte' })), 405, EXPIRED);
  }
  const kept = await buyOne(service);
  const code = codeOf(await generate('voucher', kept));
  assert.equal((await redeem(service, kept)).status, 201);
  assert.equal(codeOf(await generate('voucher', kept)), code);
  assert.equal((await claimed(kept)).json.data[0].value, code);
  await unredeem(service, kept);
  assert.equal((await redeem(service, kept, 'ann')).status, 201);
});

test('the one there is stays when the product loses its segments', async () => {
  const product = {
    id: 'fickle',
    brand_id: 'bean',
    name: 'Fickle',
    sale_price: 100,
    segments: ['seg-qr', 'seg-alpha'],
  };
  await service.import({ products: [product] });
  await eventually(async () => (await get('/api/v2/products/fickle')).status === 200);
  const gift = await buyOne(service, 'fickle');
  const code = codeOf(await generate('voucher', gift));
  await service.import({ products: [{ ...product, segments: [] }] });
  await eventually(async () => (await get(`/api/v2/gifts/${gift}/voucher/options`)).json.segments.length === 0);
  assert.equal(codeOf(await generate('voucher', gift)), code);
  assert.equal((await generate('voucher/claimed', gift)).json.data[0].value, code);
  assert.equal((await claimed(gift)).json.data[0].value, code);
  refused(await generate('voucher', await buyOne(service, 'fickle')), 422, 'Voucher not available.');
});

test('keeps the voucher when product or brand change, whatever segment is named', async () => {
  const brand = { id: 'moody', merchant_id: 'coffee', name: 'Moody', integration_id: '1' };
  const product = {
    id: 'moody-tea',
    brand_id: 'moody',
    name: 'Moody tea',
    sale_price: 100,
    segments: ['seg-qr', 'seg-alpha'],
  };
  await service.import({ brands: [brand], products: [product] });
  await eventually(async () => (await get('/api/v2/products/moody-tea')).status === 200);
  const [kept = '', fresh = ''] = await buy(service, 'moody-tea', [{}, {}]);
  const code = codeOf(await generate('voucher', kept, 'ann', { segmentId: 'seg-qr' }));
  await service.import({
    brands: [{ ...brand, integration_id: '7' }],
    products: [{ ...product, segments: ['seg-pin'] }],
  });
  await eventually(async () => (await get(`/api/v2/gifts/${fresh}/voucher/options`)).json.segments[0].id === 'seg-pin');
  for (const body of [{}, { segmentId: 'seg-qr' }, { segmentId: 'seg-alpha' }, { segmentId: 'seg-pin' }]) {
    assert.equal(codeOf(await generate('voucher', kept, 'ann', body)), code);
    assert.equal((await generate('voucher/claimed', kept, 'ann', body)).json.data[0].value, code);
  }
  for (const format of ['voucher', 'voucher/claimed'] as const)
    refused(await generate(format, kept, 'ann', { segmentId: 'nothing' }), 422, 'Invalid segment.');
  refused(await generate('voucher', fresh), 422, 'Voucher not available.');
  refused(await generate('voucher/claimed', fresh, 'ann', { segmentId: 'seg-qr' }), 422, 'Invalid segment.');
});

test('V1 exists by the integration of the brand that the product is of now', async () => {
  const brand = { id: 'tills', merchant_id: 'coffee', name: 'Tills', integration_id: '1' };
  const product = { id: 'wanderer', brand_id: 'tills', name: 'Wanderer', sale_price: 100, segments: ['seg-qr'] };
  await service.import({
    brands: [brand, { ...brand, id: 'no-tills', name: 'No tills', integration_id: '7' }],
    products: [product],
  });
  const isOf = async (brandId: string): Promise<unknown> =>
    eventually(async () => (await get('/api/v2/products/wanderer')).json.data?.brand_id === brandId);
  const move = async (brandId: string): Promise<void> => {
    await service.import({ products: [{ ...product, brand_id: brandId }] });
    await isOf(brandId);
  };
  await isOf('tills');
  const withTills = await buyOne(service, 'wanderer');
  await move('no-tills');
  const integrations = (await get(`/api/v2/gifts/${withTills}?embed[]=purchase.brand.integration`)).json.embedded
    .integrations as Json[];
  assert.deepEqual(
    integrations.map(({ id }) => id),
    ['7'],
  );
  refused(await generate('voucher', withTills), 422, 'Voucher not available.');
  const without = await buyOne(service, 'wanderer');
  await move('tills');
  for (const gift of [withTills, without]) assert.ok(codeOf(await generate('voucher', gift)));
});

test('an idempotency key answers the first outcome; a code is drawn once', async () => {
  const gift = await buyOne(service);
  const token = await service.userToken('ann');
  const ask = (): Promise<Reply> =>
    service.ask('POST', `/api/v2/gifts/${gift}/voucher`, { token, key: 'once', body: { segmentId: 'seg-alpha' } });
  const first = await ask();
  const again = await ask();
  assert.deepEqual([again.status, again.text, again.headers.get('idempotent-replayed')], [200, first.text, 'true']);
});

test('pool codes: each once, then none; those withdrawn are never given', async () => {
  const gifts = await buy(service, 'pooled', Array(5).fill({}));
  const made = await Promise.all(
    gifts.map((gift, index) => generate(index % 2 === 0 ? 'voucher' : 'voucher/claimed', gift)),
  );
  const good = made.filter(({ status }) => status === 200);
  assert.equal(good.length, 3);
  for (const reply of made.filter(({ status }) => status !== 200)) refused(reply, 422, 'Voucher not available.');
  const pairs = await Promise.all(
    gifts
      .filter((_, index) => made[index]?.status === 200)
      .map(async (gift) => ((await claimed(gift)).json.data as Json[]).map(({ value }) => value).join(' ')),
  );
  assert.deepEqual(pairs.sort(), ['POOL-0001 1111', 'POOL-0002 2222', 'POOL-0003 3333']);

  // An empty pool never falls back to made-up codes, and a new code goes to the next gift that asks.
  const [empty = ''] = gifts.filter((_, index) => made[index]?.status !== 200);
  refused(await generate('voucher', empty), 422, 'Voucher not available.');
  await service.import({
    voucher_codes: [
      ...CATALOGUE.voucher_codes,
      { segment_id: 'seg-pool', code: 'POOL-0004', pin: '4444' },
      { segment_id: 'seg-pool', code: 'POOL-0005', pin: '5555' },
    ],
  });
  const pruned = {
    voucher_codes: [...CATALOGUE.voucher_codes, { segment_id: 'seg-pool', code: 'POOL-0005', pin: '5555' }],
  };
  assert.equal((await prune(pruned)).events, 1);
  const refilled = await eventually(async () => {
    const reply = await generate('voucher', empty);
    return reply.status === 200 ? reply : undefined;
  });
  assert.equal(codeOf(refilled), 'POOL-0005');
  refused(await generate('voucher', await buyOne(service, 'pooled')), 422, 'Voucher not available.');
});

test('twenty at once for one gift take one code from the pool', async () => {
  const codes = Array.from({ length: 30 }, (_, index) => ({
    segment_id: 'seg-race',
    code: `RACE-${index}`,
    pin: null,
  }));
  await service.import({
    segments: [{ id: 'seg-race', name: 'Race', voucherType: 'alpha/qr', expiry: 5 }],
    products: [{ id: 'raced', brand_id: 'bean', name: 'Raced', sale_price: 100, segments: ['seg-race'] }],
    voucher_codes: codes.map(({ segment_id, code }) => ({ segment_id, code })),
  });
  await eventually(async () => (await get('/api/v2/products/raced')).status === 200);
  const gift = await buyOne(service, 'raced');
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, index) => generate(index % 2 === 0 ? 'voucher' : 'voucher/claimed', gift)),
  );
  assert.deepEqual(
    replies.map(({ status }) => status),
    Array(20).fill(200),
  );
  assert.equal(
    new Set(replies.map((reply, index) => (index % 2 === 0 ? codeOf(reply) : reply.json.data[0].value))).size,
    1,
  );
  let taken = 0;
  for await (const batch of service.events.readAll(undefined, {
    types: ['VoucherCodeAssigned'],
    streams: ['voucherCode-seg-race-'],
  }))
    taken += batch.events.length;
  assert.equal(taken, 1);
  const rest = await buy(service, 'raced', Array(29).fill({}));
  const others = await Promise.all(rest.map((one) => generate('voucher', one)));
  assert.equal(new Set([...others, ...replies.slice(0, 1)].map(codeOf)).size, 30);
});

test('codes that the caller knows to be there are waited for', async () => {
  const { through, hold, free } = heldCollection('voucher_codes');
  const slow = await startService({ app: { through }, catalogue: { ...CATALOGUE, voucher_codes: [] } });
  try {
    const gifts = await buy(slow, 'pooled', [{}, {}]);
    hold();
    await slow.import({
      voucher_codes: gifts.map((_, n) => ({ segment_id: 'seg-pool', code: `LATE-${n}`, pin: '1' })),
    });
    const token = await slow.userToken('ann');
    const headers = { 'gift-position': positionText(slow.events.logId, (await slow.events.end()) ?? '') };
    const draw = (gift: string, format: Format): Promise<Reply> =>
      slow.ask('POST', `/api/v2/gifts/${gift}/${format}`, { token, headers, body: {} });
    for (const format of ['voucher', 'voucher/claimed'] as const)
      refused(await draw(gifts[0] ?? '', format), 503, 'Service unavailable.');
    await free();
    assert.deepEqual(
      [(await draw(gifts[0] ?? '', 'voucher')).status, (await draw(gifts[1] ?? '', 'voucher/claimed')).status],
      [200, 200],
    );
  } finally {
    await free();
    await slow.close();
  }
});

test('neither offers nor uses a retired segment, though a product names it; vouchers stay', async () => {
  const segments = ['kept', 'going'].map((name) => ({ id: `seg-${name}`, name, voucherType: 'qr', expiry: 5 }));
  await service.import({
    segments,
    products: [
      { id: 'narrowed', brand_id: 'bean', name: 'Narrowed', sale_price: 100, segments: ['seg-going', 'seg-kept'] },
    ],
  });
  await eventually(async () => (await get('/api/v2/products/narrowed')).status === 200);
  const [had = '', has = ''] = await buy(service, 'narrowed', [{}, {}]);
  const options = async (): Promise<string[]> =>
    ((await get(`/api/v2/gifts/${has}/voucher/options`)).json.segments as Json[]).map(({ id }) => id as string);
  assert.deepEqual(await options(), ['seg-going', 'seg-kept']);
  const before = await generate('voucher/claimed', had);
  assert.equal(before.json.segment.id, 'seg-going');

  const live = [...CATALOGUE.segments, ...segments].filter(({ id }) => id !== 'seg-going');
  await prune({ segments: live });
  await eventually(async () => (await options()).length === 1);
  assert.deepEqual(await options(), ['seg-kept']);
  for (const format of ['voucher', 'voucher/claimed'] as const)
    refused(await generate(format, has, 'ann', { segmentId: 'seg-going' }), 422, 'Invalid segment.');
  assert.equal((await generate('voucher/claimed', has)).json.segment.id, 'seg-kept', 'the first of those that live');
  assert.deepEqual(
    [(await claimed(had)).json, (await generate('voucher/claimed', had)).json],
    [before.json, before.json],
  );
});

test('takes no second code in a draw that reads the pool while another one takes a code', async () => {
  const gift = 'f'.repeat(20);
  const store = await service.openStore();
  try {
    const pool = openReadModel<VoucherCodeDocument>(store, voucherCodesProjection);
    await service.import({
      segments: [{ id: 'seg-late', name: 'Late', voucherType: 'qr', expiry: 5 }],
      voucher_codes: ['LATE-1', 'LATE-2', 'LATE-3'].map((code) => ({ segment_id: 'seg-late', code })),
    });
    const context = { commandId: 'late', correlationId: 'late', by: { user: 'ann' }, now: new Date().toISOString() };
    await eventually(async () => (await pool.find({ where: { segment_id: 'seg-late' } })).length === 3);
    // What the first look at the pool saw, before the other draw; every later look sees it done.
    let looks = 0;
    const before = (await pool.find({ where: { segment_id: 'seg-late', status: 'free' } })).sort((one, other) =>
      one.body.probe < other.body.probe ? -1 : 1,
    );
    const other = await codePool(service.events, pool).draw('seg-late', gift, context);
    await pool.reached((await service.events.end()) ?? '', DEADLINE_MS);
    const late: typeof pool = {
      ...pool,
      find: async (query) => {
        looks += 1;
        if (looks > 1) return pool.find(query);
        const { where = {} } = query as { where?: Record<string, unknown> };
        const { gte } = (where['probe'] ?? {}) as { gte?: string };
        return where['status'] === 'free' ? before.filter(({ body }) => gte === undefined || body.probe >= gte) : [];
      },
    };
    assert.deepEqual(await codePool(service.events, late).draw('seg-late', gift, context), other);
    await pool.reached((await service.events.end()) ?? '', DEADLINE_MS);
    assert.equal((await pool.find({ where: { segment_id: 'seg-late', status: 'free' } })).length, 2);
  } finally {
    await store.close();
  }
});

test('takes a code from the pool only for a gift that gets it; a broken draw keeps its code', async () => {
  await service.import({
    segments: [{ id: 'seg-cut', name: 'Cut', voucherType: 'qr', expiry: 5 }],
    products: [{ id: 'cut', brand_id: 'bean', name: 'Cut', sale_price: 100, segments: ['seg-cut'] }],
    voucher_codes: ['CUT-1', 'CUT-2', 'CUT-3'].map((code) => ({ segment_id: 'seg-cut', code })),
  });
  await eventually(async () => (await get('/api/v2/products/cut')).status === 200);
  const [gift = '', used = ''] = await buy(service, 'cut', [{}, {}]);
  const store = await service.openStore();
  try {
    const pool = openReadModel<VoucherCodeDocument>(store, voucherCodesProjection);
    await eventually(async () => (await pool.find({ where: { segment_id: 'seg-cut' } })).length === 3);
    const drawn = await codePool(service.events, pool).draw('seg-cut', gift, {
      commandId: 'cut',
      correlationId: 'cut',
      by: { user: 'ann' },
      now: new Date().toISOString(),
    });
    // Every look at the pool sees it taken.
    await pool.reached((await service.events.end()) ?? '', DEADLINE_MS);
    await eventually(async () => {
      const made = await generate('voucher', gift);
      return made.status === 200 && codeOf(made) === drawn?.code;
    });
    assert.equal((await redeem(service, used)).status, 201);
    for (const format of ['voucher', 'voucher/claimed'] as const)
      refused(await generate(format, used), 405, 'gift already redeemed.');
    await pool.reached((await service.events.end()) ?? '', DEADLINE_MS);
    assert.equal((await pool.find({ where: { segment_id: 'seg-cut', status: 'free' } })).length, 2);
  } finally {
    await store.close();
  }
});

test("gives a code of the segment that the gift's voucher names, whatever was drawn for before", async () => {
  const segments = ['seg-one', 'seg-two'];
  await service.import({
    segments: segments.map((id) => ({ id, name: id, voucherType: 'qr', expiry: 5 })),
    products: [{ id: 'either', brand_id: 'bean', name: 'Either', sale_price: 100, segments }],
    voucher_codes: segments.map((segment_id) => ({ segment_id, code: `CODE-OF-${segment_id}` })),
  });
  await eventually(async () => (await get('/api/v2/products/either')).status === 200);
  const gift = await buyOne(service, 'either');
  const store = await service.openStore();
  try {
    const pool = openReadModel<VoucherCodeDocument>(store, voucherCodesProjection);
    await eventually(async () => (await pool.find({ where: { segment_id: 'seg-one' } })).length === 1);
    // Its process ended, or another request was quicker, between the code and the voucher.
    await codePool(service.events, pool).draw('seg-one', gift, {
      commandId: 'ended',
      correlationId: 'ended',
      by: { user: 'ann' },
      now: new Date().toISOString(),
    });
    await pool.reached((await service.events.end()) ?? '', DEADLINE_MS);
  } finally {
    await store.close();
  }
  const reply = await generate('voucher', gift, 'ann', { segmentId: 'seg-two' });
  assert.deepEqual([codeOf(reply), reply.json.embedded.vouchers[0].segment_id], ['CODE-OF-seg-two', 'seg-two']);
});

test('a voucher with a long gift ends with its segment, with a short one with the gift', async () => {
  const gift = await boughtBefore(service, { product: 'latte', days: -1, expires: 3 });
  const { expiresAt } = (await generate('voucher/claimed', gift)).json;
  assert.equal(expiresAt, `${daysFromNow(3).slice(0, 10)}T23:59:59.999Z`);
});

test.run();

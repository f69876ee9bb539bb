import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { blockGift, unblockGift } from '../../../src/commands/blockGift.js';
import type { CommandContext } from '../../../src/commands/transact.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import { openReadModels } from '../../../src/projections/index.js';
import { buy, buyOne, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { heldCollection } from '../../support/faults/heldCollection.js';
import { type Json, type Service, startService } from '../../support/service/service.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('redemptions');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

test('a till redeems a gift and gets the redemption', async () => {
  const gift = await buyOne(service);
  const reply = await redeem(service, gift);
  assert.equal(reply.status, 201);
  const { data } = reply.json;
  assert.deepEqual(Object.keys(data).sort(), ['creation_at', 'gift_id', 'id', 'location_id', 'redeemed', 'updated_at']);
  assert.deepEqual([data['gift_id'], data['redeemed'], data['location_id']], [gift, true, 'bean-soho']);
  assert.equal(data['creation_at'], data['updated_at']);
  assert.ok(Math.abs(Date.now() - Date.parse(data['creation_at'] as string)) < 60_000);
  const shown = await service.ask('GET', `/api/v2/gifts/${gift}?embed[]=redeemed`, {
    token: await service.userToken('ann'),
  });
  assert.deepEqual(
    [
      shown.json['data']['redeemed_id'],
      shown.json['data']['status'],
      shown.json['data']['status_code'],
      shown.json['data']['gift_status'],
    ],
    [data['id'], 1, 'RE', 'redeemed'],
  );
  assert.deepEqual(shown.json['embedded']['redemptions'], [data]);
});

test('redeeming and reversing say where the log stands with them', async () => {
  const gift = await buyOne(service);
  for (const act of [redeem, unredeem]) {
    const reply = await act(service, gift);
    const last = (await service.events.read(giftStream(gift))).at(-1);
    assert.equal(reply.headers.get('gift-position'), `${service.events.logId}:${last?.position}`);
  }
});

test('lets only readers of the gift wait for a slow read model, not the till', async () => {
  const { through, hold, free } = heldCollection('gifts');
  const slow = await startService({ app: { through } });
  try {
    const [gift = '', other = ''] = await buy(slow, 'latte', [{}, {}]);
    const token = await slow.userToken('ann');
    const look = async (id: string, headers: Readonly<Record<string, string>> = {}): Promise<Json> =>
      (await slow.ask('GET', `/api/v2/gifts/${id}`, { token, headers })).json['data'];
    const shown = async (id: string): Promise<unknown> => (await look(id))['gift_status'];
    await slow.userToken('till-coffee');
    // Nothing is to be on its way any more when it is held.
    await eventually(
      async () =>
        (await slow.events.read(giftStream(other))).length > 0 && (await slow.events.read(giftStream(gift))).length > 0,
    );
    const transaction = (
      await look(gift, { 'gift-position': `${slow.events.logId}:${(await slow.events.end()) ?? ''}` })
    )['transaction_id'] as string;
    hold();
    assert.equal((await redeem(slow, gift)).status, 201);
    assert.equal(await shown(other), 'sent');
    const listing = slow.ask('GET', `/api/v2/transactions/${transaction}/gifts`, { token });
    const reading = shown(gift);
    await sleep(100);
    await free();
    assert.equal(await reading, 'redeemed');
    assert.deepEqual(
      (await listing).json['data'].map(({ gift_status }: Json) => gift_status),
      ['redeemed', 'sent'],
    );
    hold();
    assert.equal((await unredeem(slow, gift)).status, 200);
    assert.equal(await shown(gift), 'sent', 'it is read from its stream');
  } finally {
    await free();
    await slow.close();
  }
});

test('a shortcode names the gift too, in any case, and with a trailing slash', async () => {
  const gift = await buyOne(service);
  const reply = await redeem(service, `${service.shortcodeOf(gift).toLowerCase()}`);
  assert.equal(reply.status, 201);
  assert.equal(reply.json['data']['gift_id'], gift);
  const again = await service.ask('POST', `/api/v2/gifts/${gift}/redemptions/`, {
    token: await service.userToken('till-coffee'),
    body: { location_id: 'bean-soho' },
  });
  refused(again, 405, 'gift already redeemed.');
  assert.equal(again.headers.get('allow'), 'GET, HEAD, POST');
});

test('the owner redeems at any location, also another merchant’s', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  assert.equal((await redeem(service, gift, 'bob', 'screen-soho')).status, 201);
});

test('a gift without a receiver belongs to its sender', async () => {
  assert.equal((await redeem(service, await buyOne(service), 'ann', 'bean-leeds')).status, 201);
});

test('a gift sent to a number belongs to who has the number', async () => {
  const gift = await buyOne(service, 'latte', { phone_number: '+44 7700 900002' });
  refused(await redeem(service, gift, 'ann'), 403, 'Cannot redeem this gift.');
  assert.equal((await redeem(service, gift, 'bob')).status, 201);
});

test('lets till staff redeem their own gifts anywhere, those of others only where they work', async () => {
  const till = CATALOGUE.users.find((user) => (user as { id: string }).id === 'till-redeem-only');
  await service.import({ users: [{ ...till, phone_number: '07700 900090' }] });
  const own = await buyOne(service, 'latte', { phone_number: '07700 900090' });
  const bobs = await buyOne(service, 'latte', { phone_number: '07700 900002' });
  refused(await redeem(service, bobs, 'till-redeem-only', 'screen-soho'), 422, 'Invalid location.');
  assert.equal((await redeem(service, bobs, 'till-redeem-only')).status, 201);
  assert.equal((await redeem(service, own, 'till-redeem-only', 'screen-soho')).status, 201);
});

test('a consolidated product is redeemed by any merchant whose brand lists it', async () => {
  assert.equal((await redeem(service, await buyOne(service, 'any-20'), 'till-cinema', 'screen-soho')).status, 201);
  assert.equal((await redeem(service, await buyOne(service, 'any-20'), 'till-shops', 'street-bath')).status, 201);
});

test('who may not redeem', async () => {
  const gift = await buyOne(service);
  for (const user of ['bob', 'cat', 'till-cinema', 'till-nothing', 'sue'])
    refused(await redeem(service, gift, user), 403, 'Cannot redeem this gift.');
  // Auditors write nothing: docs/api/tokens.md#staff-accounts.
  refused(await redeem(service, gift, 'aud'), 403, 'Forbidden.');
});

test('invalid locations: unknown, or another merchant’s for a till', async () => {
  const gift = await buyOne(service);
  refused(await redeem(service, gift, 'ann', 'nowhere'), 422, 'Invalid location.');
  refused(await redeem(service, gift, 'till-coffee', 'screen-soho'), 422, 'Invalid location.');
  refused(await redeem(service, gift, 'ann', '__proto__'), 422, 'Invalid location.');
});

test('the body is checked after the caller, before the state', async () => {
  const gift = await buyOne(service);
  const path = `/api/v2/gifts/${gift}/redemptions`;
  const ann = await service.userToken('ann');
  refused(await service.ask('POST', path, { token: ann, body: {} }), 422, 'location_id is required');
  refused(
    await service.ask('POST', path, { token: ann, body: { location_id: 7 } }),
    422,
    'location_id must be a string',
  );
  refused(
    await service.ask('POST', path, { token: ann, body: { location_id: 'bean-soho', more: 1 } }),
    422,
    'more is not a known field',
  );
  refused(await service.ask('POST', path, { token: ann, body: [] }), 422, 'the body must be an object');
  refused(
    await service.ask('POST', path, { token: await service.userToken('bob'), body: {} }),
    403,
    'Cannot redeem this gift.',
  );
  refused(
    await service.ask('POST', '/api/v2/gifts/00000000000000000000/redemptions', { token: ann, body: {} }),
    404,
    'gift not found',
  );
  await redeem(service, gift);
  refused(await service.ask('POST', path, { token: ann, body: {} }), 422, 'location_id is required');
});

test('unknown gifts', async () => {
  for (const id of ['00000000000000000000', '0000000000000000', 'nonsense', '%00', '..%2f..', 'x'.repeat(2000)])
    refused(await redeem(service, id, 'ann'), 404, 'gift not found');
});

test('of a hundred redeems at once exactly one gets 201', async () => {
  const gift = await buyOne(service);
  const replies = await Promise.all(
    Array.from({ length: 100 }, (_, index) => redeem(service, gift, index % 2 === 0 ? 'ann' : 'till-coffee')),
  );
  assert.equal(replies.filter(({ status }) => status === 201).length, 1);
  for (const reply of replies.filter(({ status }) => status !== 201)) refused(reply, 405, 'gift already redeemed.');
  const events = await service.events.read(giftStream(gift));
  assert.equal(events.filter(({ type }) => type === 'GiftRedeemed').length, 1);
});

test('unredeem by id and by latest, and redeem again', async () => {
  const gift = await buyOne(service);
  const first = (await redeem(service, gift)).json['data'];
  const reversed = await unredeem(service, gift, first['id'] as string);
  assert.equal(reversed.status, 200);
  assert.deepEqual(
    { ...(reversed.json['data'] as object), updated_at: '' },
    { ...(first as object), redeemed: false, updated_at: '' },
  );
  assert.ok((reversed.json['data']['updated_at'] as string) > (first['updated_at'] as string));
  refused(await unredeem(service, gift), 422, 'gift not redeemed.');
  const second = (await redeem(service, gift)).json['data'];
  assert.notEqual(second['id'], first['id']);
  refused(await unredeem(service, gift, first['id'] as string), 422, 'gift not redeemed.');
  assert.equal((await unredeem(service, gift)).json['data']['id'], second['id']);
});

test('unredeem refusals', async () => {
  const gift = await buyOne(service);
  refused(await unredeem(service, gift), 404, 'gift not found');
  refused(await unredeem(service, gift, 'nonsense'), 404, 'Redemption not found');
  refused(await unredeem(service, '00000000000000000000'), 404, 'gift not found');
  await redeem(service, gift);
  for (const user of ['ann', 'bob', 'till-cinema', 'till-redeem-only', 'till-nothing'])
    refused(await unredeem(service, gift, 'latest', user), 403, 'Cannot unredeem this gift.');
  const [token, elsewhere] = [await service.userToken('till-coffee'), await service.userToken('till-cinema')];
  for (const body of [
    { redeemed: true },
    { redeemed: 'false' },
    {},
    { redeemed: false, location_id: 'bean-soho' },
    [],
    null,
    'x',
    3,
  ]) {
    refused(
      await service.ask('PATCH', `/api/v2/gifts/${gift}/redemptions/latest`, { token, body: JSON.stringify(body) }),
      422,
      'Only redeemed: false can be patched.',
    );
    refused(
      await service.ask('PATCH', `/api/v2/gifts/${gift}/redemptions/latest`, {
        token: elsewhere,
        body: JSON.stringify(body),
      }),
      403,
      'Cannot unredeem this gift.',
    );
  }
});

test('lets only the merchant of a redemption reverse it, or one for whom the gift is valid', async () => {
  const gift = await buyOne(service, 'any-20');
  await redeem(service, gift, 'till-cinema', 'screen-soho');
  refused(await unredeem(service, gift, 'latest', 'till-shops'), 403, 'Cannot unredeem this gift.');
  assert.equal((await unredeem(service, gift, 'latest', 'till-cinema')).status, 200);
  const elsewhere = await buyOne(service, 'latte');
  await redeem(service, elsewhere, 'ann', 'screen-soho');
  refused(await unredeem(service, elsewhere, 'latest', 'till-cinema'), 403, 'Cannot unredeem this gift.');
  assert.equal((await unredeem(service, elsewhere, 'latest', 'till-coffee')).status, 200);
});

test('what is redeemed keeps who, when and why, and the facts of its day', async () => {
  const gift = await buyOne(service);
  const reply = await service.ask('POST', `/api/v2/gifts/${gift}/redemptions`, {
    token: await service.userToken('till-coffee'),
    body: { location_id: 'bean-soho' },
    headers: { 'x-request-id': 'till-7:42' },
  });
  assert.equal(reply.headers.get('x-request-id'), 'till-7:42');
  const event = (await service.events.read(giftStream(gift))).find(({ type }) => type === 'GiftRedeemed');
  assert.deepEqual(event?.data, {
    redemption_id: reply.json['data']['id'],
    location_id: 'bean-soho',
    location_merchant_id: 'coffee',
    merchant_id: 'coffee',
    brand_id: 'bean',
    product_id: 'latte',
    value: 350,
  });
  assert.deepEqual(event.metadata.by, { user: 'till-coffee', client: 'app', roles: ['redeem', 'unredeem'] });
  assert.equal(event.metadata.requestId, 'till-7:42');
  assert.equal(reply.headers.get('gift-position'), `${service.events.logId}:${event.position}`);
});

test('refuses to redeem, voucher or claim a blocked gift until it is freed; it looks as before', async () => {
  const gift = await buyOne(service);
  const ann = await service.userToken('ann');
  const before = (await service.ask('GET', `/api/v2/gifts/${gift}`, { token: ann })).json['data'];
  const store = await service.openStore();
  try {
    const deps = { events: service.events, gifts: openReadModels(store, service.events).gifts };
    const context = (commandId: string): CommandContext => ({
      commandId,
      correlationId: commandId,
      by: { user: 'cli:test' },
      now: new Date().toISOString(),
    });
    await blockGift(deps, gift, context(`block-${gift}`), { reason: 'fraudulent' });
    refused(await redeem(service, gift), 405, 'gift is blocked.');
    refused(await redeem(service, gift, 'bob'), 403, 'Cannot redeem this gift.');
    refused(await redeem(service, gift, 'ann', 'nowhere'), 422, 'Invalid location.');
    for (const path of ['voucher', 'voucher/claimed'])
      refused(
        await service.ask('POST', `/api/v2/gifts/${gift}/${path}`, { token: ann, body: {} }),
        405,
        'gift is blocked.',
      );
    refused(
      await service.ask('POST', `/api/v2/gifts/${service.shortcodeOf(gift)}/claim`, {
        token: await service.userToken('bob'),
      }),
      405,
      'gift is blocked.',
    );
    assert.deepEqual((await service.ask('GET', `/api/v2/gifts/${gift}`, { token: ann })).json['data'], before);
    await unblockGift(deps, gift, context(`free-${gift}`), { reason: 'found' });
    assert.equal((await redeem(service, gift)).status, 201);
  } finally {
    await store.close();
  }
});

test.run();

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { giftStream } from '../../../src/domain/gift/events.js';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import type { Engines } from '../../../src/ports/engines.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { recordable } from '../../../src/commands/transact.js';
import type { Principal } from '../../../src/api/pipeline/principal.js';
import { type HeldKey, bodyHashOf, keyOwner, keyedCommandId, takeKey } from '../../../src/api/pipeline/idempotency.js';
import { isKept } from '../../../src/api/pipeline/errors.js';
import { farLog } from '../../support/faults/farLog.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { buyOne, purchaseOf, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('idempotency keys');
let service: Service;
let counter = 0;
const newKey = (): string => `key-${++counter}`;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

function same(first: Reply, again: Reply): void {
  assert.deepEqual([again.status, again.text], [first.status, first.text]);
  assert.equal(first.headers.get('idempotent-replayed'), null);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  for (const name of ['location', 'gift-position', 'content-type', 'allow'])
    assert.equal(again.headers.get(name), first.headers.get(name), name);
}

test('repeats the first outcome of a redeem, by id, shortcode and with a slash', async () => {
  const gift = await buyOne(service);
  const key = newKey();
  const first = await redeem(service, gift, 'till-coffee', 'bean-soho', { key });
  assert.equal(first.status, 201);
  await unredeem(service, gift);
  same(first, await redeem(service, gift, 'till-coffee', 'bean-soho', { key }));
  same(first, await redeem(service, service.shortcodeOf(gift).toLowerCase(), 'till-coffee', 'bean-soho', { key }));
  same(first, await redeem(service, `${gift}/redemptions/../../${gift}`, 'till-coffee', 'bean-soho', { key }));
  const events = await service.events.read(giftStream(gift));
  assert.equal(events.filter(({ type }) => type === 'GiftRedeemed').length, 1);
});

test('another body with the same key is refused; the order of its fields does not count', async () => {
  const key = newKey();
  const token = await service.userToken('ann');
  const body = purchaseOf('latte') as { payment: object; purchase: object };
  const first = await service.ask('POST', '/api/v2/transactions', { token, key, body });
  same(
    first,
    await service.ask('POST', '/api/v2/transactions/', {
      token,
      key,
      body: { purchase: body.purchase, payment: body.payment },
    }),
  );
  refused(
    await service.ask('POST', '/api/v2/transactions', { token, key, body: purchaseOf('mocha') }),
    422,
    'Idempotency key already used with another request.',
  );
});

test('hashes different bodies apart, lists from objects too; stored hashes stay as they are', () => {
  const lists = [
    [
      ['location_id', 'nowhere'],
      ['', '{}'],
    ],
    [['location_id', 'nowhere'], ['', '{}'], '[]'],
    [['location_id', 'nowhere'], ['', '{}'], '[]', '[]'],
  ];
  const bodies = [
    { location_id: 'nowhere' },
    ...lists,
    {},
    [],
    [['', '{}']],
    [[]],
    [{}],
    [[['', '{}']]],
    ['[]'],
    [[], '[]'],
    { a: {} },
    { a: [['', '{}']] },
    { a: [] },
  ];
  assert.equal(new Set(bodies.map(bodyHashOf)).size, bodies.length);
  const body = {
    embed: ['gifts'],
    payment: { reference: 'pm_card_visa', method: 'card' },
    purchase: { type: 'gift', reference: 'latte', receivers: [{ user_id: 'bob' }, {}] },
  };
  assert.equal(bodyHashOf(body), 'eVDnDboqIwQbsY3tqgOgo2jpoeBLf14duDwdxi0K5m8');
});

test('a key is the caller’s and the route’s own', async () => {
  const key = newKey();
  const gift = await buyOne(service);
  const other = await buyOne(service);
  for (const one of [gift, other]) {
    const reply = await redeem(service, one, 'till-coffee', 'bean-soho', { key });
    assert.deepEqual(
      [reply.status, reply.json.data.gift_id, reply.headers.get('idempotent-replayed')],
      [201, one, null],
    );
  }
  refused(await redeem(service, gift, 'ann', 'bean-soho', { key }), 405, 'gift already redeemed.');
  assert.equal((await unredeem(service, gift, 'latest', 'till-coffee', { key })).status, 200);
});

test("scopes a key's command to user, client and route; stored command ids stay as they are", () => {
  const hash = keyedHash(Buffer.from('k'.repeat(32)));
  const by = (clientId: string, id: string): Principal =>
    ({ kind: 'user', clientId, sessionId: 's', user: { id } }) as Principal;
  const commands = [
    keyedCommandId(hash, by('app', 'ann'), 'POST /a', 'key'),
    keyedCommandId(hash, by('web', 'ann'), 'POST /a', 'key'),
    keyedCommandId(hash, by('app', 'bob'), 'POST /a', 'key'),
    keyedCommandId(hash, by('app', 'ann'), 'POST /b', 'key'),
    keyedCommandId(hash, by('app', 'ann'), 'POST /a', 'key2'),
    keyedCommandId(hash, { kind: 'client', clientId: 'app', sessionId: 's' }, 'POST /a', 'key'),
  ];
  assert.equal(new Set(commands).size, commands.length);
  assert.equal(commands[0], 'MwgFhGnlP1ep7hcT7vFwI_');
});

test('repeats refusals by facts or state, but not those before any decision', async () => {
  const gift = await buyOne(service);
  await redeem(service, gift);
  const key = newKey();
  const first = await redeem(service, gift, 'till-coffee', 'bean-soho', { key });
  refused(first, 405, 'gift already redeemed.');
  await unredeem(service, gift);
  same(first, await redeem(service, gift, 'till-coffee', 'bean-soho', { key }));

  const token = await service.userToken('ann');
  const unread = newKey();
  const path = `/api/v2/gifts/${gift}/redemptions`;
  refused(await service.ask('POST', path, { token, key: unread, body: {} }), 422, 'location_id is required');
  refused(await service.ask('POST', path, { token, key: unread, body: '{' }), 400, 'Malformed JSON.');
  assert.equal(
    (await service.ask('POST', path, { token, key: unread, body: { location_id: 'bean-soho' } })).status,
    201,
  );

  for (const [status, reference] of [
    [402, 'pm_card_visa_chargeDeclined'],
    [422, 'nothing'],
  ] as const) {
    const again = newKey();
    const ask = (): Promise<Reply> =>
      service.ask('POST', '/api/v2/transactions', {
        token,
        key: again,
        body: purchaseOf('latte', undefined, { reference }),
      });
    const refusal = await ask();
    assert.equal(refusal.status, status);
    same(refusal, await ask());
  }
});

test('malformed keys', async () => {
  const token = await service.userToken('ann');
  for (const key of ['a b', 'ü', 'x'.repeat(256), '']) {
    refused(
      await service.ask('POST', '/api/v2/transactions', { token, key, body: purchaseOf('latte') }),
      400,
      'Invalid idempotency key.',
    );
  }
  assert.equal(
    (await service.ask('POST', '/api/v2/transactions', { token, key: 'x'.repeat(255), body: purchaseOf('latte') }))
      .status,
    201,
  );
});

test('a read takes no key: it is answered as things are', async () => {
  const gift = await buyOne(service);
  const token = await service.userToken('ann');
  const look = (key: string): Promise<Reply> => service.ask('GET', `/api/v2/gifts/${gift}`, { token, key });
  const key = newKey();
  assert.equal((await look(key)).json.data.gift_status, 'sent');
  assert.equal((await redeem(service, gift)).status, 201);
  const again = await look(key);
  assert.deepEqual([again.json.data.gift_status, again.headers.get('idempotent-replayed')], ['redeemed', null]);
  assert.equal((await look('not a key')).status, 200);
});

test('takes neither key nor position at the token endpoint', async () => {
  const body = { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' };
  const ask = (key: string): Promise<Reply> =>
    service.ask('POST', '/oauth/token', { key, headers: { 'gift-position': 'none' }, body });
  const key = newKey();
  const replies = [await ask(key), await ask(key), await ask('not a key')];
  for (const reply of replies) assert.deepEqual([reply.status, reply.headers.get('idempotent-replayed')], [200, null]);
  assert.equal(new Set(replies.map(({ json }) => json.access_token as string)).size, replies.length);
});

test('of concurrent requests with one key one is done; the others wait or get its answer', async () => {
  const key = newKey();
  const token = await service.userToken('ann');
  const replies = await Promise.all(
    Array.from({ length: 20 }, () =>
      service.ask('POST', '/api/v2/transactions', { token, key, body: purchaseOf('latte') }),
    ),
  );
  const ids = new Set(replies.filter(({ status }) => status === 201).map(({ json }) => json.data.id as string));
  assert.equal(ids.size, 1);
  for (const reply of replies.filter(({ status }) => status !== 201)) {
    refused(reply, 409, 'Request in progress.');
    assert.match(reply.headers.get('retry-after') ?? '', /^[1-5]$/);
  }
});

test('with every stored answer gone, what was appended is found again', async () => {
  const token = await service.userToken('ann');
  const gift = await buyOne(service);
  const keys = {
    decline: newKey(),
    buy: newKey(),
    redeem: newKey(),
    unredeem: newKey(),
    claim: newKey(),
    voucher: newKey(),
  };
  const shared = await buyOne(service);
  const all: (() => Promise<Reply>)[] = [
    () =>
      service.ask('POST', '/api/v2/transactions', {
        token,
        key: keys.decline,
        body: purchaseOf('latte', undefined, { reference: 'pm_card_visa_chargeDeclined' }),
      }),
    () =>
      service.ask('POST', '/api/v2/transactions?embed[]=gifts', {
        token,
        key: keys.buy,
        body: purchaseOf('latte', [{ user_id: 'bob' }]),
      }),
    () => redeem(service, gift, 'till-coffee', 'bean-soho', { key: keys.redeem }),
    () => unredeem(service, gift, 'latest', 'till-coffee', { key: keys.unredeem }),
    async () =>
      service.ask('POST', `/api/v2/gifts/${service.shortcodeOf(shared)}/claim`, {
        token: await service.userToken('bob'),
        key: keys.claim,
      }),
    async () =>
      service.ask('POST', `/api/v2/gifts/${shared}/voucher/claimed`, {
        token: await service.userToken('bob'),
        key: keys.voucher,
      }),
  ];
  const first = [];
  for (const ask of all) first.push(await ask());
  const store = await service.openStore();
  for (const record of await store.records.list('idempotency:')) await store.records.delete(record.key);
  await store.close();
  for (const [index, ask] of all.entries()) {
    same(first[index] as Reply, await ask());
    same(first[index] as Reply, await ask());
  }
  const other = await service.ask('POST', '/api/v2/transactions', { token, key: keys.buy, body: purchaseOf('mocha') });
  refused(other, 422, 'Idempotency key already used with another request.');
});

test('repeats what was done without its stored answer, though the caller could not do it now', async () => {
  const [shared, used, anywhere] = [await buyOne(service), await buyOne(service), await buyOne(service, 'any-20')];
  assert.equal((await redeem(service, anywhere)).status, 201);
  const keys = { claim: newKey(), voucher: newKey(), voucherV1: newKey(), redeem: newKey(), unredeem: newKey() };
  const all: (() => Promise<Reply>)[] = [
    async () =>
      service.ask('POST', `/api/v2/gifts/${service.shortcodeOf(shared)}/claim`, {
        token: await service.userToken('bob'),
        key: keys.claim,
      }),
    async () =>
      service.ask('POST', `/api/v2/gifts/${shared}/voucher/claimed`, {
        token: await service.userToken('bob'),
        key: keys.voucher,
      }),
    async () =>
      service.ask('POST', `/api/v2/gifts/${used}/voucher`, {
        token: await service.userToken('ann'),
        key: keys.voucherV1,
      }),
    () => redeem(service, used, 'ann', 'bean-soho', { key: keys.redeem }),
    () => unredeem(service, anywhere, 'latest', 'till-coffee', { key: keys.unredeem }),
  ];
  const first = [];
  for (const ask of all) first.push(await ask());
  assert.deepEqual(
    first.map(({ status }) => status),
    [200, 200, 200, 201, 200],
  );
  // Another merchant's redemption is the latest now.
  assert.equal((await redeem(service, anywhere, 'till-cinema', 'screen-soho')).status, 201);
  // The others are another one's since, and valid for longer: a minute later, as answers tell times in seconds.
  const now = new Date(Date.now() + 60_000).toISOString();
  assert.equal((await unredeem(service, used)).status, 200);
  for (const gift of [shared, used]) {
    const given = {
      type: 'GiftReassigned',
      data: { transaction_id: 't', receiver: { user_id: 'cat' }, phone_number: null, reason: 'test' },
    };
    const extended = {
      type: 'GiftExtended',
      data: { expires_on: '2099-12-31', voucher_expires_at: '2099-12-31T23:59:59.999Z', reason: 'test' },
    };
    const { position } = await service.events.append(
      giftStream(gift),
      recordable([given, extended], { commandId: newKey(), correlationId: 'test', by: { user: 'test' }, now }),
      'any',
    );
    const seen = await service.ask('GET', `/api/v2/gifts/${gift}`, {
      token: await service.userToken('cat'),
      headers: { 'gift-position': `${service.events.logId}:${position}` },
    });
    assert.equal(seen.json.data.receiver_id, 'cat');
  }
  const store = await service.openStore();
  for (const record of await store.records.list('idempotency:')) await store.records.delete(record.key);
  await store.close();
  for (const [index, ask] of all.entries()) same(first[index] as Reply, await ask());
});

test("gives no answer that can't be kept for its key, unless it stands in the log", async () => {
  let failing = false;
  const through = (engines: Engines): Engines => {
    const { records } = engines.store;
    const put: typeof records.put = async (key, value, options) => {
      if (failing && key.startsWith('idempotency:') && (value as { state?: string }).state === 'done')
        throw new UnavailableError('no room');
      return records.put(key, value, options);
    };
    return { ...engines, store: { ...engines.store, records: { ...records, put } } };
  };
  const own = await startService({ app: { through } });
  try {
    const [redeemed, fresh] = [await buyOne(own), await buyOne(own)];
    assert.equal((await redeem(own, redeemed)).status, 201);
    const token = await own.userToken('ann');
    const support = await own.userToken('sue');
    failing = true;
    refused(await redeem(own, redeemed, 'till-coffee', 'bean-soho', { key: 'k1' }), 503, 'Service unavailable.');
    assert.equal((await redeem(own, fresh, 'till-coffee', 'bean-soho', { key: 'k2' })).status, 201);
    const declined = purchaseOf('latte', undefined, { reference: 'pm_card_visa_chargeDeclined' });
    refused(
      await own.ask('POST', '/api/v2/transactions', { token, key: 'k3', body: declined }),
      402,
      'Payment declined.',
    );
    refused(
      await own.ask('POST', '/api/v2/transactions', { token, key: 'k4', body: purchaseOf('unknown') }),
      503,
      'Service unavailable.',
    );
    // The gift is not blocked: a repeat would unblock it if it were by then.
    const unblock = { token: support, key: 'k5', body: { reason: 'a test' } };
    refused(await own.ask('POST', `/ops/gifts/${fresh}/unblock`, unblock), 503, 'Service unavailable.');
    failing = false;
    assert.equal((await own.ask('POST', `/ops/gifts/${fresh}/unblock`, unblock)).status, 200);
  } finally {
    await own.close();
  }
});

test("frees a key with its refusal, and gives the refusal where the key can't be freed", async () => {
  let release: 'late' | 'never' | undefined;
  const through = (engines: Engines): Engines => {
    const { records } = engines.store;
    const remove: typeof records.delete = async (key, ...rest) => {
      if (key.startsWith('idempotency:')) {
        if (release === 'never') throw new UnavailableError('down');
        if (release === 'late') await sleep(200);
      }
      return records.delete(key, ...rest);
    };
    return { ...engines, store: { ...engines.store, records: { ...records, delete: remove } } };
  };
  const own = await startService({ app: { through } });
  try {
    const [gift, token] = [await buyOne(own), await own.userToken('ann')];
    const ask = (key: string, body: object): Promise<Reply> =>
      own.ask('POST', `/api/v2/gifts/${gift}/redemptions`, { token, key, body });
    release = 'never';
    refused(await ask('k1', {}), 422, 'location_id is required');
    assert.equal(
      own.log.filter((line) => line.includes('an answer could not be kept for its idempotency key')).length,
      1,
    );
    release = 'late';
    refused(await ask('k2', {}), 422, 'location_id is required');
    assert.equal((await ask('k2', { location_id: 'bean-soho' })).status, 201);
  } finally {
    await own.close();
  }
});

test('answers a write where the read store is lost meanwhile, and does not wait for its answer', async () => {
  let lost: 'refuses' | 'silent' | undefined;
  let answer = (): void => undefined;
  const silence = new Promise<void>((resolve) => (answer = resolve));
  const through = (engines: Engines): Engines => {
    const reached: typeof engines.store.reached = async (...requested) => {
      if (lost === 'silent') await silence;
      if (lost !== undefined) throw new UnavailableError('the read store is lost');
      return engines.store.reached(...requested);
    };
    return { ...farLog(engines), store: { ...engines.store, reached } };
  };
  const own = await startService({ app: { through } });
  try {
    const [redeemed, fresh, shared, vouchered] = [
      await buyOne(own),
      await buyOne(own),
      await buyOne(own),
      await buyOne(own),
    ];
    assert.equal((await redeem(own, redeemed)).status, 201);
    const token = await own.userToken('ann');
    await own.userToken('till-coffee');
    lost = 'refuses';
    assert.equal((await own.ask('POST', '/api/v2/transactions', { token, body: purchaseOf('latte') })).status, 201);
    const writes = [
      async () => own.ask('POST', '/api/v2/transactions', { token, body: purchaseOf('latte') }),
      async () => redeem(own, fresh),
      async () => unredeem(own, redeemed),
      async () => own.ask('POST', `/api/v2/gifts/${own.shortcodeOf(shared)}/claim`, { token }),
      async () => own.ask('POST', `/api/v2/gifts/${vouchered}/voucher/claimed`, { token }),
    ];
    lost = 'silent';
    await Promise.all(
      writes.map(async (write) => {
        const reply = await write();
        assert.ok(reply.status < 300, reply.text);
      }),
    );
  } finally {
    lost = undefined;
    answer();
    await own.close();
  }
});

test("keeps a write's answer for its key while its read model is waited for", async () => {
  let order: string[] = [];
  const through = (engines: Engines): Engines => {
    const { store } = engines;
    const put: typeof store.records.put = async (key, value, options) => {
      if ((value as { readonly state?: string }).state === 'done') order.push('kept');
      return store.records.put(key, value, options);
    };
    const reached: typeof store.reached = async (...requested) => {
      if (requested[0].startsWith('webhook_endpoints@')) order.push('waited');
      return store.reached(...requested);
    };
    return { ...farLog(engines), store: { ...store, reached, records: { ...store.records, put } } };
  };
  // Deliveries wait for the same read model.
  const own = await startService({ app: { through }, split: false, env: { ROLES: 'api,projector' } });
  try {
    const token = await own.clientToken();
    const endpoints = '/api/v2/webhook-endpoints';
    const body = { url: 'https://shop.example/hooks', types: ['gift.extended'] };
    // The read model may still be built after a start.
    const { id } = await eventually(async () => {
      const created = await own.ask('POST', endpoints, { token, body });
      return created.status === 201 && (created.json.data as { readonly id: string });
    }, 'an endpoint');
    const key = newKey();
    const change = async (): Promise<Reply> =>
      own.ask('PATCH', `${endpoints}/${id}`, { token, key, body: { description: 'changed' } });
    order = [];
    const first = await change();
    assert.deepEqual(order, ['kept', 'waited']);
    same(first, await change());
  } finally {
    await own.close();
  }
});

test('a purchase too large to keep is made again from the log', async () => {
  const token = await service.userToken('ann');
  const key = newKey();
  const ask = (): Promise<Reply> =>
    service.ask('POST', '/api/v2/transactions?embed[]=gifts.message', {
      token,
      key,
      body: purchaseOf('latte', Array(400).fill({})),
    });
  const first = await ask();
  assert.equal(first.json.embedded.gifts.length, 400);
  // So long an answer is sent as a stream: with all that any other has.
  assert.deepEqual(
    ['content-type', 'cache-control', 'x-content-type-options'].map((name) => first.headers.get(name)),
    ['application/json; charset=utf-8', 'no-store', 'nosniff'],
  );
  same(first, await ask());
});

test('repeats the first answer to a purchase too large to keep, whatever became of its charge', async () => {
  const alone = await startService({ split: false, env: { ROLES: 'api,projector', CHARGE_WAIT_MS: '0' } });
  try {
    const token = await alone.userToken('ann');
    const outcomes = [
      { type: 'PaymentDeclined', data: { provider: 'simulated', code: 'generic_decline' } },
      { type: 'PaymentCharged', data: { amount: 104_000, provider: 'simulated', charge_id: 'ch_1' } },
    ];
    for (const outcome of outcomes) {
      const key = newKey();
      const ask = (): Promise<Reply> =>
        alone.ask('POST', '/api/v2/transactions?embed[]=gifts', {
          token,
          key,
          body: purchaseOf('latte', Array(260).fill({})),
        });
      const first = await ask();
      assert.deepEqual([first.status, first.json.embedded.gifts[0].gift_status], [201, 'pending']);
      const now = new Date().toISOString();
      await alone.events.append(
        transactionStream(first.json.data.id),
        recordable([outcome], { commandId: newKey(), correlationId: 'test', by: { user: 'test' }, now }),
        'any',
      );
      same(first, await ask());
      same(first, await ask());
    }
  } finally {
    await alone.close();
  }
});

test('making a long answer again forgets nothing of the first, whether it fails or dies', async () => {
  const store = await service.openStore();
  try {
    let now = Date.now();
    const take = async (): Promise<HeldKey> => {
      const taken = await takeKey(store.records, 'long', 'hash', () => now);
      assert.ok('settle' in taken);
      return taken;
    };
    const first = { status: 201, headers: { 'Gift-Position': 'log:1' } };
    const running = await take();
    assert.equal(running.first, undefined);
    await running.settle({ ...first, body: 'x'.repeat(300_000) });
    const failing = await take();
    assert.deepEqual(failing.first, first);
    await failing.release();
    assert.deepEqual((await take()).first, first);
    now += 30_001;
    const last = await take();
    assert.deepEqual(last.first, first);
    await last.settle({ status: 402, headers: {}, body: '{}' });
    assert.deepEqual((await take()).first, first);
  } finally {
    await store.close();
  }
});

test('an answer that stands in the log is given all the same where it cannot be kept for its key', async () => {
  const through = (engines: Engines): Engines => ({
    ...engines,
    store: {
      ...engines.store,
      records: {
        ...engines.store.records,
        put: async (key, value, options) => {
          if (key.startsWith('idempotency:') && (value as { state: string }).state === 'done')
            throw new UnavailableError('down');
          return engines.store.records.put(key, value, options);
        },
      },
    },
  });
  const other = await startService({ app: { through } });
  try {
    const gift = await buyOne(other);
    const key = newKey();
    assert.equal((await redeem(other, gift, 'till-coffee', 'bean-soho', { key })).status, 201);
    assert.equal(
      other.log.filter((line) => line.includes('an answer could not be kept for its idempotency key')).length,
      1,
    );
    // It is over, so its key holds nobody up; what it came to stands in the log.
    const again = await redeem(other, gift, 'till-coffee', 'bean-soho', { key });
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true']);
    assert.equal((await other.events.read(giftStream(gift))).filter(({ type }) => type === 'GiftRedeemed').length, 1);
  } finally {
    await other.close();
  }
});

test('without a known process, a request that died holds its key for 30 s', async () => {
  const store = await service.openStore();
  try {
    let now = Date.now();
    const take = (): ReturnType<typeof takeKey> => takeKey(store.records, 'dead', 'hash', () => now);
    const held = await take();
    assert.ok('settle' in held);
    now += 29_000;
    await assert.rejects(take, { message: 'Request in progress.' });
    now += 1_000;
    const taken = await take();
    assert.ok('settle' in taken);
    // The first comes back late: it must not overwrite what the second holds.
    await held.settle({ status: 500, headers: {}, body: '{}' });
    await taken.settle({ status: 201, headers: {}, body: '{"data":1}' });
    assert.deepEqual(await take(), { status: 201, headers: {}, body: '{"data":1}' });
    await assert.rejects(
      takeKey(store.records, 'dead', 'other', () => now),
      { message: 'Idempotency key already used with another request.' },
    );
  } finally {
    await store.close();
  }
});

test('frees the key of a dead process at once; one that goes on keeps nothing any more', async () => {
  const records = memoryRecords(Date.now);
  const gone = new Set<string>();
  const take = (process: string): ReturnType<typeof takeKey> =>
    takeKey(
      records,
      'gone',
      'hash',
      Date.now,
      keyOwner({ self: { process }, isGone: ({ process: one }) => gone.has(one) }),
    );
  const frozen = await take('a');
  assert.ok('settle' in frozen);
  await assert.rejects(take('b'), { message: 'Request in progress.' });
  gone.add('a');
  const taken = await take('b');
  assert.ok('settle' in taken);
  await assert.rejects(take('c'), { message: 'Request in progress.' });
  assert.equal(await frozen.settle({ status: 405, headers: {}, body: '{"error":"no"}' }), false);
  await frozen.release();
  await assert.rejects(take('c'), { message: 'Request in progress.' });
  assert.equal(await taken.settle({ status: 201, headers: {}, body: '{"data":1}' }), true);
  assert.deepEqual(await take('c'), { status: 201, headers: {}, body: '{"data":1}' });
});

test("gives a key to one of two at once; a late release frees no other request's", async () => {
  let now = Date.parse('2026-01-01T00:00:00.000Z');
  const records = memoryRecords(() => now);
  const take = async (): Promise<HeldKey | 'waits'> =>
    takeKey(records, 'raced', 'hash', () => now).then(
      (taken) => taken as HeldKey,
      () => 'waits',
    );
  const both = await Promise.all([take(), take()]);
  assert.equal(both.filter((one) => one === 'waits').length, 1);
  const [first] = both.filter((one) => one !== 'waits');
  now += 30_001;
  assert.notEqual(await take(), 'waits');
  await first?.release();
  assert.equal(await take(), 'waits');
});

test('gives a key to one of two at once that reach the same process', async () => {
  const records = memoryRecords(Date.now);
  const owner = keyOwner({ self: { process: 'a' }, isGone: () => false });
  const take = async (): Promise<HeldKey | 'waits'> =>
    takeKey(records, 'twins', 'hash', Date.now, owner).then(
      (taken) => taken as HeldKey,
      () => 'waits',
    );
  const both = await Promise.all([take(), take()]);
  assert.equal(both.filter((one) => one === 'waits').length, 1);
  const [first] = both.filter((one) => one !== 'waits');
  assert.equal(await take(), 'waits');
  await first?.release();
  assert.notEqual(await take(), 'waits');
});

test('an answer is given again for a day', async () => {
  let now = Date.parse('2026-01-01T00:00:00.000Z');
  const records = memoryRecords(() => now);
  const take = (): ReturnType<typeof takeKey> => takeKey(records, 'kept', 'hash', () => now);
  const held = await take();
  assert.ok('settle' in held);
  const answer = { status: 403, headers: {}, body: '{"error":"Cannot redeem this gift."}' };
  await held.settle(answer);
  now += 24 * 3_600_000 - 1;
  assert.deepEqual(await take(), answer);
});

test('does not keep faults of schema, embed or key: they may be put right and sent again', () => {
  const kept = [
    'schema',
    'unknown_embed',
    'idempotency_key_reused',
    'cannot_redeem',
    'gift_not_found',
    'redemption_not_found',
    'gift_already_redeemed',
    'invalid_location',
    'payment_declined',
    'too_many_requests',
  ] as const;
  assert.deepEqual(kept.filter(isKept), [
    'cannot_redeem',
    'gift_not_found',
    'redemption_not_found',
    'gift_already_redeemed',
    'invalid_location',
    'payment_declined',
  ]);
});

test('holds the key of a dead request no longer for a clock that is set back', async () => {
  const store = await service.openStore();
  try {
    const start = Date.now();
    let now = start;
    const take = (): ReturnType<typeof takeKey> => takeKey(store.records, 'set back', 'hash', () => now);
    await take();
    now = start - 5_000;
    await assert.rejects(take, { message: 'Request in progress.' });
    now = start - 3_600_000;
    assert.ok('settle' in (await take()));
    await assert.rejects(take, { message: 'Request in progress.' });
  } finally {
    await store.close();
  }
});

test.run();

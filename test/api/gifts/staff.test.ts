/** docs/api/tokens.md#staff-accounts, docs/api/gifts.md#what-opens-a-gift */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { unharmed } from '../../support/service/answers.js';
import { buyOne, purchaseOf, redeem, refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { CATALOGUE, user } from '../../support/fixtures/testCatalogue.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('staff accounts');
const NO_GIFTS = 'Staff accounts receive no gifts.';
const SALS_NUMBER = '07700 900061';
/** A new hash of the same password would end the sessions. */
const SAL = user('sal', { phone_number: SALS_NUMBER, roles: ['support'] });
let service: Service;

test.before(async () => {
  service = await startService({
    catalogue: {
      ...CATALOGUE,
      users: [
        ...CATALOGUE.users,
        SAL,
        user('desk', { roles: ['support'], merchant_id: 'coffee', permissions: ['redeem', 'unredeem'] }),
        user('boss', { roles: ['support', 'auditor'] }),
      ],
      payment_methods: [
        ...CATALOGUE.payment_methods,
        { reference: 'pm_card_mastercard', kind: 'card', users: ['sue', 'aud'] },
      ],
    },
  });
});
test.after(async () => {
  await unharmed(service);
  await service.close();
});

const ask = async (user: string, method: string, path: string, body?: unknown): Promise<Reply> =>
  service.ask(method, path, { token: await service.userToken(user), ...(body === undefined ? {} : { body }) });
const gifts = (gift: string, rest = ''): string => `/api/v2/gifts/${gift}${rest}`;
const refusals = async (operation: string): Promise<number> => {
  const { text } = await service.ask('GET', '/metrics');
  return Number(
    new RegExp(`^gift_staff_gifts_refused_total\\{operation="${operation}"\\} (\\d+)$`, 'm').exec(text)?.[1],
  );
};

test('claim no gift, and the attempt is counted', async () => {
  const shared = service.shortcodeOf(await buyOne(service));
  const before = await refusals('claimGift');
  refused(await ask('sue', 'POST', gifts(shared, '/claim')), 403, NO_GIFTS);
  assert.equal(await refusals('claimGift'), before + 1);
  refused(await ask('aud', 'POST', gifts(shared, '/claim')), 403, 'Forbidden.');
  assert.equal((await ask('cat', 'POST', gifts(shared, '/claim'))).status, 200);
});

test('redeem no gift of their own and get no code of it, until they have no role', async () => {
  const gift = await buyOne(service, 'latte', { phone_number: SALS_NUMBER });
  refused(await redeem(service, gift, 'sal'), 403, NO_GIFTS);
  refused(await redeem(service, gift, 'sue'), 403, 'Cannot redeem this gift.');
  for (const [method, path] of [
    ['POST', '/voucher'],
    ['POST', '/voucher/claimed'],
    ['GET', '/voucher/claimed'],
  ] as const)
    refused(await ask('sal', method, gifts(gift, path)), 403, NO_GIFTS);
  for (const operation of ['redeemGift', 'generateVoucher', 'generateVoucherV1', 'getVoucher'])
    assert.equal(await refusals(operation), 1, operation);
  await service.import({ users: [{ ...SAL, roles: [] }] });
  await eventually(async () => (await redeem(service, gift, 'sal')).status === 201);
});

test('redeem for the merchant whose user they are, but get no code', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  refused(await ask('desk', 'POST', gifts(gift, '/voucher/claimed')), 403, NO_GIFTS);
  assert.equal((await ask('bob', 'POST', gifts(gift, '/voucher/claimed'))).status, 200);
  const embedded = async (name: string): Promise<Json> =>
    (await ask(name, 'GET', gifts(gift, '?embed[]=voucher'))).json.embedded.vouchers.length;
  assert.deepEqual([await embedded('till-coffee'), await embedded('desk')], [1, 0]);
  assert.equal((await redeem(service, gift, 'desk')).status, 201);
});

test('get no gift by reassignment, to their number either', async () => {
  await service.import({ users: [SAL] });
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  const reassign = async (to: object): Promise<Reply> =>
    ask('sue', 'POST', `/ops/gifts/${gift}/reassign`, { ...to, reason: 'ticket 7' });
  const before = await refusals('reassignGift');
  for (const user_id of ['sue', 'aud', 'sal', 'boss', 'desk']) refused(await reassign({ user_id }), 403, NO_GIFTS);
  refused(
    await eventually(async () => {
      const reply = await reassign({ phone_number: SALS_NUMBER });
      return reply.status === 409 ? undefined : reply;
    }),
    403,
    NO_GIFTS,
  );
  assert.equal(await refusals('reassignGift'), before + 6);
  assert.equal(
    (
      await eventually(async () => {
        const reply = await reassign({ user_id: 'cat' });
        return reply.status === 409 ? undefined : reply;
      })
    ).status,
    200,
  );
});

test('are no receivers that a buyer can name, which tells nobody who is staff', async () => {
  for (const user_id of ['sue', 'aud', 'desk', 'nobody-of-this-name'])
    refused(
      await ask('ann', 'POST', '/api/v2/transactions', purchaseOf('latte', [{ user_id }])),
      422,
      'Receiver not found.',
    );
});

test('write nothing under /api/v2 as auditors, and log out', async () => {
  const shared = service.shortcodeOf(await buyOne(service));
  for (const auditor of ['aud', 'boss'])
    for (const [method, path, body] of [
      ['POST', '/api/v2/transactions', purchaseOf('latte', undefined, { reference: 'pm_card_mastercard' })],
      ['POST', gifts(shared, '/claim'), {}],
      ['POST', gifts(shared, '/voucher'), {}],
      ['POST', gifts(shared, '/redemptions'), { location_id: 'bean-soho' }],
      ['PATCH', gifts(shared, '/redemptions/latest'), { redeemed: false }],
      ['POST', '/api/v2/webhook-endpoints', { url: 'https://hooks.example' }],
      ['DELETE', '/api/v2/webhook-endpoints/nothing', undefined],
    ] as const)
      refused(await ask(auditor, method, path, body), 403, 'Forbidden.');
  const body = purchaseOf('latte', undefined, { reference: 'pm_card_mastercard' });
  assert.equal((await ask('sue', 'POST', '/api/v2/transactions', body)).status, 201);
  const token = await service.userToken('boss');
  const revoked = await service.ask('POST', '/oauth/revoke', {
    body: { token, client_id: 'app', client_secret: 'app-secret' },
  });
  assert.equal(revoked.status, 200);
  refused(await service.ask('GET', '/api/v2/me', { token }), 401, 'Authentication failed.');
});

test('read no message of others, and those that they wrote', async () => {
  const body = purchaseOf('latte', [{ phone_number: '07700 900998' }], { message: 'Just for you' });
  const [gift = ''] = (await ask('ann', 'POST', '/api/v2/transactions', body)).json.data.gifts as string[];
  const messages = async (name: string, of: string): Promise<unknown[]> =>
    (await ask(name, 'GET', gifts(service.shortcodeOf(of), '?embed[]=message'))).json.embedded.messages as Json[];
  assert.equal((await messages('cat', gift)).length, 1);
  for (const name of ['sue', 'aud', 'desk']) assert.deepEqual(await messages(name, gift), [], name);
  const own = purchaseOf('latte', [{ user_id: 'bob' }], { message: 'Sorry', reference: 'pm_card_mastercard' });
  const [sent = ''] = (await ask('sue', 'POST', '/api/v2/transactions', own)).json.data.gifts as string[];
  assert.equal((await messages('sue', sent)).length, 1);
});

test('see no shortcode under /ops, whatever they look up, and leave none in the records of it', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await redeem(service, gift);
  const code = service.shortcodeOf(gift);
  const answers: Reply[] = [];
  for (const name of [gift, code, code.toLowerCase()])
    for (const path of [
      `gifts/${name}/history`,
      `gifts/${name}/history?format=csv`,
      `gifts/${name}/as-of?time=${new Date().toISOString()}&personal=true&reason=test`,
      `redemptions?gift=${name}`,
      `redemptions?gift_id=${name}&format=csv`,
    ])
      answers.push(await ask('aud', 'GET', `/ops/${path}`));
  answers.push(await ask('sue', 'POST', `/ops/gifts/${code}/block`, { reason: 'test' }));
  answers.push(await ask('sue', 'POST', `/ops/gifts/${code}/unblock`, { reason: 'test' }));
  for (const reply of answers) assert.equal(reply.status, 200, reply.text);
  answers.push(await ask('aud', 'GET', '/ops/access?limit=100'), await ask('ann', 'GET', '/api/v2/events'));
  answers.push(await ask('sue', 'GET', `/ops/parked/${code}`), await ask('aud', 'GET', `/ops/gifts/${code}/proof`));
  const asOf = answers.find(({ json }) => json?.as_of !== undefined)?.json.data;
  assert.deepEqual([asOf.id, asOf.shortcode, asOf.launch_url], [gift, '***', `${service.url}/g/***`]);
  for (const { text } of answers) assert.ok(!text.toUpperCase().includes(code), text);
  for await (const { events } of service.events.readAll(undefined))
    assert.ok(!JSON.stringify(events).toUpperCase().includes(code));
});

test.run();

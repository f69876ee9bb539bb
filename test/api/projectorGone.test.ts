/**
 * Nothing that the log knows is refused as missing while no projector keeps the read models: the answer is made from
 * the log, or is 503.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { giftStream } from '../../src/domain/gift/events.js';
import type { Engines } from '../../src/ports/engines.js';
import { buyOne, purchaseOf, redeem, refused } from '../support/service/giftFlow.js';
import { type Asking, type Reply, type Service, startService } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('a projector that is gone');
let service: Service;
/** No read model stores anything until this resolves. */
let held = Promise.resolve();
let free = (): void => undefined;

test.before.each(async () => {
  const through = (engines: Engines): Engines => ({
    ...engines,
    store: { ...engines.store, write: async (batches) => held.then(async () => engines.store.write(batches)) },
  });
  service = await startService({ app: { through } });
});
test.after.each(async () => {
  free();
  await service.close();
});

const stop = (): void => void (held = new Promise((resolve) => (free = resolve)));
const as = async (user: string, method: string, path: string, asking: Asking = {}): Promise<Reply> =>
  service.ask(method, path, { token: await service.userToken(user), ...asking });

function unavailable(reply: Reply): void {
  refused(reply, 503, 'Service unavailable.');
  assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
}

test('redeems a gift just bought, and shows it, its page and its purchase', async () => {
  await Promise.all(['ann', 'bob', 'till-coffee', 'aud', 'sue'].map(async (user) => service.userToken(user)));
  stop();
  const bought = await as('ann', 'POST', '/api/v2/transactions', { body: purchaseOf('latte') });
  assert.equal(bought.status, 201, bought.text);
  const [gift] = bought.json.data.gifts as [string];
  const transaction = bought.json.data.id as string;
  await eventually(async () => (await service.events.read(giftStream(gift))).length > 0);
  const redeemed = await redeem(service, gift);
  assert.equal(redeemed.status, 201, redeemed.text);
  const requested = (): (() => Promise<Reply>)[] => [
    async () => as('ann', 'GET', `/api/v2/gifts/${gift}?embed[]=message&embed[]=voucher`),
    async () => as('ann', 'GET', `/api/v2/gifts/${service.shortcodeOf(gift)}/voucher/options`),
    async () => service.ask('GET', `/g/${service.shortcodeOf(gift)}`),
    async () => as('ann', 'GET', `/api/v2/transactions/${transaction}`),
    async () => as('ann', 'GET', `/api/v2/transactions/${transaction}/gifts`),
    async () => as('aud', 'GET', `/ops/gifts/${gift}/history`),
  ];
  const byRedemption = async (): Promise<Reply> =>
    as('aud', 'GET', `/ops/gifts/${redeemed.json.data.id as string}/history`);
  const early = await Promise.all(requested().map(async (ask) => ask()));
  for (const reply of early) assert.equal(reply.status, 200, reply.text);
  // No stream is named by a redemption.
  unavailable(await byRedemption());
  refused(await as('ann', 'GET', `/api/v2/gifts/${'0'.repeat(gift.length)}`), 404, 'gift not found');
  refused(await as('bob', 'GET', `/api/v2/transactions/${transaction}`), 404, 'transaction not found');
  free();
  await eventually(async () => (await byRedemption()).status === 200);
  const late = await Promise.all(requested().map(async (ask) => ask()));
  assert.deepEqual(
    late.map(({ text }) => text),
    early.map(({ text }) => text),
  );
});

test('knows what was just imported in purchases, tills, tokens and look-ups', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  await eventually(async () => (await service.events.read(giftStream(gift))).length > 0);
  await Promise.all(['ann', 'bob', 'till-coffee'].map(async (user) => service.userToken(user)));
  const token = await service.clientToken();
  stop();
  await service.import({
    products: [{ id: 'new', brand_id: 'bean', name: 'New', sale_price: 100 }],
    stores: [{ id: 'bean-new', brand_id: 'bean', name: 'New', longitude: 1.5, latitude: 51.5 }],
    categories: [{ id: 'newest', name: 'Newest', products: ['new'] }],
    users: [{ id: 'newt', username: 'newt@test.example', password: 'newt-password', name: 'Newt' }],
    clients: [{ id: 'app2', secret: 'app2-secret', name: 'App 2' }],
    payment_methods: [
      { reference: 'pm_card_new', kind: 'card', users: ['ann'] },
      { reference: 'pm_card_slow', kind: 'card', users: ['ann', 'bob'] },
    ],
  });
  const buying =
    (user: string, body: object, key: string): (() => Promise<Reply>) =>
    async () =>
      as(user, 'POST', '/api/v2/transactions', { body, key });
  const login = async (form: object): Promise<Reply> => service.ask('POST', '/oauth/token', { token, body: form });
  const requested: [number, () => Promise<Reply>][] = [
    [200, async () => as('ann', 'GET', '/api/v2/products/new')],
    [200, async () => as('ann', 'GET', '/api/v2/product-tags/categories/newest')],
    [201, buying('ann', purchaseOf('new'), 'new-product')],
    [201, buying('ann', purchaseOf('latte', [{ user_id: 'newt' }]), 'new-receiver')],
    [201, buying('ann', purchaseOf('latte', [{}], { reference: 'pm_card_new' }), 'new-card')],
    [201, buying('bob', purchaseOf('latte', [{}], { reference: 'pm_card_slow' }), 'new-access')],
    [200, async () => login({ grant_type: 'password', username: 'newt@test.example', password: 'newt-password' })],
    [200, async () => login({ grant_type: 'client_credentials', client_id: 'app2', client_secret: 'app2-secret' })],
    [201, async () => redeem(service, gift, 'till-coffee', 'bean-new', { key: 'new-till' })],
  ];
  const early = await Promise.all(requested.map(async ([, ask]) => ask()));
  for (const [index, [status, ask]] of requested.entries())
    assert.equal(early[index]?.status, status, `${ask.toString()}: ${early[index]?.text ?? ''}`);
  assert.equal((await as('newt', 'GET', `/api/v2/gifts/${service.shortcodeOf(gift)}`)).status, 200);
  for (const name of ['ann', 'nobody'])
    refused(
      await login({ grant_type: 'password', username: `${name}@test.example`, password: 'wrong' }),
      401,
      'Authentication failed.',
    );
});

test.run();

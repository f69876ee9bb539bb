/** What two buyers, each through two clients, and their clients see of each other's purchases, which share one key. */
import assert from 'node:assert/strict';
import { hashSync } from '@node-rs/argon2';
import { suite } from 'uvu';
import { eventually } from '../support/assertions/until.js';
import { answerOf, checked, unharmed } from '../support/service/answers.js';
import { purchaseOf, refused } from '../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../support/service/service.js';

const test = suite('api/privacyOfPurchases');
let service: Service;

const BUYERS = ['ann', 'bob'] as const;
const CLIENTS = ['app', 'kiosk'] as const;
const KEY = 'the-same-key';

/** A user through a client, or, without a user, the client itself. */
interface Caller {
  readonly user?: string;
  readonly client: string;
}

interface Purchase {
  readonly user: string;
  readonly client: string;
  readonly transaction: string;
  readonly gift: string;
  /** By the same till, through the same client, with the same key. */
  readonly redemption: string;
}
const purchases: Purchase[] = [];

async function ask({ user, client }: Caller, method: string, path: string, more: object = {}): Promise<Reply> {
  const token = await (user === undefined ? service.clientToken(client) : service.userToken(user, client));
  const reply = await service.ask(method, path, { token, ...more });
  checked(answerOf(reply), `${user ?? ''} ${client} ${method} ${path}`);
  return reply;
}

const USERS: readonly (Caller & { readonly user: string })[] = [...BUYERS, 'cat'].flatMap((user) =>
  CLIENTS.map((client) => ({ user, client })),
);

/** The caller's own, by the ids that `idOf` gives; no others show in the answer. */
function onlyShown(reply: Reply, own: (purchase: Purchase) => boolean, idOf: (purchase: Purchase) => string): void {
  assert.equal(reply.status, 200, reply.text);
  for (const purchase of purchases) {
    if (own(purchase)) assert.ok(reply.text.includes(idOf(purchase)), `${JSON.stringify(purchase)} is missing`);
    else
      for (const id of [purchase.transaction, purchase.gift, purchase.redemption])
        assert.ok(!reply.text.includes(id), `${JSON.stringify(purchase)} is shown`);
  }
}

test.before(async () => {
  service = await startService({ split: false });
  const secret_hash = hashSync('kiosk-secret', { memoryCost: 4_096, timeCost: 3, parallelism: 1 });
  await service.import({
    clients: [{ id: 'kiosk', secret_hash, name: 'Kiosk' }],
    payment_methods: [{ reference: 'pm_card_visa_of_bob', kind: 'card', users: ['bob'] }],
  });
  for (const client of CLIENTS)
    for (const user of BUYERS) {
      const caller = { user, client };
      const bought = await ask(caller, 'POST', '/api/v2/transactions', { key: KEY, body: purchaseOf('latte', [{}]) });
      assert.equal(bought.status, 201, bought.text);
      const [gift] = bought.json.data.gifts as [string];
      const redeemed = await ask({ user: 'till-coffee', client }, 'POST', `/api/v2/gifts/${gift}/redemptions`, {
        key: KEY,
        body: { location_id: 'bean-soho' },
      });
      assert.equal(redeemed.status, 201, redeemed.text);
      purchases.push({
        ...caller,
        gift,
        transaction: bought.json.data.id as string,
        redemption: redeemed.json.data.id as string,
      });
    }
  assert.equal(new Set(purchases.map(({ transaction }) => transaction)).size, 4);
  await eventually(async () => {
    const { text } = await ask({ user: 'till-coffee', client: 'app' }, 'GET', '/api/v2/events?limit=500');
    return purchases.every(({ gift }) => text.includes(gift));
  });
});
test.after(async () => {
  await unharmed(service);
  await service.close();
});

test('the event feed shows a client what was bought through it, and nothing of other clients', async () => {
  for (const client of CLIENTS) {
    const reply = await ask({ client }, 'GET', '/api/v2/events?limit=500');
    onlyShown(
      reply,
      (purchase) => purchase.client === client,
      ({ transaction }) => transaction,
    );
    const types = (reply.json.data as Json[]).map(({ type }) => type as string);
    assert.equal(types.filter((type) => type === 'gift.redeemed').length, 2);
  }
  onlyShown(
    await ask({ client: 'pos' }, 'GET', '/api/v2/events?limit=500'),
    () => false,
    ({ gift }) => gift,
  );
});

for (const path of ['/api/v2/events?limit=500', '/api/v2/gifts', '/api/v2/transactions'])
  test(`${path} shows a buyer their own, through whichever client, and nothing of other buyers`, async () => {
    for (const caller of USERS)
      onlyShown(
        await ask(caller, 'GET', path),
        ({ user }) => user === caller.user,
        ({ transaction, gift }) => (path === '/api/v2/gifts' ? gift : transaction),
      );
  });

test('lists of users are no client’s, though it sold what they hold', async () => {
  const [purchase] = purchases;
  for (const path of [
    '/api/v2/gifts',
    '/api/v2/transactions',
    `/api/v2/transactions/${purchase?.transaction}`,
    `/api/v2/gifts/${purchase?.gift}/redemptions`,
    '/api/v2/payment-methods',
    `/api/v2/idempotency-keys/${KEY}`,
  ])
    for (const client of CLIENTS) refused(await ask({ client }, 'GET', path), 403, 'Forbidden.');
});

test('a purchase is shown to its buyer through either client, to other buyers never', async () => {
  for (const purchase of purchases)
    for (const caller of USERS)
      for (const path of ['', '/gifts']) {
        const reply = await ask(caller, 'GET', `/api/v2/transactions/${purchase.transaction}${path}`);
        if (caller.user === purchase.user)
          onlyShown(
            reply,
            (one) => one === purchase,
            ({ gift }) => gift,
          );
        else refused(reply, 404, 'transaction not found');
      }
});

test('redemptions of a gift are its own alone', async () => {
  for (const purchase of purchases) {
    const { user, client, gift, redemption } = purchase;
    const path = `/api/v2/gifts/${gift}/redemptions`;
    onlyShown(
      await ask({ user, client }, 'GET', path),
      (one) => one === purchase,
      (one) => one.redemption,
    );
    for (const other of purchases)
      if (other !== purchase)
        refused(await ask({ user, client }, 'GET', `${path}?after=${other.redemption}`), 422, 'after is not valid');
    assert.equal((await ask({ user, client }, 'GET', `${path}?after=${redemption}`)).status, 200);
  }
});

test('payment methods are the user’s own through whichever client', async () => {
  const own: Readonly<Record<string, readonly string[]>> = { bob: ['pm_card_visa', 'pm_card_visa_of_bob'], cat: [] };
  for (const caller of USERS) {
    const { data } = (await ask(caller, 'GET', '/api/v2/payment-methods?limit=100')).json as { data: Json[] };
    const references = data.map(({ reference }) => reference as string);
    if (own[caller.user] !== undefined) assert.deepEqual(references, own[caller.user], caller.user);
    assert.equal(references.includes('pm_card_visa_of_bob'), caller.user === 'bob');
    assert.equal(references.includes('wallet-prepaid'), caller.user === 'ann');
  }
});

test('one key of two buyers and two clients names four purchases, each to its own caller', async () => {
  for (const caller of USERS) {
    const reply = await ask(caller, 'GET', `/api/v2/idempotency-keys/${KEY}`);
    onlyShown(
      reply,
      ({ user, client }) => user === caller.user && client === caller.client,
      ({ transaction }) => transaction,
    );
    assert.equal(reply.json.data.status, caller.user === 'cat' ? 'unseen' : 'done');
  }
});

test('a key of a redemption is its till’s and client’s, and nothing to others', async () => {
  for (const { gift, client, redemption } of purchases)
    for (const caller of [...USERS, ...CLIENTS.map((one) => ({ user: 'till-coffee', client: one }))]) {
      const reply = await ask(caller, 'GET', `/api/v2/idempotency-keys/${KEY}?gift_id=${gift}`);
      const own = caller.user === 'till-coffee' && caller.client === client;
      assert.deepEqual([reply.status, reply.json.data.status], [200, own ? 'done' : 'unseen']);
      assert.equal(reply.text.includes(redemption), own);
    }
});

test.run();

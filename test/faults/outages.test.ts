/**
 * An engine that goes away while the service serves: 503 on what needs it and on nothing else, `/readyz` tells which,
 * and everything goes on by itself when it is back; what was accepted is done, and nothing twice.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import { giftStream } from '../../src/domain/gift/events.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import type { ServerEngine } from '../support/engines/engines.js';
import { startEventStoreDouble } from '../support/engines/eventStoreDouble.js';
import { buyOne, purchaseOf, redeem, refused } from '../support/service/giftFlow.js';
import { codesOnCommandLine, codesOverHttp } from '../support/service/diagnosis.js';
import { mongoMissing, startMongo } from '../support/engines/mongoServer.js';
import { natsMissing, startNats } from '../support/engines/natsServer.js';
import { type Reply, type Service, startService } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('an engine that goes away');

/** An engine that can be ended and started again with what it had stored. */
interface Crashable {
  readonly settings: Readonly<Record<string, string>>;
  down(): Promise<void>;
  up(): Promise<void>;
  close(): Promise<void>;
}

async function serving(
  engine: ServerEngine,
  crashable: Crashable,
  run: (service: Service) => Promise<void>,
): Promise<void> {
  const engines = { servers: new Set([engine]), settings: crashable.settings, close: crashable.close };
  const service = await startService({ engines, split: false, env: { CHARGE_WAIT_MS: '300' } });
  try {
    await run(service);
  } finally {
    await crashable.up();
    await service.close();
    await crashable.close();
  }
}

/** An engine that is back is used again within this time, in ms, also under load. */
const LOADING_CLIENTS = 16;

/** Clients that look a gift up and buy, whatever they are answered, until `stop`. */
function load(service: Service, gift: string): { readonly stop: () => Promise<void> } {
  let stopped = false;
  async function client(): Promise<void> {
    const token = await service.userToken('ann');
    for (let turn = 0; !stopped; turn++) {
      if (turn % 4 === 0) await service.ask('POST', '/api/v2/transactions', { token, body: purchaseOf('latte') });
      else await service.ask('GET', `/api/v2/gifts/${gift}`, { token });
    }
  }
  const clients = Array.from({ length: LOADING_CLIENTS }, client);
  return {
    async stop() {
      stopped = true;
      await Promise.all(clients);
    },
  };
}

/** The engine goes away for a while under load: the service is ready again once it is back. */
async function backUnderLoad(service: Service, crashable: Crashable, part: string, gift: string): Promise<void> {
  const loading = load(service, gift);
  await crashable.down();
  await readiness(service, part);
  await crashable.up();
  await readiness(service);
  await loading.stop();
}

/** Waits until `/readyz` says that this part, and it alone of the engines, is gone, or that everything is there. */
async function readiness(service: Service, gone?: string): Promise<void> {
  await eventually(async () => {
    const { status, json } = await service.ask('GET', '/readyz');
    const parts = json.parts as Record<string, { ready: boolean }>;
    const missing = ['event store', 'read store', 'bus'].filter((name) => !parts[name]?.ready);
    return gone === undefined ? status === 200 : status === 503 && missing.join() === gone;
  });
  assert.equal((await service.ask('GET', '/healthz')).status, 200);
}

/** A caller who tries again under the same key. */
async function atLast(ask: () => Promise<Reply>): Promise<Reply> {
  return eventually(async () => {
    const reply = await ask();
    return reply.status === 503 || reply.status === 409 ? undefined : reply;
  });
}

const show = async (service: Service, gift: string): Promise<Reply> =>
  service.ask('GET', `/api/v2/gifts/${gift}`, { token: await service.userToken('ann') });
const redemptions = async (service: Service, gift: string): Promise<number> =>
  (await service.events.read(giftStream(gift))).filter(({ type }) => type === 'GiftRedeemed').length;
/** Until its charge has settled. */
const issued = (service: Service, gift: string): Promise<boolean> =>
  eventually(async () => (await show(service, gift)).json.data?.gift_status === 'sent');

test('the event store: reads go on, writes are refused and done once in the end', async () => {
  const double = await startEventStoreDouble();
  const settings = {
    EVENTSTORE_URL: double.url,
    TOKEN_KEY: 't'.repeat(40),
    HASH_KEY: 'h'.repeat(40),
    MASTER_KEY: 'm'.repeat(40),
    SEAL_KEY: 's'.repeat(40),
    KEYS_URL: 'embedded',
    PAYMENTS: 'simulated',
    NOTIFICATIONS: 'simulated',
  };
  await serving(
    'eventstoredb',
    { settings, down: double.way.down, up: double.way.up, close: double.close },
    async (service) => {
      const gift = await buyOne(service);
      await issued(service, gift);
      const [key, order] = [randomUUID(), randomUUID()];
      const token = await service.userToken('ann');
      const purchase = (): Promise<Reply> =>
        service.ask('POST', '/api/v2/transactions', { token, key: order, body: purchaseOf('latte') });
      await service.userToken('till-coffee');
      const support = await service.userToken('sue');
      await double.way.down();
      const [redeemed, bought] = await Promise.all([
        redeem(service, gift, 'till-coffee', 'bean-soho', { key }),
        purchase(),
      ]);
      for (const reply of [redeemed, bought]) refused(reply, 503, 'Service unavailable.');
      assert.equal((await show(service, gift)).status, 200);
      await readiness(service, 'event store');
      assert.equal((await codesOverHttp(service.url, support))[0], 'event_store_unavailable');
      await double.way.up();
      await readiness(service);
      assert.equal((await atLast(() => redeem(service, gift, 'till-coffee', 'bean-soho', { key }))).status, 201);
      assert.equal(await redemptions(service, gift), 1);
      const again = await atLast(purchase);
      assert.equal(again.status, 201, again.text);
      await issued(service, again.json.data.gifts[0] as string);
      assert.deepEqual(
        (await service.events.read(transactionStream(again.json.data.id as string))).map(({ type }) => type),
        ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged'],
      );
      await backUnderLoad(service, { settings, ...double.way, close: double.close }, 'event store', gift);
    },
  );
});

const noMongo = mongoMissing();
if (noMongo === undefined) {
  test('refuses what needs the read store while it is away, and loses nothing', async () => {
    const server = await startMongo({ durable: true });
    const crashable: Crashable = {
      settings: { MONGODB_URL: `${server.url}gift` },
      down: async () => server.signal('SIGKILL'),
      up: server.restart,
      close: server.stop,
    };
    await serving('mongodb', crashable, async (service) => {
      const gift = await buyOne(service);
      await issued(service, gift);
      await service.userToken('till-coffee');
      const key = randomUUID();
      await crashable.down();
      for (const reply of await Promise.all([
        redeem(service, gift, 'till-coffee', 'bean-soho', { key }),
        show(service, gift),
      ]))
        refused(reply, 503, 'Service unavailable.');
      await readiness(service, 'read store');
      assert.equal((await codesOnCommandLine(service.settings, service.url))[0], 'read_store_unavailable');
      await crashable.up();
      await readiness(service);
      const reply = await atLast(() => redeem(service, gift, 'till-coffee', 'bean-soho', { key }));
      assert.equal(reply.status, 201, reply.text);
      assert.equal(await redemptions(service, gift), 1);
      await eventually(async () => (await show(service, gift)).json.data?.gift_status === 'redeemed');
      await backUnderLoad(service, crashable, 'read store', gift);
    });
  });
} else console.log(`skipped: the read store: ${noMongo}`);

const noNats = natsMissing({ own: true });
if (noNats === undefined) {
  test('the bus: purchases are taken and charged later, once; redeeming goes on', async () => {
    const server = await startNats({ own: true });
    let down = false;
    const crashable: Crashable = {
      settings: { NATS_URL: server.url },
      async down() {
        down = true;
        server.child?.kill('SIGKILL');
      },
      async up() {
        if (down) await server.restart();
        down = false;
      },
      close: server.stop,
    };
    await serving('nats', crashable, async (service) => {
      const gift = await buyOne(service);
      await issued(service, gift);
      await crashable.down();
      const token = await service.userToken('ann');
      const bought = await service.ask('POST', '/api/v2/transactions', {
        token,
        key: randomUUID(),
        body: purchaseOf('latte'),
      });
      assert.equal(bought.status, 201, bought.text);
      const later = bought.json.data.gifts[0] as string;
      assert.equal((await show(service, later)).json.data.gift_status, 'pending');
      assert.equal((await redeem(service, gift)).status, 201);
      await readiness(service, 'bus');
      for (const codes of [
        await codesOverHttp(service.url, await service.userToken('sue')),
        await codesOnCommandLine(service.settings, service.url),
      ])
        assert.equal(codes[0], 'bus_unavailable');
      await crashable.up();
      await readiness(service);
      await issued(service, later);
      assert.deepEqual(
        (await service.events.read(transactionStream(bought.json.data.id as string))).map(({ type }) => type),
        ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged'],
      );
      await backUnderLoad(service, crashable, 'bus', gift);
    });
  });
} else console.log(`skipped: the bus: ${noNats}`);

test.run();

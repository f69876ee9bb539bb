/**
 * Two processes of each role under load; one of them is killed with -9, or frozen and let go again, at any moment. The
 * others take over within 5 s, nothing acknowledged is lost, nothing is done twice (by the providers' own ledgers), no
 * document goes back in time, and who reads with `Gift-Position`, whichever process answers, sees what was written.
 * Processes of embedded engines share files, their locks and the bus's broker: one that is frozen with any of these holds
 * up all others, so there the 5 s begin when it goes on. TEST_FAULTS is how many faults there are, TEST_SEED what
 * chooses them.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore/readStore.js';
import { openMongoReadStore } from '../../src/adapters/mongodb/readStore.js';
import { importCatalogue } from '../../src/import/importCatalogue.js';
import { loadConfig, type ProcessRole } from '../../src/service/config.js';
import { giftStream } from '../../src/domain/gift/events.js';
import { type Shortcodes, shortcodesUnder } from '../../src/domain/giftIds.js';
import { keyedHash } from '../../src/domain/keyedHash.js';
import { parkedStream, type WorkParked } from '../../src/domain/parked.js';
import { type NotificationFailed, notificationStream } from '../../src/domain/notification.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import { openLog } from '../../src/service/engines.js';
import { loadKeys } from '../../src/service/keys.js';
import type { EventStore, RecordedEvent } from '../../src/ports/eventStore.js';
import type { ReadStore } from '../../src/ports/readStore.js';
import { giftsProjection } from '../../src/projections/gifts.js';
import { checkpointName, collectionOf } from '../../src/runtime/readmodels/projection.js';
import { PROJECTIONS } from '../../src/projections/index.js';
import { type TestEngines, openTestEngines } from '../support/engines/engines.js';
import { codesOverHttp } from '../support/service/diagnosis.js';
import { chances } from '../support/faults/faultyBus.js';
import { type Fleet, type Ship, startFleet } from '../support/service/fleet.js';
import { openRealProviders, type RealProviders } from '../support/providers/realProviders.js';
import { type Reply, request, userTokenOf } from '../support/service/service.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { eventually } from '../support/assertions/until.js';

const FAULTS = Number(process.env['TEST_FAULTS'] ?? 4);
const SEED = Number(process.env['TEST_SEED'] ?? 1);
/** A frozen one sleeps for at most so long, where they can after others have taken over: longer than a lease lasts. */
const FROZEN_MS = 5_000;
/** Who buys side by side, each one thing after another. */
const SHOPPERS = 3;
/** Accounts that they buy by in turn: a buyer may send so many messages an hour only. */
const BUYERS = 20;
const PUBLIC_URL = 'https://gifts.test';

interface Bought {
  readonly token: string;
  readonly transactionId: string;
  readonly giftId: string;
}

interface World {
  readonly engines: TestEngines;
  readonly dir: string;
  readonly events: EventStore;
  openStore(): Promise<ReadStore>;
  readonly fleet: Fleet;
  readonly providers: RealProviders;
  readonly shortcodes: Shortcodes;
}

const test = suite<{ world: World }>('several processes of each role');

const isUnknown = (parked: readonly RecordedEvent[], giftId: string): boolean =>
  parked.some(({ type, data }) => {
    if (type !== 'WorkParked') return false;
    const { entity, cause } = data as WorkParked['data'];
    return entity === giftId && cause.includes('nobody knows');
  });

async function openWorld(): Promise<World> {
  const engines = await openTestEngines();
  const dir = mkdtempSync(join(tmpdir(), 'gift-faults-'));
  const providers = await openRealProviders();
  const settings = {
    ...engines.settings,
    DATA_DIR: dir,
    PORT: '0',
    LOG_LEVEL: 'info',
    PUBLIC_URL,
    CHARGE_WAIT_MS: '10000',
    ACCESS_TOKEN_TTL: '3600',
    ...providers.settings,
  };
  const config = loadConfig(settings);
  const { events, subjects } = await openLog(config);
  const [ann] = CATALOGUE.users as { readonly id: string; readonly password_hash: string }[];
  const buyers = Array.from({ length: BUYERS }, (_, n) => ({
    id: `buyer${n}`,
    username: `buyer${n}`,
    password_hash: ann?.password_hash,
    name: `Buyer ${n}`,
  }));
  const card = { reference: 'pm_card_visa', kind: 'card', users: buyers.map(({ id }) => id), customer: 'cus_1' };
  const catalogue = { ...CATALOGUE, users: [...CATALOGUE.users, ...buyers], payment_methods: [card] };
  const hash = keyedHash(loadKeys(config).hashKey);
  await importCatalogue({ events, hash, subjects, now: () => new Date().toISOString() }, catalogue, {
    by: { user: 'cli:test' },
  });
  const openStore = (): Promise<ReadStore> =>
    config.mongodbUrl === undefined ? openEmbeddedReadStore({ dir }) : openMongoReadStore({ url: config.mongodbUrl });
  return {
    engines,
    openStore,
    dir,
    events,
    fleet: await startFleet(settings),
    providers,
    shortcodes: shortcodesUnder(hash),
  };
}

test.before(async (context) => {
  context.world = await openWorld();
});

test.after(async ({ world }) => {
  // What kept it from starting has been told.
  if ((world as World | undefined) === undefined) return;
  const { engines, dir, events, fleet, providers } = world;
  await fleet.close();
  await events.close();
  await providers.close();
  await engines.close();
  rmSync(dir, { recursive: true, force: true });
});

test('one after the other is killed or frozen', async ({ world }) => {
  const {
    events,
    fleet,
    engines: { servers },
  } = world;
  const chance = chances(SEED);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(chance() * all.length)] as T;
  const until = async <T>(look: () => Promise<T>, what: string): Promise<Exclude<T, undefined | false>> =>
    eventually(look, what).catch((error: unknown) => {
      throw new Error(
        `${String(error)}\n${fleet
          .lines()
          .filter((line) => /"level":"(?:warn|error|fatal)"/.test(line))
          .slice(-30)
          .join('\n')}`,
        { cause: error },
      );
    });
  /**
   * Asks processes that serve, one after the other, until one gives an answer that counts: a caller who tries again.
   */
  const ask = async (
    method: string,
    path: string,
    asking: Parameters<typeof request>[2],
    from?: string,
  ): Promise<Reply> =>
    until(async () => {
      const url = from !== undefined && fleet.urls().includes(from) ? from : pick(fleet.urls());
      // One that is frozen takes the request and says nothing.
      const gone = new AbortController();
      const waiting = (async () => {
        while (!gone.signal.aborted && fleet.urls().includes(url)) await sleep(50);
      })();
      const answer = await Promise.race([request(url + path, method, asking).catch(() => undefined), waiting]);
      gone.abort();
      return answer === undefined || answer.status >= 500 || answer.status === 409 ? undefined : answer;
    }, `${method} ${path}`);
  const login = async (username: string, password: string, token: string): Promise<string> => {
    const reply = await ask('POST', '/oauth/token', { token, body: { grant_type: 'password', username, password } });
    assert.is(reply.status, 200, reply.text);
    return reply.json.access_token as string;
  };
  const client = (
    await ask('POST', '/oauth/token', {
      body: { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' },
    })
  ).json.access_token as string;
  const tokens = await Promise.all(
    Array.from({ length: BUYERS }, (_, n) => login(`buyer${n}`, 'ann-password', client)),
  );

  let stop = false;
  let numbers = 0;
  const bought: Bought[] = [];
  const redeemed: string[] = [];
  const keys = new Set<string>();

  /**
   * A purchase by whatever process, then a read of it and its redemption by others: each sees what was written before.
   */
  async function shop(): Promise<Bought> {
    const key = randomUUID();
    keys.add(key);
    const token = tokens[numbers % BUYERS]!;
    const phone_number = `+447700900${String(++numbers % 1_000).padStart(3, '0')}`;
    const body = {
      payment: { method: 'card', reference: 'pm_card_visa' },
      purchase: { type: 'gift', reference: 'latte', receivers: [{ phone_number }] },
    };
    const reply = await ask('POST', '/api/v2/transactions', { token, key, body });
    assert.is(reply.status, 201, reply.text);
    const one = { token, transactionId: reply.json.data.id as string, giftId: reply.json.data.gifts[0] as string };
    bought.push(one);
    const gift = await ask('GET', `/api/v2/gifts/${one.giftId}`, {
      token,
      headers: { 'gift-position': reply.headers.get('gift-position') ?? '' },
    });
    assert.is(gift.status, 200, `read after the purchase: ${gift.text}`);
    return one;
  }

  const till = await login('till-coffee@test.example', 'till-coffee-password', client);
  async function redeem({ giftId }: Bought): Promise<void> {
    const reply = await ask('POST', `/api/v2/gifts/${giftId}/redemptions`, {
      token: till,
      key: randomUUID(),
      body: { location_id: 'bean-soho' },
    });
    // Still being charged: its worker was the one that was hit.
    if (reply.status === 405) return assert.is(reply.json.error, 'gift is not paid for yet.');
    assert.is(reply.status, 201, reply.text);
    const gift = await ask('GET', `/api/v2/gifts/${giftId}`, {
      token: till,
      headers: { 'gift-position': reply.headers.get('gift-position') ?? '' },
    });
    assert.is(gift.json?.data?.gift_status, 'redeemed', `read after the redemption: ${gift.status} ${gift.text}`);
    redeemed.push(giftId);
  }

  const shoppers = Array.from({ length: SHOPPERS }, async () => {
    while (!stop) {
      await redeem(await shop());
      await sleep(300);
    }
  });

  /** What has been shown of a gift never goes back, whoever is asked next. */
  const RANK: Readonly<Record<string, number>> = { pending: 0, sent: 1, redeemed: 2 };
  let looks = 0;
  const reader = (async () => {
    const shown = new Map<string, { rank: number; updated: string }>();
    while (!stop) {
      for (const { token, giftId } of bought.slice(-8)) {
        const last = shown.get(giftId);
        const reply = await ask('GET', `/api/v2/gifts/${giftId}`, { token });
        // Without a position to wait for, one bought during a takeover may not be there yet.
        if (reply.status === 404 && last === undefined) continue;
        assert.is(reply.status, 200, `gift ${giftId} was shown before: ${reply.text}`);
        looks += 1;
        const { gift_status: status, updated_at: updated } = reply.json.data as {
          gift_status: string;
          updated_at: string;
        };
        const rank = RANK[status] ?? Number.NaN;
        assert.ok(
          last === undefined || (rank >= last.rank && updated >= last.updated),
          `gift ${giftId} went from ${JSON.stringify(last)} to ${status}, ${updated}`,
        );
        shown.set(giftId, { rank, updated });
      }
      await sleep(150);
    }
  })();

  /** Whoever shops now is served as before, the charge included. @returns how long that took, ms. */
  async function takenOver(): Promise<number> {
    const began = performance.now();
    const probes = Array.from({ length: SHOPPERS }, async () => {
      const { giftId } = await shop();
      await until(
        async () => (await events.read(giftStream(giftId))).length > 0,
        'a purchase after the fault is charged and issued',
      );
    });
    await Promise.all(probes);
    return performance.now() - began;
  }

  /** Nor do the documents themselves, or the checkpoints of what they are made by. */
  let watched = 0;
  const watcher = (async () => {
    const store = await world.openStore();
    const places = new Map<string, string>();
    const never = (what: string, position: string): void => {
      const last = places.get(what) ?? '';
      assert.ok(position >= last, `${what} went from ${last} back to ${position}`);
      places.set(what, position);
      watched += 1;
    };
    while (!stop) {
      for (const projection of PROJECTIONS)
        never(`the checkpoint of ${projection.name}`, (await store.checkpoint(checkpointName(projection))) ?? '');
      const ids = bought.slice(-30).map(({ giftId }) => giftId);
      for (const document of await store.getMany(collectionOf(giftsProjection), ids))
        if (document !== undefined) never(`gift ${document.id}`, document.position);
      await sleep(150);
    }
    await store.close();
  })();

  const running = [...shoppers, reader, watcher];
  for (const one of running) {
    one.catch(() => {
      stop = true;
    });
  }

  // What takes that long while nobody is hit is the machine's doing.
  const usual = await takenOver();
  const told: string[] = [];
  for (let fault = 0; fault < FAULTS && !stop; fault++) {
    await sleep(300 + chance() * 700);
    // Each role in turn; which of the two, and whether the lease is there, is left to chance.
    const victims = fleet.ships.filter(
      ({ role }) => role === (['processor', 'projector', 'worker', 'api'] as const)[fault % 4],
    );
    const victim: Ship = pick(victims);
    const freezes = chance() < 0.5;
    // It wakes up before anybody has noticed, or long after another has taken its place.
    const asleep = chance() * FROZEN_MS;
    if (freezes) victim.freeze();
    else await victim.kill();
    if (freezes && servers.size < 3) {
      await sleep(asleep);
      victim.thaw();
    }
    const ms = await takenOver();
    told.push(
      `${victim.role} ${victim.number} ${freezes ? `frozen for ${Math.round(asleep)} ms` : 'killed'}: ${Math.round(ms)} ms`,
    );
    if (freezes && servers.size === 3) {
      await sleep(asleep);
      victim.thaw();
    } else if (!freezes) await victim.restart();
  }
  await sleep(1_000);
  stop = true;
  await Promise.all(running);
  const ended = performance.now();
  console.log(
    `seed ${SEED}: ${told.join('; ')}; without a fault: ${Math.round(usual)} ms; ${bought.length} purchases, ${redeemed.length} redemptions, ${looks} answers and ${watched} places compared`,
  );

  // Everything there is to do is done, once. A gift that is redeemed while what would tell of it is down is told to nobody.
  // A worker that was killed after its claim, and before Twilio had the message, leaves one of which nobody knows: that is
  // parked (docs/process-managers.md), and never sent again.
  const untold = new Set<string>();
  const parked = new Set<string>();
  for (const { transactionId, giftId } of bought) {
    await until(async () => {
      const last = (await events.read(notificationStream(giftId))).at(-1);
      if (last?.type === 'NotificationSent') return true;
      const isFailed = last?.type === 'NotificationFailed';
      if (isFailed) assert.match((last.data as NotificationFailed['data']).cause, 'gift is redeemed');
      else if (!isUnknown(await events.read(parkedStream('notification')), giftId)) return false;
      else parked.add(giftId);
      untold.add(giftId);
      return true;
    }, `the receiver of ${giftId} is told`);
    assert.equal(
      (await events.read(transactionStream(transactionId))).map(({ type }) => type),
      ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged'],
      transactionId,
    );
    assert.is(world.providers.stripe.charges(transactionId), 1, `charged once: ${transactionId}`);
    const link = `${PUBLIC_URL}/g/${world.shortcodes.of(giftId)}`;
    assert.is(world.providers.twilio.sent(link), untold.has(giftId) ? 0 : 1, `told once: ${giftId}`);
    const types = (await events.read(giftStream(giftId))).map(({ type }) => type);
    assert.equal(types, redeemed.includes(giftId) ? ['GiftIssued', 'GiftRedeemed'] : ['GiftIssued'], giftId);
  }
  console.log(`all told ${Math.round(performance.now() - ended)} ms after the last fault`);
  assert.is(world.providers.stripe.intents.length, bought.length, 'nothing is charged that nobody bought');
  assert.ok(
    parked.size === 0 || told.some((fault) => /^worker .* killed/.test(fault)),
    'only where a worker was killed',
  );
  assert.is(
    world.providers.twilio.messages.length,
    bought.length - untold.size,
    'nobody is told of what nobody bought',
  );
  assert.is(keys.size, bought.length);
  const purchases = [];
  for await (const batch of events.readAll(undefined, { types: ['GiftsPurchased', 'WorkParked'] }))
    purchases.push(...batch.events.map(({ type }) => type));
  assert.equal(
    purchases.toSorted(),
    [...bought.map(() => 'GiftsPurchased'), ...Array.from(parked, () => 'WorkParked')],
    'one purchase a key, and nothing else parked',
  );
});

test('are named by the diagnosis once all of a role have been killed', async ({ world: { fleet } }) => {
  const url = fleet.urls()[0] ?? '';
  const support = await userTokenOf(url, 'sue');
  const killed = async (role: ProcessRole): Promise<void> => {
    for (const ship of fleet.ships) if (ship.role === role) await ship.kill();
  };
  await killed('projector');
  await eventually(async () => (await codesOverHttp(url, support)).includes('read_models_without_leader'));
  await killed('processor');
  await eventually(async () => (await codesOverHttp(url, support)).includes('service_stopped'));
});

test.run();

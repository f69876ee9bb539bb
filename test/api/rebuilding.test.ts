/**
 * Read models built anew beneath a service that is read and written without a pause: what its callers see of it, which
 * is nothing.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import type { Overrides } from '../../src/service/shared.js';
import { resources } from '../../src/lib/async/resources.js';
import type { ReadStore, WriteBatch } from '../../src/ports/readStore.js';
import { collectionOf, type Projection } from '../../src/runtime/readmodels/projection.js';
import { previousBuildOf } from '../../src/runtime/readmodels/previousBuilds.js';
import { rebuildOf } from '../../src/runtime/readmodels/rebuildRecord.js';
import { PROJECTIONS } from '../../src/projections/index.js';
import { gift } from '../support/service/cli.js';
import { openTestEngines } from '../support/engines/engines.js';
import { buy, redeem } from '../support/service/giftFlow.js';
import { type Json, type Service, startService } from '../support/service/service.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { DEADLINE_MS, eventually } from '../support/assertions/until.js';
import { untilStopped } from '../support/faults/untilStopped.js';

const test = suite('rebuilding beneath a service');
/** A page holds them all. */
const GIFTS = 100;
const GIFTS_MODEL = PROJECTIONS.find(({ name }) => name === 'gifts') as Projection;
const NEXT = GIFTS_MODEL.version + 1;
/** Between two redemptions, in ms: there must be some left until the end. */
const PAUSE_MS = 50;

interface Restless {
  /** How many were redeemed so far. */
  redeemed(): number;
  stop(): Promise<{ redeemed: number; reads: number }>;
}

/**
 * Redeems gifts one after the other, each time reading its own write, while readers ask for single gifts and for the
 * list of all. No answer may be an error, lack a gift, or show as unredeemed what an earlier answer has shown as
 * redeemed. `also`: another process of the service, if one runs, that the write is read from, too.
 */
function restless(
  service: Service,
  ids: readonly string[],
  transaction: string,
  { all: bought = ids.length, also = () => undefined }: { all?: number; also?: () => Service | undefined } = {},
): Restless {
  let redeemed = 0;
  let reads = 0;
  const get = async (
    path: string,
    headers: Readonly<Record<string, string>> = {},
    from: Service = service,
  ): Promise<Json> => {
    const reply = await from.ask('GET', path, { token: await from.userToken('ann'), headers });
    assert.equal(reply.status, 200, `${path}: ${reply.text}`);
    return reply.json.data;
  };

  async function write(on: () => boolean): Promise<void> {
    for (; on() && redeemed < ids.length; await sleep(PAUSE_MS)) {
      const id = ids[redeemed] ?? '';
      const reply = await redeem(service, id);
      assert.equal(reply.status, 201, reply.text);
      redeemed++;
      for (const from of [service, also()]) {
        if (from === undefined) continue;
        const own = await get(
          `/api/v2/gifts/${id}`,
          { 'gift-position': reply.headers.get('gift-position') ?? '' },
          from,
        );
        assert.equal(own.gift_status, 'redeemed', 'what was written is there to be read');
      }
    }
  }

  async function readOne(on: () => boolean): Promise<void> {
    const known = new Set<string>();
    for (; on(); reads++) {
      const id = ids[Math.floor(Math.random() * Math.min(ids.length, redeemed + 2))] ?? '';
      const { gift_status } = await get(`/api/v2/gifts/${id}`);
      assert.ok(
        gift_status === 'redeemed' || !known.has(id),
        `gift ${id} was redeemed, and is ${String(gift_status)} again`,
      );
      if (gift_status === 'redeemed') known.add(id);
    }
  }

  async function readList(on: () => boolean): Promise<void> {
    for (let last = 0; on(); reads++) {
      const list = (await get(`/api/v2/transactions/${transaction}/gifts?per_page=${GIFTS}`)) as readonly Json[];
      assert.equal(list.length, bought, 'none is missing');
      const count = list.filter(({ gift_status }) => gift_status === 'redeemed').length;
      assert.ok(count >= last, `${count} redeemed after ${last}`);
      last = count;
      await get('/api/v2/products?per_page=3&embed[]=brand');
    }
  }

  const traffic = untilStopped([write, readOne, readOne, readList]);
  return {
    redeemed: () => redeemed,
    async stop() {
      await traffic.stop();
      return { redeemed, reads };
    },
  };
}

const transactionOf = async (service: Service, id: string): Promise<string> =>
  (await service.ask('GET', `/api/v2/gifts/${id}`, { token: await service.userToken('ann') })).json.data
    .transaction_id as string;

test('rebuilds all read models and rolls back, unnoticed by callers', async () => {
  const service = await startService();
  const store = await service.openStore();
  try {
    const ids = await buy(
      service,
      'latte',
      Array.from({ length: GIFTS }, () => ({})),
    );
    const active = async (): Promise<(number | undefined)[]> =>
      Promise.all(PROJECTIONS.map(({ name }) => store.active(name)));
    const before = await active();
    const traffic = restless(service, ids, await transactionOf(service, ids[0] ?? ''));
    const all = await gift(service.settings, ['projections', 'rebuild', '--all', '--json']);
    assert.equal(all.code, 0, all.err);
    assert.deepEqual(
      all
        .records()
        .filter(({ action }) => action === 'done')
        .map(({ projection }) => projection),
      PROJECTIONS.map(({ name }) => name),
    );
    const after = await active();
    for (const [at, number] of after.entries()) assert.notEqual(number, before[at]);
    const token = await service.userToken('sue');
    assert.equal(
      (await service.ask('POST', '/ops/projections/gifts/rebuild', { token, body: { reason: 'a test' } })).status,
      202,
    );
    await eventually(async () => (await rebuildOf(store, 'gifts')) === undefined);
    assert.equal(
      (await service.ask('POST', '/ops/projections/transactions/rollback', { token, body: { reason: 'a test' } }))
        .status,
      202,
    );
    await eventually(async () => (await rebuildOf(store, 'transactions')) === undefined);
    // Readers notice a swap within a second.
    await sleep(1_200);
    const { redeemed, reads } = await traffic.stop();
    assert.ok(redeemed > 10 && reads > 50, `${redeemed} redemptions, ${reads} reads`);
    assert.deepEqual(
      service.log.filter((line) => (JSON.parse(line) as { level: number }).level >= 50),
      [],
    );
    const verified = await gift(service.settings, ['projections', 'verify', 'gifts']);
    assert.equal(verified.code, 0, verified.err + verified.out);
    assert.equal((await gift(service.settings, ['projections', 'verify', 'transactions', '--sample', '5'])).code, 0);
    const repaired = await gift(service.settings, [
      'projections',
      'repair',
      'gifts',
      '--id',
      ids[0] ?? '',
      '--reason',
      'a test',
      '--json',
    ]);
    assert.deepEqual(repaired.records(), [{ action: 'same', projection: 'gifts', id: ids[0] }], repaired.err);
    const status = await gift(service.settings, ['projections', 'status', '--json']);
    const standing = new Map(status.records().map((one) => [one['name'], one]));
    for (const { name } of PROJECTIONS) {
      const { in_use, lag_events, lag_seconds, holder } = standing.get(name) ?? {};
      assert.deepEqual([name, in_use, lag_events, lag_seconds, typeof holder], [name, true, 0, 0, 'string']);
    }
    assert.equal(typeof standing.get('purchase')?.['holder'], 'string');
  } finally {
    await store.close();
    await service.close();
  }
});

/** A release that folds a read model by another version, without the fold of the one before. */
const raised = (name: string): Overrides => ({
  projections: PROJECTIONS.map((one) => (one.name === name ? { ...one, version: one.version + 1 } : one)),
});

test('serves the earlier version until a changed one is built, at its deployment', async () => {
  const engines = await openTestEngines();
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-deployment-'));
  try {
    const first = await startService({ engines, dataDir, catalogue: CATALOGUE });
    const ids = await buy(first, 'latte', [{}, {}]);
    const transaction = await transactionOf(first, ids[0] ?? '');
    const path = `/api/v2/transactions/${transaction}`;
    await eventually(
      async () => (await first.ask('GET', path, { token: await first.userToken('ann') })).status === 200,
    );
    await first.close();
    const store = await first.openStore();
    const version = await store.active('transactions');
    assert.ok(version !== undefined);
    const second = await startService({ engines, dataDir, app: raised('transactions') });
    try {
      const answers = new Set<string>();
      const look = async (): Promise<void> => {
        const reply = await second.ask('GET', path, { token: await second.userToken('ann') });
        answers.add(`${reply.status} ${reply.text}`);
      };
      await eventually(async () => {
        await look();
        return (await store.active('transactions')) !== version;
      });
      for (const end = performance.now() + 1_500; performance.now() < end;) await look();
      assert.equal(answers.size, 1, [...answers].join('\n'));
      assert.match([...answers][0] ?? '', /^200 /);
    } finally {
      await second.close();
      await store.close();
    }
  } finally {
    await engines.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

/**
 * The next release: another fold of gifts, with the previous one beside it. What it builds is stored only once it is let
 * `go`.
 */
function nextRelease(): { readonly app: Overrides; go(): void } {
  let go: () => void = () => undefined;
  const word = new Promise<void>((resolve) => (go = resolve));
  const next: Projection = {
    ...GIFTS_MODEL,
    version: NEXT,
    previous: [GIFTS_MODEL],
    evolve: (...event) => ({ ...GIFTS_MODEL.evolve(...event), release: 2 }),
  };
  const write = async (store: ReadStore, batches: readonly WriteBatch[]): Promise<void> => {
    if (batches.some(({ collection: { name, version } }) => name === 'gifts' && version === NEXT)) await word;
    return store.write(batches);
  };
  return {
    app: {
      projections: PROJECTIONS.map((one) => (one === GIFTS_MODEL ? next : one)),
      through: (engines) => ({
        ...engines,
        store: { ...engines.store, write: (batches) => write(engines.store, batches) },
      }),
    },
    go: () => go(),
  };
}

/**
 * What a deployment leaves: the new version serves, all that was redeemed is redeemed in it, and the previous one is
 * kept, up to date, for going back.
 */
async function deployed(service: Service, store: ReadStore, redeemed: readonly string[]): Promise<void> {
  const documents = await store.getMany<{ release?: number; redemption?: { redeemed: boolean } }>(
    collectionOf({ ...GIFTS_MODEL, version: NEXT }),
    redeemed,
  );
  assert.deepEqual(
    documents.map((one) => [one?.body.release, one?.body.redemption?.redeemed]),
    redeemed.map(() => [2, true]),
  );
  assert.equal((await previousBuildOf(store, 'gifts'))?.number, GIFTS_MODEL.version);
  const end = await service.events.end();
  assert.ok(
    end !== undefined && (await store.reached(`gifts@${GIFTS_MODEL.version}`, end, DEADLINE_MS)),
    'the previous one is kept up to date',
  );
  assert.deepEqual(
    service.log.filter((line) => (JSON.parse(line) as { level: number }).level >= 40),
    [],
  );
}

test('deploys a changed version rolling, unnoticed, with old and new process in parallel', async () => {
  const engines = await openTestEngines();
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-rolling-'));
  const release = nextRelease();
  const open = resources();
  open.add(engines, async (one) => {
    await one.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  try {
    const first = await startService({ engines, dataDir, catalogue: CATALOGUE, split: false });
    let closing: Promise<void> | undefined;
    const closeFirst = (): Promise<void> => (closing ??= first.close());
    open.add(first, closeFirst);
    const store = open.add(await first.openStore());
    const ids = await buy(
      first,
      'latte',
      Array.from({ length: GIFTS }, () => ({})),
    );
    const transaction = await transactionOf(first, ids[0] ?? '');
    const half = GIFTS / 2;
    let second: Service | undefined;
    const before = restless(first, ids.slice(0, half), transaction, { all: GIFTS, also: () => second });
    // It is ready though the old one leads and goes on keeping its own version: else no orchestrator would end that
    // one.
    second = await startService({ engines, dataDir, split: false, app: release.app });
    const next = second;
    open.add(next);
    const during = restless(next, ids.slice(half), transaction, { all: GIFTS });
    await eventually(async () => before.redeemed() > 5 && during.redeemed() > 5);
    assert.equal(await store.active('gifts'), GIFTS_MODEL.version);
    second = undefined;
    const old = await before.stop();
    await closeFirst();
    const alone = during.redeemed() + 10;
    await eventually(async () => during.redeemed() > alone);
    assert.equal(await store.active('gifts'), GIFTS_MODEL.version, 'redeemed and read while it is built');
    release.go();
    await eventually(async () => (await store.active('gifts')) === NEXT);
    await sleep(1_200);
    const { redeemed } = await during.stop();
    await deployed(next, store, [...ids.slice(0, old.redeemed), ...ids.slice(half, half + redeemed)]);
  } finally {
    release.go();
    await open.close();
  }
});

/**
 * The last release had no read model `redemptions`, which this one adds: what it builds of it is stored only once it is
 * let `go`.
 */
test('deploys an added read model rolling: the new process is ready before it is built', async () => {
  const engines = await openTestEngines();
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-added-'));
  const open = resources();
  open.add(engines, async (one) => {
    await one.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const before = PROJECTIONS.filter(({ name }) => name !== 'redemptions');
  try {
    const first = await startService({
      engines,
      dataDir,
      catalogue: CATALOGUE,
      split: false,
      app: { projections: before },
    });
    let closing: Promise<void> | undefined;
    const closeFirst = (): Promise<void> => (closing ??= first.close());
    open.add(first, closeFirst);
    const store = open.add(await first.openStore());
    const ids = await buy(first, 'latte', [{}, {}]);
    const second = open.add(await startService({ engines, dataDir, split: false }));
    assert.equal(await store.active('redemptions'), undefined);
    const redeemed = await redeem(second, ids[0] ?? '');
    assert.equal(redeemed.status, 201);
    const headers = { 'gift-position': redeemed.headers.get('gift-position') ?? '' };
    const gift = await second.ask('GET', `/api/v2/gifts/${ids[0]}`, { token: await second.userToken('ann'), headers });
    assert.deepEqual([gift.status, gift.json.data.gift_status], [200, 'redeemed']);
    const needing = await second.ask('GET', `/ops/gifts/${redeemed.json.data.id}/history`, {
      token: await second.userToken('aud'),
      headers,
    });
    assert.equal(needing.status, 503);
    await closeFirst();
    await eventually(async () => (await store.active('redemptions')) !== undefined);
    await sleep(1_200);
    const built = await second.ask('GET', `/ops/gifts/${redeemed.json.data.id}/history`, {
      token: await second.userToken('aud'),
      headers,
    });
    assert.deepEqual([built.status, built.json.gift_ids], [200, [ids[0]]]);
  } finally {
    await open.close();
  }
});

test('restarts with a changed version and never answers anything old, missing or wrong', async () => {
  const engines = await openTestEngines();
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-restart-'));
  const open = resources();
  open.add(engines, async (one) => {
    await one.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const release = nextRelease();
  try {
    const first = await startService({ engines, dataDir, catalogue: CATALOGUE, split: false });
    const ids = await buy(
      first,
      'latte',
      Array.from({ length: GIFTS }, () => ({})),
    );
    const transaction = await transactionOf(first, ids[0] ?? '');
    const store = open.add(await first.openStore());
    await first.close();
    const second = open.add(await startService({ engines, dataDir, split: false, app: release.app }), (one) =>
      one.close(),
    );
    const traffic = restless(second, ids, transaction);
    await eventually(async () => traffic.redeemed() > 10);
    assert.equal(
      await store.active('gifts'),
      GIFTS_MODEL.version,
      'it is ready, and answers, before the new version is built',
    );
    release.go();
    await eventually(async () => (await store.active('gifts')) === NEXT);
    await sleep(1_200);
    const { redeemed } = await traffic.stop();
    await deployed(second, store, ids.slice(0, redeemed));
  } finally {
    release.go();
    await open.close();
  }
});

test.run();

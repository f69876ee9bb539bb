import { memoryKeys } from '../../support/engines/memoryKeys.js';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Engines } from '../../../src/ports/engines.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { giftsProjection, type GiftDocument } from '../../../src/projections/gifts.js';
import { checkpointName, type Projection } from '../../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { SwapOutdatedError, swapIn } from '../../../src/runtime/readmodels/swap.js';
import { openBuild } from '../../../src/runtime/readmodels/runningBuild.js';
import { orphanOf } from '../../../src/runtime/readmodels/orphanedModels.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { readinessOf } from '../../../src/service/readiness.js';
import type { ReadModelStatus } from '../../../src/ops/status/status.js';
import { openServiceStatus } from '../../../src/ops/status/serviceStatus.js';
import { buy, installed, type Installation, redeem, settled, silent } from '../../support/fixtures/projecting.js';
import { DEADLINE_MS, until } from '../../support/assertions/until.js';

const test = suite('orphaned read models');
/** Time of leases, in ms: long enough that none is lost on a busy machine. */
const leaseMs = 2_000;
/** The version of `gifts`. */
const V = giftsProjection.version;
/** A release whose engineer forgot the previous fold. */
const FORGETFUL: readonly Projection[] = [{ ...giftsProjection, version: V + 1 }, transactionsProjection];
/** A release from before `transactions` was added. */
const PREVIOUS: readonly Projection[] = [giftsProjection];
const NEXT = FORGETFUL[0] as Projection;
const SERVED = checkpointName(giftsProjection);

/** The store, with the next version's documents held back until `go`. */
function held(store: ReadStore): { readonly store: ReadStore; go(): void } {
  let go: () => void = () => undefined;
  const word = new Promise<void>((resolve) => (go = resolve));
  const write: ReadStore['write'] = async (batches) => {
    if (batches.some(({ collection }) => collection.name === 'gifts' && collection.version === V + 1)) await word;
    return store.write(batches);
  };
  return { store: { ...store, write }, go };
}

/** An installation whose store holds the next version's documents back until the end. */
const slowly = (
  work: (installation: Installation, slow: ReturnType<typeof held>) => Promise<void>,
): (() => Promise<void>) =>
  installed(async (installation) => {
    const slow = held(installation.store);
    try {
      await work(installation, slow);
    } finally {
      slow.go();
    }
  });

/** Gifts as an earlier release left them. */
async function earlierRelease({ events, project }: Installation): Promise<readonly string[]> {
  const bought = await buy(events, [{}, {}, {}, {}]);
  const first = await project({ leaseMs });
  await settled(first, events);
  await first.close();
  return bought.gifts;
}

async function statusOf({ events, store }: Installation, projection: Projection): Promise<ReadModelStatus> {
  const looking = openServiceStatus({ events, store, projections: [projection] });
  try {
    return (await looking.look())[0] as ReadModelStatus;
  } finally {
    await looking.close();
  }
}

const readyOf = async (
  { events, store }: Installation,
  projection = NEXT,
): Promise<{ ready: boolean; detail: string } | undefined> => {
  const bus = { engine: 'none', ping: async () => undefined } as Engines['bus'];
  return (
    await readinessOf({
      engines: { events, store, bus },
      keyStore: memoryKeys(),
      config: { payments: 'simulated', notifications: 'simulated', roles: new Set(['projector']) },
      projections: [projection],
      holder: 'test',
      health: () => [],
      leaders: { noLeaderSince: () => undefined },
      appends: { failing: () => undefined },
      outward: { state: () => ({ held: undefined, resumedAt: undefined }) },
    })()
  ).parts['projection gifts'];
};

test(
  'a standby that knows an orphaned read model keeps it until the leader swaps its own in',
  slowly(async (installation, slow) => {
    const { events, store, project, openStore } = installation;
    const ids = await earlierRelease(installation);
    const leader = await project({ store: slow.store, projections: FORGETFUL, leaseMs });
    await until(() => leader.kept().length > 0, 'the new release to lead');
    const standby = await project({ store: await openStore(), leaseMs });
    const { position } = await redeem(events, ids[0] ?? '');
    assert.ok(await store.reached(SERVED, position, DEADLINE_MS), 'what is served is kept up to date');
    assert.is(
      (await openReadModel<GiftDocument>(store, giftsProjection).get(ids[0] ?? ''))?.redemption?.redeemed,
      true,
    );
    const standing = await statusOf(installation, NEXT);
    assert.equal([standing.version, standing.in_use, standing.holder], [V + 1, false, 'projector 2']);
    assert.equal(
      [standing.served?.version, standing.served?.lag_events, standing.served?.holder],
      [V, 0, 'projector 3'],
    );
    assert.equal(await readyOf(installation), {
      ready: true,
      detail: `version ${V} serves and has caught up, until version ${V + 1} is built`,
    });
    slow.go();
    await until(async () => (await store.active('gifts')) === V + 1, 'the new version to be in use');
    await until(async () => (await orphanOf(store, 'gifts')) === undefined, 'nothing to be orphaned');
    assert.equal((await readyOf(installation))?.detail, 'caught up');
    assert.equal(standby.kept(), []);
  }),
);

test(
  'a process is ready under a leader of a later release, and says how long that serves',
  slowly(async (installation, slow) => {
    const { project } = installation;
    await earlierRelease(installation);
    slow.go();
    await project({ projections: FORGETFUL, leaseMs });
    await until(async () => (await installation.store.active('gifts')) === V + 1, 'the later version to be in use');
    assert.equal(await readyOf(installation, giftsProjection), {
      ready: true,
      detail: `version ${V + 1} serves and has caught up, until no process of its release leads`,
    });
  }),
);

test(
  'the next leader that knows an orphaned read model takes it back from its keeper',
  slowly(async (installation, slow) => {
    const { events, store, project, openStore } = installation;
    const ids = await earlierRelease(installation);
    const leader = await project({ store: slow.store, projections: FORGETFUL, leaseMs });
    await until(async () => (await orphanOf(store, 'gifts'))?.number === V, 'the new release to lead');
    const standing = [
      await project({ store: await openStore(), leaseMs }),
      await project({ store: await openStore(), leaseMs }),
    ];
    const { position } = await redeem(events, ids[0] ?? '');
    assert.ok(await store.reached(SERVED, position, DEADLINE_MS));
    // Its writes do not end: it is as good as dead.
    const closed = leader.close();
    await store.records.put('lease/projector', { holder: null, fence: 50 });
    await until(() => standing.some((one) => one.kept().length > 0), 'one of the others to lead');
    assert.is(await orphanOf(store, 'gifts'), undefined);
    const later = await redeem(events, ids[1] ?? '');
    assert.ok(await store.reached(SERVED, later.position, DEADLINE_MS));
    await until(
      async () =>
        (await store.records.get<{ holder: string | null }>(`lease/projector/gifts@${V}`))?.value.holder === null,
      'its keeper to let it go',
    );
    slow.go();
    await closed;
  }),
);

test(
  'log, readiness and status tell of an orphaned read model that no process keeps',
  slowly(async (installation, slow) => {
    const { events, store, project } = installation;
    const ids = await earlierRelease(installation);
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    await project({ store: slow.store, projections: FORGETFUL, leaseMs, logger });
    await until(() => lines.length > 0, 'a line of the log');
    const { level, projection, serves, builds, msg } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    assert.equal([level, projection, serves, builds], [40, 'gifts', `version ${V}`, `version ${V + 1}`]);
    assert.match(String(msg), /let a process of the release that made it run/);
    const { position } = await redeem(events, ids[0] ?? '');
    const model = openReadModel<GiftDocument>(store, NEXT as typeof giftsProjection);
    assert.is(await model.reached(position, 100), false, 'a wait for a write reports that it is not folded yet');
    assert.equal(await readyOf(installation), {
      ready: false,
      detail: `version ${V} serves and is behind, since no process that knows it keeps it up to date, until version ${V + 1} is built`,
    });
    const { served } = await statusOf(installation, NEXT);
    assert.equal([served?.version, served?.lag_events, served?.holder], [V, 1, null]);
    slow.go();
    await until(async () => (await store.active('gifts')) === V + 1, 'the new version to be in use');
    await until(() => model.reached(position, 100), 'the new version to show it');
    assert.is((await model.get(ids[0] ?? ''))?.redemption?.redeemed, true);
    assert.equal(
      [await readyOf(installation), (await statusOf(installation, NEXT)).served],
      [{ ready: true, detail: 'caught up' }, null],
    );
  }),
);

test(
  'the keeper of an orphaned read model waits for an engine that fails',
  slowly(async (installation, slow) => {
    const { events, store, project, openStore } = installation;
    const ids = await earlierRelease(installation);
    await project({ store: slow.store, projections: FORGETFUL, leaseMs });
    await until(async () => (await orphanOf(store, 'gifts')) !== undefined, 'the new release to lead');
    const own = await openStore();
    let failures = 2;
    let lists = 1;
    const failing = async <T>(left: () => boolean, call: () => Promise<T>): Promise<T> =>
      left() ? Promise.reject(new UnavailableError('down')) : call();
    const flaky: ReadStore = {
      ...own,
      write: (batches) =>
        failing(
          () => failures-- > 0,
          () => own.write(batches),
        ),
      records: {
        ...own.records,
        list: <T>(prefix: string) =>
          failing(
            () => prefix === 'orphaned/' && lists-- > 0,
            () => own.records.list<T>(prefix),
          ),
      },
    };
    await project({ store: flaky, leaseMs });
    const { position } = await redeem(events, ids[0] ?? '');
    assert.ok(await store.reached(SERVED, position, DEADLINE_MS));
    assert.ok(failures < 0);
  }),
);

test(
  'a leader that wakes up in a swap does not put an outdated build over a newer one',
  installed(async (installation) => {
    const { events, store } = installation;
    await buy(events);
    for (const version of [V, V + 1]) await store.ensure({ name: 'gifts', version, indexes: [] });
    await store.activate('gifts', V);
    const [serving, frozen] = [await openBuild(store, giftsProjection), await openBuild(store, NEXT)];
    frozen.state = 'ready';
    await store.activate('gifts', V + 2);
    const woken = await swapIn(frozen, [serving, frozen], V, { store, lease: { held: true }, logger: silent }).catch(
      (error: unknown) => error,
    );
    assert.instance(woken, SwapOutdatedError);
    assert.equal([await store.active('gifts'), serving.state, frozen.caughtUp], [V + 2, 'serving', false]);
  }),
);

test(
  'a standby keeps a read model that the leading release has never heard of',
  installed(async ({ events, store, project, openStore }) => {
    await buy(events);
    const first = await project({ leaseMs });
    await settled(first, events);
    await first.close();
    const previous = await project({ projections: PREVIOUS, leaseMs });
    await until(() => previous.kept().length > 0, 'the previous release to lead');
    const standby = await project({ store: await openStore(), leaseMs });
    const { position } = await buy(events);
    assert.ok(
      await store.reached(checkpointName(transactionsProjection), position, DEADLINE_MS),
      'what it does not know is kept up to date',
    );
    await previous.close();
    await until(() => standby.kept().length === 2, 'the release that knows it to lead');
    assert.is(await orphanOf(store, 'transactions'), undefined);
    await buy(events);
    await settled(standby, events);
  }),
);

test.run();

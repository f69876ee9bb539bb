/**
 * Every part that works by lease does its work after a gap of the lease (its renewal is late), and after another
 * process had it. That of webhooks: `test/deliveries/lease.test.ts`.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deferred } from '../../../src/lib/async/deferred.js';
import { lastSignedHead } from '../../../src/ops/evidence/heads/signedHeads.js';
import { treeAppender } from '../../../src/ops/history/treeAppender.js';
import { startTreeKeeper } from '../../../src/ops/evidence/keeper/treeKeeper.js';
import { type SchedulerOptions, startScheduler } from '../../../src/processors/schedule/scheduler.js';
import type { ReadStore, Records } from '../../../src/ports/readStore.js';
import { PROCESS_LEASE } from '../../../src/processors/runner/run.js';
import { giftsProjection } from '../../../src/projections/gifts.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { LEASE_MS } from '../../../src/runtime/coordination/lease.js';
import { requestRebuild } from '../../../src/runtime/readmodels/maintenance/rebuild.js';
import { startMaintenance } from '../../../src/runtime/readmodels/maintenance/maintainer.js';
import { keeperLease } from '../../../src/runtime/readmodels/orphanedModels.js';
import { checkpointName } from '../../../src/runtime/readmodels/projection.js';
import { followers } from '../../../src/runtime/supervision/followers.js';
import { until } from '../../support/assertions/until.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { leaseGate } from '../../support/faults/leaseGate.js';
import { EVERY_MS, KEYS, storedLog } from '../../support/fixtures/storedTree.js';
import { buy, installed, silent } from '../../support/fixtures/projecting.js';
import { REQUESTED, GIFTS_PROJECTION, inUse, NO_TOOLS } from '../../support/fixtures/rebuilding.js';
import { type TestInstallation, openInstallation, phone } from '../../support/service/installation.js';

const test = suite('parts that work by lease');
/** Runs out within a test, and not on a busy machine. */
const leaseMs = 900;

interface Part {
  /** Brings the part to where it holds its lease. */
  readonly begin: () => Promise<void>;
  /** What there is to do, caused during the fault. */
  readonly cause: () => Promise<void>;
  readonly done: () => Promise<void>;
}

async function survives(
  gate: ReturnType<typeof leaseGate>,
  { begin, cause, done }: Part,
  ttlMs = leaseMs,
): Promise<void> {
  await begin();
  await gate.gap(ttlMs, cause);
  await done();
  await begin();
  await gate.loss(cause);
  await done();
}

/** What each part does is caused and done once to begin with. */
const steady = (cause: Part['cause'], done: Part['done']): Part => ({
  begin: async () => {
    await cause();
    await done();
  },
  cause,
  done,
});

const withInstallation = (work: (installation: TestInstallation) => Promise<void>) => async (): Promise<void> => {
  const installation = await openInstallation();
  try {
    await work(installation);
  } finally {
    await installation.close();
  }
};

test(
  'process managers charge and notify after a gap and a loss of their lease',
  withInstallation(async (installation) => {
    await installation.work();
    const gate = leaseGate(installation.deps.records, `lease/${PROCESS_LEASE}`);
    installation.process({ records: gate.records, leaseMs });
    let bought = 0;
    const cause = async (): Promise<void> => {
      await installation.buy([phone(++bought)]);
    };
    const sent = async (): Promise<boolean> => (await installation.all('NotificationSent')).length === bought;
    await survives(
      gate,
      steady(cause, async () => installation.until(sent)),
    );
    assert.is((await installation.all('PaymentCharged')).length, bought);
  }),
);

test(
  'the scheduler sends what is due after a gap and a loss of its lease',
  withInstallation(async (installation) => {
    await installation.work();
    installation.process();
    const bought: string[] = [];
    const due: SchedulerOptions['due'] = {
      serves: async () => true,
      reached: async () => true,
      async *toSend() {
        yield bought.map((id) => ({ id }));
      },
      async *expiring() {},
    };
    const gate = leaseGate(installation.deps.records, 'lease/sending');
    const { events, contact, numberOf, logger } = installation.deps;
    const scheduler = startScheduler({
      events,
      records: gate.records,
      due,
      contact,
      numberOf,
      reminders: { days: [], hours: { from: 0, to: 1_440 } },
      now: () => new Date().toISOString(),
      holder: 'scheduler',
      logger,
      followers: followers({ logger }),
      leaseMs,
    });
    const cause = async (): Promise<void> => {
      const { transactionId } = await installation.buy([phone(bought.length)], { sendAt: '2026-01-01T00:00:00.000Z' });
      bought.push(transactionId);
    };
    const sent = async (): Promise<boolean> => (await installation.all('SendFinished')).length === bought.length;
    await survives(
      gate,
      steady(cause, async () => installation.until(sent)),
    );
    await scheduler.close();
  }),
);

const withRecords = (store: ReadStore, records: Records): ReadStore => ({ ...store, records });

test(
  'the projector folds what happens after a gap and a loss of its lease',
  installed(async ({ events, store, project }) => {
    const gate = leaseGate(store.records, 'lease/projector');
    await project({ store: withRecords(store, gate.records), leaseMs });
    let position = '';
    const cause = async (): Promise<void> => void ({ position } = await buy(events));
    const folded = async (): Promise<boolean> => store.reached(checkpointName(giftsProjection), position, 100);
    await survives(
      gate,
      steady(cause, async () => until(folded)),
    );
  }),
);

test(
  'an orphaned read model is kept up to date after a gap and a loss of the lease',
  installed(async ({ events, store, project, openStore }) => {
    const first = await project();
    const { position: begun } = await buy(events);
    await until(() => store.reached(checkpointName(giftsProjection), begun, 100));
    await first.close();
    const later = { ...GIFTS_PROJECTION, version: giftsProjection.version + 1 };
    const over = deferred<void>();
    const leader = await project({
      store: {
        ...store,
        async write(batches) {
          if (batches.some(({ collection }) => collection.version === later.version)) await over.promise;
          return store.write(batches);
        },
      },
      projections: [later, transactionsProjection],
      leaseMs: 20_000,
    });
    await until(() => leader.kept().length > 0);
    const gate = leaseGate(store.records, `lease/${keeperLease('gifts', giftsProjection.version)}`);
    await project({ store: withRecords(await openStore(), gate.records), leaseMs });
    let position = '';
    const cause = async (): Promise<void> => void ({ position } = await buy(events));
    const folded = async (): Promise<boolean> => store.reached(checkpointName(giftsProjection), position, 100);
    try {
      await survives(
        gate,
        steady(cause, async () => until(folded)),
      );
    } finally {
      over.resolve();
    }
  }),
);

test(
  'a rebuild is finished after a gap and a loss of its lease',
  installed(async ({ events, store, project, openStore }) => {
    await buy(events);
    await project({ leaseMs: 20_000 });
    await until(async () => (await store.active('gifts')) !== undefined);
    const gate = leaseGate(store.records, 'lease/rebuild/gifts');
    let target: number | undefined;
    /** What the builder stores. */
    let stored: Promise<void> | undefined;
    let isRequested = false;
    let goOn = (): void => undefined;
    const own = await openStore();
    const slow: ReadStore = {
      ...withRecords(own, gate.records),
      async write(batches) {
        isRequested = true;
        await stored;
        return own.write(batches);
      },
    };
    const rebuilder = startMaintenance({
      ...NO_TOOLS,
      events,
      store: slow,
      logger: silent,
      holder: 'builder',
      leaseMs,
      projections: [GIFTS_PROJECTION],
    });
    await survives(gate, {
      begin: async () => {
        stored = new Promise((resolve) => (goOn = resolve));
        isRequested = false;
        ({ target } = (await requestRebuild(store, GIFTS_PROJECTION, REQUESTED)).value);
        await until(() => isRequested);
      },
      cause: async () => goOn(),
      done: async () => inUse(store, target ?? 0),
    });
    await rebuilder.close();
  }),
);

test('the tree is signed on after a gap and a loss of its lease', async () => {
  const log = await storedLog();
  const gate = leaseGate(memoryRecords(Date.now), 'lease/tree');
  const { events, folder } = log;
  const keeper = startTreeKeeper({
    events,
    stored: events,
    folder,
    records: gate.records,
    holder: 'keeper',
    keys: KEYS,
    host: 'test',
    everyMs: EVERY_MS,
    witnesses: [],
    append: treeAppender(events),
    logger: silent,
    followers: followers({ logger: silent }),
  });
  let filled = 0;
  const cause = async (): Promise<void> => {
    await log.fill(100);
    filled += 100;
  };
  const signed = async (): Promise<boolean> => ((await lastSignedHead(events))?.size ?? 0) >= filled;
  await survives(
    gate,
    steady(cause, async () => until(signed)),
    LEASE_MS,
  );
  await keeper.close();
  await log.close();
});

test.run();

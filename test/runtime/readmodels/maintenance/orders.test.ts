import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deferred } from '../../../../src/lib/async/deferred.js';
import type { ReadStore } from '../../../../src/ports/readStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { giftsProjection } from '../../../../src/projections/gifts.js';
import { transactionsProjection } from '../../../../src/projections/transactions.js';
import type { Projection } from '../../../../src/runtime/readmodels/projection.js';
import { seizeLease } from '../../../../src/runtime/coordination/lease.js';
import {
  type MaintenanceOptions,
  startMaintenance,
} from '../../../../src/runtime/readmodels/maintenance/maintainer.js';
import {
  type Requested,
  failureOf,
  lastOrder,
  MaintenanceRefusedError,
  type Order,
  orderLease,
  orderNow,
  placeOrder,
  withdrawOrder,
} from '../../../../src/runtime/readmodels/maintenance/orders.js';
import { abortRebuild } from '../../../../src/runtime/readmodels/maintenance/rebuild.js';
import { putRebuild, rebuildOf } from '../../../../src/runtime/readmodels/rebuildRecord.js';
import { type FollowerHealth, followers } from '../../../../src/runtime/supervision/followers.js';
import { eventually, until } from '../../../support/assertions/until.js';
import { buy, installed, type Installation, settled, silent } from '../../../support/fixtures/projecting.js';
import { REQUESTED, depsFor, GIFTS_PROJECTION, NO_TOOLS } from '../../../support/fixtures/rebuilding.js';

const test = suite('orders of maintenance');
const REQUEST = { names: ['gifts'] };
const TARGET = giftsProjection.version * 1_000_000 + 1;
const LONG_AGO = new Date(Date.now() - 60_000).toISOString();

const place = async (
  { store }: Pick<Installation, 'store'>,
  requested: Requested = REQUESTED,
): Promise<Order<'rebuild'>> => placeOrder(store.records, 'rebuild', 'gifts', REQUEST, requested);

/** A process that carries orders out, until `check` ends as the check of the log. */
function process(
  { events }: Installation,
  store: ReadStore,
  check: (signal: AbortSignal) => Promise<void> = async () => undefined,
  {
    holder = 'a process',
    logger = silent,
    ...more
  }: { readonly holder?: string; readonly logger?: pino.Logger } & Partial<MaintenanceOptions> = {},
): { close(): Promise<void> } {
  const checkLog = async ({ signal, onProgress }: { signal: AbortSignal; onProgress(events: number): void }) => {
    onProgress(7);
    await check(signal);
  };
  const role = { ...depsFor(events, store, holder), logger, projections: [GIFTS_PROJECTION] };
  return startMaintenance({ ...role, ...NO_TOOLS, ...more, checkLog });
}

function listening(): { readonly lines: string[]; readonly logger: pino.Logger } {
  const lines: string[] = [];
  return { lines, logger: pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) }) };
}

async function ended({ store }: Pick<Installation, 'store'>): Promise<Order<'rebuild'>> {
  return eventually(async () => {
    const order = await lastOrder(store.records, 'rebuild', 'gifts');
    return order === undefined || order.state === 'running' ? undefined : order;
  });
}

/** A served read model, with nothing that projects it. */
async function left(installation: Installation): Promise<void> {
  await buy(installation.events);
  const projector = await installation.project();
  await settled(projector, installation.events);
  await projector.close();
}

const refusalOf = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.catch((thrown: unknown) => thrown);
  assert.instance(error, MaintenanceRefusedError);
  assert.is((error as MaintenanceRefusedError).refusal.busy, true);
  return (error as Error).message;
};

test(
  'a long order shows as running, then as done, in any process',
  installed(async (installation) => {
    await left(installation);
    const { records } = installation.store;
    const held = deferred<void>();
    const one = process(installation, installation.store, async () => held.promise);
    const placed = await place(installation);
    await until(async () => (await orderNow(records, placed))?.value.step?.step === 'check', 'its progress');
    const running = await lastOrder(records, 'rebuild', 'gifts');
    assert.equal([running?.state, running?.result, running?.failure], ['running', null, null]);
    assert.equal(await lastOrder(records, 'repair', 'gifts'), undefined);
    assert.equal(await lastOrder(records, 'rebuild', 'accounts'), undefined);
    assert.match(await refusalOf(place(installation)), /a rebuild of gifts is under way since .*, asked for by sue/);
    await until(
      async () => ((await lastOrder(records, 'rebuild', 'gifts'))?.told_at ?? '') > placed.told_at,
      'its renewal',
    );
    held.resolve();
    const { id, state, progress, result } = await ended(installation);
    assert.equal([id, state, progress], [placed.id, 'done', 1]);
    assert.equal(result, [{ name: 'gifts', target: TARGET, from: giftsProjection.version, resumed: false }]);
    await one.close();
  }),
);

test(
  'an expected failure says why; any other is logged, and only its requester is told its words',
  installed(async (installation) => {
    await left(installation);
    const { lines, logger } = listening();
    let failure: Error = new MaintenanceRefusedError('never built', { remedy: 'status' });
    const one = process(installation, installation.store, async () => Promise.reject(failure), { logger });
    await place(installation);
    const refused = await ended(installation);
    const logged = (): string[] => lines.filter((line) => line.includes('a task failed'));
    assert.equal([refused.state, refused.failure, refused.result, logged()], ['failed', 'never built', null, []]);
    const shown = failureOf(refused) as MaintenanceRefusedError;
    assert.equal([shown instanceof MaintenanceRefusedError, shown.refusal.remedy], [true, 'status']);
    for (failure of [new UnavailableError('secret'), new RangeError('secret')]) {
      await place(installation);
      const failed = await ended(installation);
      assert.equal([failed.state, failed.failure], ['failed', 'it failed: see the log of the service']);
      assert.is(failureOf(failed).message, 'secret');
      assert.is(failureOf(failed) instanceof UnavailableError, failure instanceof UnavailableError);
    }
    assert.is(logged().length, 2);
    assert.match(logged()[0] ?? '', /secret/);
    await one.close();
  }),
);

test(
  'another process goes on with an order whose process has ended, to the same outcome',
  installed(async (installation) => {
    await left(installation);
    const begun = deferred<void>();
    const dead = process(
      installation,
      installation.store,
      async (signal) =>
        new Promise((_, reject) => {
          begun.resolve();
          signal.addEventListener('abort', () => reject(new Error('cut off')));
        }),
    );
    const placed = await place(installation);
    await begun.promise;
    await dead.close();
    assert.is((await orderNow(installation.store.records, placed))?.value.state, 'running');
    const next = process(installation, installation.store, undefined, { holder: 'another' });
    const { id, state, result } = await ended(installation);
    assert.equal([id, state, result?.[0]?.target], [placed.id, 'done', TARGET]);
    await next.close();
  }),
);

test(
  'an order that no process carries out shows as interrupted, and can be requested again',
  installed(async (installation) => {
    const { records } = installation.store;
    const placed = await place(installation);
    await records.put('task/rebuild/gifts', { ...placed, told_at: LONG_AGO });
    assert.is((await lastOrder(records, 'rebuild', 'gifts'))?.state, 'interrupted');
    const again = await place(installation);
    assert.is.not(again.id, placed.id);
    await withdrawOrder(records, again);
    assert.is((await lastOrder(records, 'rebuild', 'gifts'))?.state, 'interrupted');
  }),
);

test(
  'a withdrawn order stops, and changes nothing',
  installed(async (installation) => {
    await left(installation);
    const stopped = deferred<void>();
    const one = process(installation, installation.store, async (signal) => {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      stopped.resolve();
      signal.throwIfAborted();
    });
    const placed = await place(installation);
    await until(async () => (await orderNow(installation.store.records, placed))?.value.step !== null, 'its begin');
    await withdrawOrder(installation.store.records, placed);
    await stopped.promise;
    await one.close();
    assert.is((await orderNow(installation.store.records, placed))?.value.state, 'interrupted');
    assert.is(await rebuildOf(installation.store, 'gifts'), undefined);
  }),
);

test(
  'the same person gets the order in progress once the process that requested it has left it',
  installed(async (installation) => {
    const { records } = installation.store;
    const requested = { ...REQUESTED, process: 'a command' };
    const placed = await place(installation, requested);
    const claim = { signal: new AbortController().signal, logger: silent };
    const lease = await seizeLease(records, orderLease(placed), { ...claim, holder: 'a command' });
    assert.match(await refusalOf(place(installation, requested)), /is under way/);
    await lease?.release();
    const other = await seizeLease(records, orderLease(placed), { ...claim, holder: 'a service' });
    assert.is((await place(installation, requested)).id, placed.id);
    assert.match(await refusalOf(place(installation, { ...requested, by: 'bob' })), /asked for by sue/);
    const sample = placeOrder(records, 'rebuild', 'gifts', { ...REQUEST, uncheckedLog: true }, requested);
    assert.match(await refusalOf(sample), /is under way/, 'another request');
    await other?.release();
  }),
);

test(
  'of two orders placed at the same moment one is refused',
  installed(async ({ store }) => {
    const racing = { ...store, records: { ...store.records, get: async () => undefined } };
    await store.records.put('task/rebuild/gifts', {});
    assert.match(await refusalOf(place({ store: racing })), /in this moment by somebody else/);
  }),
);

test(
  'an order goes on while the store does not answer, and its outcome is stored afterwards',
  installed(async (installation) => {
    await left(installation);
    const { lines, logger } = listening();
    let down = false;
    let checks = 0;
    const held = deferred<void>();
    const { records } = installation.store;
    const put: typeof records.put = async (key, ...rest) =>
      down && key.startsWith('task/') ? Promise.reject(new UnavailableError('down')) : records.put(key, ...rest);
    const shaky = { ...installation.store, records: { ...records, put } };
    const check = async (): Promise<void> => {
      checks += 1;
      await held.promise;
    };
    const one = process(installation, shaky, check, { logger });
    const placed = await place(installation);
    await until(() => checks === 1, 'its begin');
    down = true;
    await until(() => lines.some((line) => line.includes('how far an order is')), 'a renewal that fails');
    held.resolve();
    await until(() => checks > 1, 'another try');
    assert.is((await orderNow(records, placed))?.value.state, 'running');
    down = false;
    const { id, state, result } = await ended(installation);
    assert.equal([id, state, result?.[0]?.target], [placed.id, 'done', TARGET]);
    await one.close();
  }),
);

test(
  'a process lists orders and rebuilds only once one was requested',
  installed(async (installation) => {
    await left(installation);
    const { records } = installation.store;
    let [lists, polls] = [0, 0];
    const list: typeof records.list = async (...which) => {
      lists += 1;
      return records.list(...which);
    };
    const get: typeof records.get = async (key) => {
      if (key.startsWith('edition/')) polls += 1;
      return records.get(key);
    };
    const one = process(installation, { ...installation.store, records: { ...records, list, get } });
    await until(() => polls >= 3, 'three polls');
    assert.is(lists, 2, 'when it started');
    const { id } = await place(installation);
    assert.equal([(await ended(installation)).id, lists > 2], [id, true]);
    await one.close();
  }),
);

test(
  'an order whose requester was killed before it had raised the edition is carried out',
  installed(async (installation) => {
    await left(installation);
    const one = process(installation, installation.store, undefined, { lookMs: 1 });
    const { records } = installation.store;
    const put: typeof records.put = async (key, ...rest) =>
      key.startsWith('edition/') ? Promise.reject(new UnavailableError('killed')) : records.put(key, ...rest);
    const killed = { store: { ...installation.store, records: { ...records, put } } };
    assert.match(String(await place(killed).catch((error: unknown) => error)), /killed/);
    assert.is((await ended(installation)).state, 'done');
    await one.close();
  }),
);

test(
  'an aborted rebuild is dropped while another read model is built',
  installed(async (installation) => {
    await left(installation);
    const { store } = installation;
    const held = deferred<void>();
    const write: ReadStore['write'] = async (batches) => {
      if (batches.some(({ collection }) => collection.version === TARGET)) await held.promise;
      return store.write(batches);
    };
    const rebuild = { from: undefined, kind: 'rebuild', by: 'sue', at: REQUESTED.at } as const;
    await putRebuild(store, 'gifts', { ...rebuild, target: TARGET, state: 'building' }, 0);
    const projections = [GIFTS_PROJECTION, transactionsProjection as unknown as Projection];
    const one = process(installation, { ...store, write }, undefined, { projections });
    await until(async () => (await store.versions('gifts')).includes(TARGET), 'its build to be opened');
    const target = transactionsProjection.version * 1_000_000 + 1;
    await putRebuild(store, 'transactions', { ...rebuild, target, state: 'aborting' }, 0);
    await until(async () => (await rebuildOf(store, 'transactions')) === undefined, 'the aborted one to be dropped');
    assert.is((await rebuildOf(store, 'gifts'))?.value.state, 'building');
    held.resolve();
    await until(async () => (await rebuildOf(store, 'gifts'))?.value.state === 'ready', 'the other to be built');
    await one.close();
  }),
);

test(
  'a rebuild of another release is dropped once it is aborted, and built by no process of this one',
  installed(async (installation) => {
    await left(installation);
    const { store } = installation;
    const other = { name: 'gifts', version: (giftsProjection.version + 1) * 1_000_000 + 1, indexes: [] };
    await store.ensure(other);
    const rebuild = { target: other.version, from: undefined, kind: 'rebuild', by: 'sue', at: REQUESTED.at } as const;
    await putRebuild(store, 'gifts', { ...rebuild, state: 'building' }, 0);
    const one = process(installation, store, undefined, { lookMs: 50 });
    await sleep(1_500);
    assert.is((await rebuildOf(store, 'gifts'))?.value.state, 'building');
    assert.is(await store.checkpoint(`gifts@${other.version}`), undefined);
    await abortRebuild(store, 'gifts');
    await until(async () => (await rebuildOf(store, 'gifts')) === undefined, 'the end of the abort');
    assert.equal(await store.versions('gifts'), [giftsProjection.version]);
    await one.close();
  }),
);

test(
  'a process is well again once another process has taken over the work that it failed at',
  installed(async (installation) => {
    await left(installation);
    const { store } = installation;
    const { records } = store;
    const watched = followers({ logger: silent });
    const health = (): FollowerHealth | undefined => watched.health()[0];
    let away = true;
    const get: typeof records.get = async (key) => {
      if (away && key.startsWith('lease/order/')) throw new UnavailableError('it does not answer');
      return records.get(key);
    };
    const one = process(installation, { ...store, records: { ...records, get } }, undefined, { followers: watched });
    const placed = await place(installation);
    await until(() => health()?.since !== undefined, 'its trouble');
    const other = await seizeLease(records, orderLease(placed), {
      holder: 'another process',
      signal: new AbortController().signal,
      logger: silent,
    });
    away = false;
    await until(() => health()?.since === undefined, 'the end of its trouble');
    await other?.release();
    assert.is((await ended(installation)).state, 'done');
    await one.close();
  }),
);

/** A process whose second renewal is stored as `renew` does it. */
async function renewedBy(
  installation: Installation,
  renew: (put: () => Promise<number | undefined>) => Promise<number | undefined>,
): Promise<void> {
  await left(installation);
  const { records } = installation.store;
  let renewals = 0;
  const put: typeof records.put = async (key, value, options) => {
    const store = async (): Promise<number | undefined> => records.put(key, value, options);
    const isSecond = key.startsWith('task/') && (value as Order).state === 'running' && ++renewals === 2;
    return isSecond ? renew(store) : store();
  };
  const held = deferred<void>();
  const one = process(installation, { ...installation.store, records: { ...records, put } }, async () => held.promise);
  const placed = await place(installation);
  await until(() => renewals >= 2, 'the second renewal');
  held.resolve();
  const { id, state } = await ended(installation);
  assert.equal([id, state, renewals >= 2], [placed.id, 'done', true]);
  await one.close();
  assert.is((await orderNow(records, placed))?.value.state, 'done', 'it stays so');
}

test(
  "a renewal still under way at an order's end does not come after its result",
  installed(async (installation) =>
    renewedBy(installation, async (put) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      return put();
    }),
  ),
);

test(
  'a renewal stored without an answer does not stop the following ones',
  installed(async (installation) =>
    renewedBy(installation, async (put) => {
      await put();
      throw new UnavailableError('cut off', { outcomeUnknown: true });
    }),
  ),
);

test(
  'a process that was frozen does not overwrite an order placed since',
  installed(async (installation) => {
    await left(installation);
    const { lines, logger } = listening();
    const { records } = installation.store;
    const held = deferred<void>();
    const frozen = process(installation, installation.store, async () => held.promise, { logger });
    const first = await place(installation);
    await until(async () => (await orderNow(records, first))?.value.step !== null, 'its begin');
    await records.put('task/rebuild/gifts', { ...first, told_at: LONG_AGO });
    const second = await place(installation, { ...REQUESTED, by: 'aud' });
    await until(
      () => lines.some((line) => line.includes('another rebuild of gifts has taken its place')),
      'the first process to notice',
    );
    held.resolve();
    const { id, state, by } = await ended(installation);
    assert.equal([id, state, by], [second.id, 'done', 'aud']);
    await frozen.close();
  }),
);

test.run();

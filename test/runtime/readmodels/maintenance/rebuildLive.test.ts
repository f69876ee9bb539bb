import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { giftStream } from '../../../../src/domain/gift/events.js';
import type { ReadStore } from '../../../../src/ports/readStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { giftsProjection, type GiftDocument } from '../../../../src/projections/gifts.js';
import { collectionOf } from '../../../../src/runtime/readmodels/projection.js';
import { lastProgress } from '../../../../src/runtime/readmodels/maintenance/progress.js';
import { startMaintenance } from '../../../../src/runtime/readmodels/maintenance/maintainer.js';
import { MaintenanceRefusedError } from '../../../../src/runtime/readmodels/maintenance/orders.js';
import {
  abortRebuild,
  requestRebuild,
  requestRollback,
} from '../../../../src/runtime/readmodels/maintenance/rebuild.js';
import { asBuild } from '../../../../src/runtime/readmodels/buildNumbers.js';
import { previousBuildOf, putPreviousBuild } from '../../../../src/runtime/readmodels/previousBuilds.js';
import { putRebuild, rebuildOf } from '../../../../src/runtime/readmodels/rebuildRecord.js';
import type { Pace } from '../../../../src/runtime/coordination/pace.js';
import { finishSwap, swapIn } from '../../../../src/runtime/readmodels/swap.js';
import { openBuild } from '../../../../src/runtime/readmodels/runningBuild.js';
import { transactionsProjection } from '../../../../src/projections/transactions.js';
import {
  append,
  buy,
  contents,
  installed,
  LEASE_TEST_MS,
  newEvent,
  redeem,
  settled,
  silent,
} from '../../../support/fixtures/projecting.js';
import {
  abort,
  REQUESTED,
  buildCollection,
  depsFor,
  GIFTS_PROJECTION,
  inUse,
  led,
  NO_TOOLS,
  rebuild,
  restless,
} from '../../../support/fixtures/rebuilding.js';
import { DEADLINE_MS, until } from '../../../support/assertions/until.js';
import { untilStopped } from '../../../support/faults/untilStopped.js';

const test = suite('rebuilding beside what serves');
const GIFTS = collectionOf(giftsProjection);
/** The version of `gifts`; its first build is numbered from here. */
const V = giftsProjection.version;
const BUILD = V * 1_000_000;

/** A pace that waits for a word after each batch. */
function held(): { readonly pace: Pace; readonly waiting: boolean; go(): void } {
  let going: (() => void) | undefined;
  let waiting = false;
  const word = new Promise<void>((resolve) => (going = resolve));
  const pace: Pace = {
    polite: true,
    rest: async (events, signal) => {
      if (events === 0) return;
      waiting = true;
      await Promise.race([word, new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))]);
    },
  };
  return {
    pace,
    get waiting() {
      return waiting;
    },
    go: () => going?.(),
  };
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.instance(error, MaintenanceRefusedError);
  const {
    message,
    refusal: { remedy },
  } = error as MaintenanceRefusedError;
  return remedy === undefined ? message : `${message} [${remedy}]`;
}

test(
  'a rebuild is swapped in under load without gap, error or older documents',
  installed(async ({ events, store, project, openStore }) => {
    const bought = await buy(
      events,
      Array.from({ length: 2_000 }, () => ({})),
    );
    for (const gift of bought.gifts.slice(0, 50)) await redeem(events, gift);
    await settled(await project({ retireMs: 400 }), events);
    const before = await contents(store, GIFTS);
    const traffic = restless(events, [store, await openStore(), store], bought.gifts[0] ?? '');
    const { target, outcome, resumed } = await rebuild(depsFor(events, store));
    assert.equal([target, outcome, resumed], [BUILD + 1, 'ready', false]);
    await inUse(store, target);
    await sleep(600);
    const again = await rebuild(depsFor(events, store, 'another'));
    assert.is(again.target, BUILD + 2);
    await inUse(store, again.target);
    await sleep(1_300);
    const { claims, reads } = await traffic.stop();
    assert.ok(claims > 50 && reads > 50, `${claims} claims, ${reads} reads`);
    const after = await contents(store, buildCollection(again.target));
    for (const [id, document] of before) if (id !== bought.gifts[0]) assert.equal(after.get(id), document);
    assert.is(after.size, before.size);
    await until(
      async () => (await store.versions('gifts')).length === 2,
      'what is neither in use nor the previous build to be dropped',
    );
    assert.equal(await store.versions('gifts'), [target, again.target]);
    assert.is((await previousBuildOf(store, 'gifts'))?.number, target);
  }),
);

test(
  'a build that readers have left is kept up to date until they have noticed',
  installed(async ({ events, store, project }) => {
    const bought = await buy(events);
    await settled(await project({ retireMs: 3_000 }), events);
    const { target } = await rebuild(depsFor(events, store));
    await inUse(store, target);
    const { position } = await redeem(events, bought.gifts[0] ?? '');
    assert.ok(await store.reached(`gifts@${giftsProjection.version}`, position, DEADLINE_MS));
    assert.ok(await store.reached(`gifts@${target}`, position, DEADLINE_MS));
    await sleep(3_500);
    const later = await append(events, giftStream(bought.gifts[0] ?? ''), 'GiftClaimed', { user_id: 'u9' });
    assert.ok(await store.reached(`gifts@${target}`, later.position, DEADLINE_MS));
    assert.not(await store.reached(`gifts@${giftsProjection.version}`, later.position, 150), 'and no longer');
  }),
);

test(
  'a rebuild that was broken off goes on from its checkpoint',
  installed(async ({ events, store, project, openStore }) => {
    for (let n = 0; n < 8; n++)
      await buy(
        events,
        Array.from({ length: 40 }, () => ({})),
      );
    const bought = await buy(
      events,
      Array.from({ length: 300 }, () => ({})),
    );
    for (const gift of bought.gifts) await redeem(events, gift);
    await settled(await project(), events);
    const elsewhere = await openStore();
    let writes = 0;
    const dying: ReadStore = {
      ...elsewhere,
      async write(batches) {
        if (++writes > 5) throw new UnavailableError('killed');
        return elsewhere.write(batches);
      },
    };
    const slow: Pace = { polite: true, rest: async () => sleep(5) };
    const died = await rebuild(depsFor(events, dying, 'dying'), { pace: slow }).catch((error: unknown) => error);
    assert.instance(died, UnavailableError);
    const standing = await rebuildOf(store, 'gifts');
    assert.is(standing?.value.state, 'building');
    const checkpoint = await store.checkpoint(`gifts@${standing?.value.target}`);
    assert.ok(checkpoint, 'some of it is stored');
    const from: (string | undefined)[] = [];
    const watched: typeof events.follow = (after, ...rest) => {
      from.push(after);
      return events.follow(after, ...rest);
    };
    const { target, resumed, outcome } = await rebuild(depsFor({ ...events, follow: watched }, store));
    assert.equal([target, resumed, outcome, from[0]], [standing?.value.target, true, 'ready', checkpoint]);
    await inUse(store, target);
    assert.equal(await contents(store, buildCollection(target)), await contents(store, GIFTS));
  }),
);

test(
  "a second rebuild is refused with the first one's holder; an aborted one leaves nothing",
  installed(async ({ events, store, project }) => {
    const bought = await buy(
      events,
      Array.from({ length: 250 }, () => ({})),
    );
    await Promise.all(bought.gifts.map(async (gift) => redeem(events, gift)));
    await settled(await project(), events);
    const gate = held();
    const first = rebuild(depsFor(events, store, 'cli:ann@till (process 7)'), { pace: gate.pace });
    await until(() => gate.waiting, 'the first to be in the middle');
    assert.match(
      await refusal(rebuild(depsFor(events, store, 'second'))),
      /being rebuilt by cli:ann@till \(process 7\): wait for it, or abort it \[abort\]/,
    );
    assert.match(await refusal(requestRollback(store, GIFTS_PROJECTION, REQUESTED)), /is being rebuilt, as sue asked/);
    const target = (await rebuildOf(store, 'gifts'))?.value.target ?? 0;
    assert.is(await abort(depsFor(events, store, 'third')), 'over');
    assert.is((await first).outcome, 'aborted');
    assert.is(await rebuildOf(store, 'gifts'), undefined);
    assert.equal(await store.versions('gifts'), [V]);
    assert.match(await refusal(abort(depsFor(events, store))), /nothing to abort/);
    const next = await rebuild(depsFor(events, store));
    assert.is(next.target, target + 1, 'a number is never had twice');
    await inUse(store, next.target);
  }),
);

test(
  'the leading process drops a ready rebuild that is aborted',
  installed(async ({ events, store, project }) => {
    await buy(
      events,
      Array.from({ length: 20 }, () => ({})),
    );
    const first = await project();
    await settled(first, events);
    await first.close();
    const { target, outcome } = await rebuild(depsFor(events, store));
    assert.is(outcome, 'ready');
    const deps = depsFor(events, store);
    assert.is(await abort(deps), 'leaving');
    assert.is(await abort(deps), 'leaving', 'again');
    await led(deps, async () => until(async () => (await rebuildOf(store, 'gifts')) === undefined));
    assert.equal([await store.active('gifts'), await store.versions('gifts')], [V, [V]]);
    assert.is(await store.checkpoint(`gifts@${target}`), undefined);
  }),
);

test(
  'a rebuild that is aborted while it is taken over is given up',
  installed(async ({ events, store, project }) => {
    await buy(
      events,
      Array.from({ length: 20 }, () => ({})),
    );
    const first = await project();
    await settled(first, events);
    await first.close();
    const { target } = await rebuild(depsFor(events, store));
    await buy(events);
    let release: (() => void) | undefined;
    const word = new Promise<void>((resolve) => (release = resolve));
    let requested = false;
    const slowly: ReadStore = {
      ...store,
      async write(batches) {
        if (batches.some(({ collection }) => collection.version === target)) {
          requested = true;
          await word;
        }
        return store.write(batches);
      },
    };
    await project({ store: slowly });
    await until(() => requested, 'the projector to catch it up');
    assert.is(await abort(depsFor(events, store)), 'leaving');
    await sleep(500);
    release?.();
    await until(async () => (await rebuildOf(store, 'gifts')) === undefined, 'it to be given up');
    assert.equal([await store.active('gifts'), await store.versions('gifts')], [V, [V]]);
    const { position } = await buy(events);
    assert.ok(await store.reached(`gifts@${giftsProjection.version}`, position, DEADLINE_MS), 'all else goes on');
  }),
);

test(
  'a rollback brings the previous build up to date first, there and back',
  installed(async ({ events, store, project, openStore }) => {
    const bought = await buy(
      events,
      Array.from({ length: 200 }, () => ({})),
    );
    await settled(await project({ retireMs: 100 }), events);
    assert.match(await refusal(requestRollback(store, GIFTS_PROJECTION, REQUESTED)), /no previous build/);
    const { target } = await rebuild(depsFor(events, store));
    await inUse(store, target);
    await sleep(300);
    for (const gift of bought.gifts.slice(0, 30)) await redeem(events, gift);
    const traffic = restless(events, [store, await openStore()], bought.gifts[0] ?? '');
    assert.is(await requestRollback(store, GIFTS_PROJECTION, REQUESTED), V);
    assert.match(await refusal(requestRebuild(store, GIFTS_PROJECTION, REQUESTED)), /being rolled back, as sue asked/);
    await inUse(store, V);
    // Before readers have noticed: the build that they have just left is in use again.
    assert.is(await requestRollback(store, GIFTS_PROJECTION, REQUESTED), target);
    await inUse(store, target);
    await sleep(200);
    assert.is(await requestRollback(store, GIFTS_PROJECTION, REQUESTED), V);
    await inUse(store, V);
    await sleep(1_200);
    await traffic.stop();
    assert.is([...(await contents(store, GIFTS)).values()].filter(({ body }) => 'redemption' in body).length, 30);
  }),
);

test(
  'a rollback to a build whose time is over is refused, though it is not dropped yet',
  installed(async ({ events, store, project }) => {
    await settled(await project(), events);
    const { target } = await rebuild(depsFor(events, store));
    await inUse(store, target);
    await putPreviousBuild(store, 'gifts', { number: V, until: Date.now() - 1 });
    assert.match(await refusal(requestRollback(store, GIFTS_PROJECTION, REQUESTED)), /no previous build is kept any/);
    assert.ok((await store.versions('gifts')).includes(V));
  }),
);

test(
  'a rollback is refused while an earlier one is being aborted, and made after that',
  installed(async ({ events, store, project }) => {
    const first = await project();
    await settled(first, events);
    const { target } = await rebuild(depsFor(events, store));
    await inUse(store, target);
    await first.close();
    assert.is(await requestRollback(store, GIFTS_PROJECTION, REQUESTED), V);
    assert.is(await abortRebuild(store, 'gifts'), V);
    assert.match(await refusal(requestRollback(store, GIFTS_PROJECTION, REQUESTED)), /is being aborted/);
    await project();
    await until(async () => (await rebuildOf(store, 'gifts')) === undefined, 'the end of the abort');
    assert.is(await requestRollback(store, GIFTS_PROJECTION, REQUESTED), V);
    await inUse(store, V);
  }),
);

test(
  'a rebuild or rollback that can not be made is refused',
  installed(async ({ events, store, project }) => {
    await settled(await project(), events);
    const version2 = { ...GIFTS_PROJECTION, version: V + 1 };
    assert.match(
      await refusal(requestRebuild(store, version2, REQUESTED)),
      new RegExp(`version ${V} is in use, this program makes version ${V + 1}`),
    );
    const { target } = await rebuild(depsFor(events, store));
    await inUse(store, target);
    assert.match(
      await refusal(requestRollback(store, version2, REQUESTED)),
      new RegExp(`the previous build is version ${V}, this program makes version ${V + 1}`),
    );
    await putPreviousBuild(store, 'gifts', { number: 77, until: Date.now() + 1_000_000 });
    assert.match(await refusal(requestRollback(store, GIFTS_PROJECTION, REQUESTED)), /no previous build/);
    await store.ensure({ ...GIFTS, version: V + 1 });
    await putPreviousBuild(store, 'gifts', { number: V + 1, until: Date.now() + 1_000_000 });
    assert.match(
      await refusal(requestRollback(store, GIFTS_PROJECTION, REQUESTED)),
      new RegExp(`the previous build is version ${V + 1}, this program makes version ${V}`),
    );
  }),
);

test(
  'a rebuild that was half aborted or started by other code is cleared away',
  installed(async ({ events, store, project }) => {
    await settled(await project(), events);
    await store.ensure(buildCollection((V + 1) * 1_000_000 + 9));
    await putRebuild(
      store,
      'gifts',
      { ...REQUESTED, target: (V + 1) * 1_000_000 + 9, from: V, kind: 'rebuild', state: 'building' },
      0,
    );
    const { target } = await rebuild(depsFor(events, store));
    assert.is(target, BUILD + 1);
    await inUse(store, target);
    const marked = {
      ...REQUESTED,
      target: BUILD + 50,
      from: target,
      kind: 'rebuild',
      state: 'aborting',
    } as const;
    await store.ensure(buildCollection(marked.target));
    await putRebuild(store, 'gifts', marked, 0);
    const next = await rebuild(depsFor(events, store));
    assert.is(next.target, BUILD + 2);
    await inUse(store, next.target);
    await putRebuild(store, 'gifts', { ...marked, target: next.target, from: target, state: 'swapping' }, 0);
    await inUse(store, next.target);
    assert.is(
      (await previousBuildOf(store, 'gifts'))?.number,
      target,
      'a swap that was broken off after the pointer is finished',
    );
  }),
);

test(
  'a rebuild without a builder is built by one process, and goes on in another',
  installed(async ({ events, store, project }) => {
    await buy(
      events,
      Array.from({ length: 100 }, () => ({})),
    );
    await settled(await project(), events);
    const { value } = await requestRebuild(store, GIFTS_PROJECTION, REQUESTED);
    const failing: ReadStore = { ...store, write: async () => Promise.reject(new UnavailableError('down')) };
    const dead = startMaintenance({
      ...depsFor(events, failing, 'dead'),
      projections: [GIFTS_PROJECTION],
      ...NO_TOOLS,
    });
    await sleep(100);
    await dead.close();
    assert.is(await store.active('gifts'), V);
    const rebuilder = startMaintenance({
      ...depsFor(events, store, 'alive'),
      projections: [GIFTS_PROJECTION],
      ...NO_TOOLS,
    });
    try {
      await inUse(store, value.target);
      assert.is((await lastProgress(store, 'gifts', value.target))?.progress.events, 1);
    } finally {
      await rebuilder.close();
    }
  }),
);

test(
  'a rebuild works without a service, and the next leader goes on with it',
  installed(async ({ events, store, project }) => {
    const bought = await buy(
      events,
      Array.from({ length: 50 }, () => ({})),
    );
    const before = await project();
    await settled(before, events);
    await before.close();
    const deps = { ...depsFor(events, store), leaseMs: LEASE_TEST_MS };
    const { target } = await rebuild(deps);
    await led(deps, async () => until(async () => (await store.active('gifts')) === target));
    const next = await project();
    await settled(next, events);
    const { position } = await redeem(events, bought.gifts[0] ?? '');
    assert.ok(await store.reached(`gifts@${target}`, position, DEADLINE_MS));
    assert.equal(
      next.kept().map(({ projection, version, active }) => [projection, version, active]),
      [
        ['gifts', target, true],
        ['transactions', transactionsProjection.version, true],
      ],
    );
  }),
);

test(
  'a build that readers left while it was behind stays out of use once it has caught up',
  installed(async ({ events, store, project }) => {
    const {
      gifts: [gift = ''],
    } = await buy(events);
    const first = await project();
    await settled(first, events);
    await first.close();
    await events.append(
      giftStream(gift),
      Array.from({ length: 4_000 }, (_, n) => newEvent('GiftClaimed', { user_id: `u${n}` })),
      'any',
    );
    // The others stand at the log's end, so that it catches up beside them.
    const others = await project({ projections: [transactionsProjection] });
    await settled(others, events);
    await others.close();
    const { target, outcome } = await rebuild(depsFor(events, store));
    assert.is(outcome, 'ready');
    const projector = await project();
    await inUse(store, target);
    await settled(projector, events);
    await sleep(2 * LEASE_TEST_MS);
    assert.is(await store.active('gifts'), target);
    await append(events, giftStream(gift), 'GiftClaimed', { user_id: 'last' });
    await settled(projector, events);
    assert.is((await store.get<GiftDocument>(buildCollection(target), gift))?.body.claimed_by, 'last');
  }),
);

test(
  'a rebuild that can not be taken over is tried again, and disturbs nothing else',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const first = await project();
    await settled(first, events);
    await first.close();
    const { target } = await rebuild(depsFor(events, store));
    let failures = 0;
    const refusing: ReadStore = {
      ...store,
      ensure: async (collection, options) => {
        if (collection.version === target && failures++ === 0) throw new Error('no room for an index');
        return store.ensure(collection, options);
      },
    };
    await project({ store: refusing, logger: silent });
    const { position } = await buy(events);
    assert.ok(await store.reached(`gifts@${giftsProjection.version}`, position, DEADLINE_MS));
    await until(() => failures > 0);
    await inUse(store, target);
  }),
);

test(
  'a rebuild that fails to catch up is taken over again while others are written slowly',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const first = await project();
    await settled(first, events);
    await first.close();
    const { target } = await rebuild(depsFor(events, store));
    await buy(events);
    let failures = 0;
    const refusing: ReadStore = {
      ...store,
      async write(batches) {
        if (batches.some(({ collection }) => collection.version === target) && failures++ === 0)
          throw new UnavailableError('no answer');
        await store.write(batches);
        // Longer than the time between two looks for rebuilds.
        if (failures === 1) await sleep(1_000);
      },
    };
    await project({ store: refusing, logger: silent });
    await until(() => failures > 0);
    const traffic = untilStopped([
      async (on) => {
        for (; on(); await sleep(20)) await buy(events);
      },
    ]);
    await inUse(store, target);
    await traffic.stop();
    const { position } = await buy(events);
    assert.ok(await store.reached(`gifts@${target}`, position, DEADLINE_MS));
  }),
);

test(
  'a rebuild asked for right after an abort is not taken for the aborted one',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const first = await project();
    await settled(first, events);
    await first.close();
    const { target } = await rebuild(depsFor(events, store));
    assert.is(await abort(depsFor(events, store)), 'leaving');
    let next = 0;
    const meanwhile: ReadStore = {
      ...store,
      async drop(collection) {
        if (collection.version === target && next === 0)
          next = (await requestRebuild(store, GIFTS_PROJECTION, REQUESTED)).value.target;
        return store.drop(collection);
      },
    };
    await project({ store: meanwhile });
    await until(() => next !== 0, 'the leader to drop the aborted one');
    await sleep(300);
    const standing = (await rebuildOf(store, 'gifts'))?.value;
    assert.equal([standing?.target, standing?.state], [next, 'building']);
    await finishSwap(store, 'gifts', { ...REQUESTED, target, from: V, kind: 'rebuild', state: 'swapping' });
    assert.is((await rebuildOf(store, 'gifts'))?.value.target, next, 'nor when another swap is finished');
    assert.is(await previousBuildOf(store, 'gifts'), undefined);
  }),
);

test(
  'a swap that an earlier leader ends late is taken over as it is',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const first = await project();
    await settled(first, events);
    await first.close();
    const { target } = await rebuild(depsFor(events, store));
    const [serving, joining] = [
      await openBuild(store, GIFTS_PROJECTION),
      await openBuild(store, asBuild(GIFTS_PROJECTION, target)),
    ];
    // Of another read model, under the number of the one in use.
    const other = await openBuild(store, asBuild(transactionsProjection, V));
    joining.state = 'ready';
    joining.requested = true;
    const swap = async (): ReturnType<typeof swapIn> =>
      swapIn(joining, [other, serving, joining], V, { store, lease: { held: true }, logger: silent });
    await store.records.delete('rebuild/gifts');
    assert.equal(await swap(), { refused: true }, 'not wanted, and not in use');
    await store.activate('gifts', target);
    assert.is((await swap()).left, serving);
    assert.equal(
      [serving.state, joining.state, joining.caughtUp, joining.requested],
      ['retiring', 'serving', true, false],
    );
  }),
);

test(
  "builds a new release's read model slowly during requests, the very first at full speed",
  installed(async ({ events, store, project }) => {
    for (let n = 0; n < 450; n++) await buy(events);
    await store.records.put('serving/api', { requests: 100, delayMs: 0 }, { expiresAt: Date.now() + 600_000 });
    const sizes = new Map<string, number>();
    const write: ReadStore['write'] = async (batches) => {
      for (const {
        collection: { name },
        documents,
      } of batches)
        sizes.set(name, Math.max(sizes.get(name) ?? 0, documents.length));
      return store.write(batches);
    };
    const watched = { ...store, write };
    const first = await project({ store: watched, projections: [giftsProjection] });
    await settled(first, events);
    await first.close();
    await settled(await project({ store: watched }), events);
    assert.is(sizes.get('gifts'), 450);
    assert.ok((sizes.get('transactions') ?? 0) <= 200, String(sizes.get('transactions')));
  }),
);

test(
  'the build in use is kept up to date, whichever process swapped it in',
  installed(async ({ events, store, project }) => {
    const bought = await buy(events);
    const first = await project();
    await settled(first, events);
    await first.close();
    const { target } = await rebuild(depsFor(events, store));
    await store.records.delete('rebuild/gifts');
    const next = await project();
    await settled(next, events);
    await store.ensure(buildCollection(target));
    await store.activate('gifts', target);
    const { position } = await redeem(events, bought.gifts[0] ?? '');
    assert.ok(await store.reached(`gifts@${target}`, position, DEADLINE_MS));
    await until(() => next.kept().some(({ version, active }) => version === target && active), 'the projector to know');
  }),
);

test.run();

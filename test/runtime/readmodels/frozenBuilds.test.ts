import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PERSONAL_READ_MODELS } from '../../../src/projections/index.js';
import { pause } from '../../../src/lib/async/pause.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { awaitNoneFrozen, dropFrozenBuilds } from '../../../src/runtime/readmodels/frozenBuilds.js';
import { requestRollback } from '../../../src/runtime/readmodels/maintenance/rebuild.js';
import { ownBuild } from '../../../src/runtime/readmodels/ownBuild.js';
import { previousBuildOf, putPreviousBuild } from '../../../src/runtime/readmodels/previousBuilds.js';
import { putRebuild } from '../../../src/runtime/readmodels/rebuildRecord.js';
import { accountsProjection } from '../../../src/projections/accounts.js';
import { dropUnused } from '../../../src/runtime/readmodels/unusedBuilds.js';
import { openBuild, type RunningBuild } from '../../../src/runtime/readmodels/runningBuild.js';
import { until } from '../../support/assertions/until.js';
import { silent } from '../../support/fixtures/projecting.js';
import { rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { at, batch, doc } from '../../support/engines/readStoreDocuments.js';
import { embeddedFixture } from '../../support/engines/readStoreEmbedded.js';

const test = suite('frozen builds');

const NUMBER = '+447700900001';
const projection = accountsProjection;
/** Rebuilds of version 1, and of version 2. */
const [FIRST, SERVING, TARGET, NEXT_VERSION, NEXT_SERVING] = [1, 1_000_002, 1_000_003, 2, 2_000_001];

async function withStore(
  work: (store: ReadStore, textsInFiles: (texts: string[]) => readonly string[]) => Promise<void>,
): Promise<void> {
  const fixture = await embeddedFixture();
  try {
    await work(fixture.store, (texts) => fixture.textsInFiles?.(texts) ?? []);
  } finally {
    await fixture.destroy();
  }
}

async function build(store: ReadStore, version: number, reached: number): Promise<void> {
  const collection = { name: 'accounts', version, indexes: [], personal: true } as const;
  await store.ensure(collection);
  await store.write([batch(collection, [doc('user-ada', 1, { phone_number: NUMBER, note: 'x'.repeat(30) })], reached)]);
}

test('names the read models that hold personal data in the clear', () => {
  assert.equal(PERSONAL_READ_MODELS, ['accounts']);
});

/** A leading process that folds these builds, and looks for requests without end. */
async function underLeader<T>(store: ReadStore, folded: readonly number[], work: () => Promise<T>): Promise<T> {
  const over = new AbortController();
  const builds: RunningBuild[] = [];
  for (const version of folded) builds.push(await openBuild(store, { ...projection, version }));
  const inUse = new Map([['accounts', await store.active('accounts')]]);
  const leading = (async () => {
    for (; !over.signal.aborted; await pause(5, over.signal))
      await dropFrozenBuilds({ store, builds, inUse, lease: { held: true }, logger: silent });
  })();
  try {
    return await work();
  } finally {
    over.abort();
    await leading;
  }
}

const frozen = async (store: ReadStore, waitMs = 300): Promise<string[]> =>
  awaitNoneFrozen(store, ['accounts'], at(9), waitMs);

test('names the read models that hold personal data in the clear', () => {
  assert.equal(PERSONAL_READ_MODELS, ['accounts']);
});

test('drops a build that is kept for a rollback and does not follow the log', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 3);
    await build(store, SERVING, 9);
    await store.activate('accounts', SERVING);
    await putPreviousBuild(store, 'accounts', { number: FIRST, until: Date.now() + 60_000 });
    assert.equal(await underLeader(store, [SERVING], async () => frozen(store)), []);
    assert.equal(await store.versions('accounts'), [SERVING]);
    assert.is(await store.checkpoint('accounts@1'), undefined);
    const requested = { by: 'sue', at: '2026-01-01T00:00:00.000Z', attended: false };
    assert.match((await rejectionOf(requestRollback(store, projection, requested))).message, /no previous build/);
    assert.equal(await frozen(store), [], 'a repeat needs no leader');
  });
});

test('keeps the build of the release before, when a frozen rollback build is dropped', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 9);
    await build(store, NEXT_VERSION, 3);
    await build(store, NEXT_SERVING, 9);
    await store.activate('accounts', NEXT_SERVING);
    const until = Date.now() + 60_000;
    await putPreviousBuild(store, 'accounts', { number: NEXT_VERSION, until, release: { number: FIRST, until } });
    assert.equal(await underLeader(store, [NEXT_SERVING, FIRST], async () => frozen(store)), []);
    assert.equal(await store.versions('accounts'), [FIRST, NEXT_SERVING]);
    assert.equal(await previousBuildOf(store, 'accounts'), { number: FIRST, until });
  });
});

test('drops the build of a later release that an earlier one has replaced, and never uses its number again', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 9);
    await build(store, NEXT_VERSION, 3);
    await store.activate('accounts', FIRST);
    await putPreviousBuild(store, 'accounts', { number: NEXT_VERSION, until: Date.now() + 60_000 });
    assert.equal(await underLeader(store, [FIRST], async () => frozen(store)), []);
    assert.equal(await store.versions('accounts'), [FIRST]);
    const later = { ...projection, version: NEXT_VERSION };
    assert.is((await ownBuild(store, later, FIRST)).version, NEXT_SERVING);
    assert.is((await ownBuild(store, projection, FIRST)).version, FIRST);
  });
});

test('leaves builds that the leading process folds, and one that another process builds', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 2);
    await build(store, SERVING, 9);
    await build(store, TARGET, 2);
    await build(store, NEXT_VERSION, 1);
    await store.activate('accounts', SERVING);
    const rebuild = { target: TARGET, from: SERVING, kind: 'rebuild', state: 'building', attended: false } as const;
    await putRebuild(store, 'accounts', { ...rebuild, by: 'sue', at: '2026-01-01T00:00:00.000Z' }, 0);
    const behind = await underLeader(store, [FIRST, SERVING, NEXT_VERSION], async () => frozen(store));
    assert.equal(behind, ['accounts@1', 'accounts@2', 'accounts@1000003']);
    assert.is((await store.versions('accounts')).length, 4);
  });
});

test('drops nothing while the build in use does not follow, and says so', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 3);
    await build(store, SERVING, 8);
    await store.activate('accounts', SERVING);
    await underLeader(store, [SERVING], async () => {
      assert.equal(await frozen(store), ['accounts@1', 'accounts@1000002']);
      assert.is((await store.versions('accounts')).length, 2);
      await build(store, SERVING, 9);
      await until(async () => (await store.versions('accounts')).length === 1, 'the frozen build to be dropped');
    });
    assert.equal(await store.records.list('frozen/'), [], 'a request that is carried out is deleted');
  });
});

test('drops nothing where no process leads, or its lease is lost', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 3);
    await build(store, SERVING, 9);
    await store.activate('accounts', SERVING);
    assert.equal(await frozen(store), ['accounts@1']);
    const inUse = new Map([['accounts', SERVING]]);
    await dropFrozenBuilds({ store, builds: [], inUse, lease: { held: false }, logger: silent });
    assert.equal(await store.versions('accounts'), [FIRST, SERVING]);
    await dropFrozenBuilds({ store, builds: [], inUse: new Map(), lease: { held: true }, logger: silent });
    assert.equal(await store.versions('accounts'), [FIRST, SERVING], 'a leader without this read model drops nothing');
  });
});

test('a build that is opened, or requested, while another one is dropped is not dropped as unused', async () => {
  await withStore(async (store) => {
    for (const version of [FIRST, NEXT_VERSION, SERVING, TARGET, NEXT_SERVING]) await build(store, version, 9);
    await store.activate('accounts', NEXT_SERVING);
    const builds: RunningBuild[] = [await openBuild(store, { ...projection, version: NEXT_SERVING })];
    const drop: ReadStore['drop'] = async (collection) => {
      await store.drop(collection);
      if (collection.version !== FIRST) return;
      builds.push(await openBuild(store, { ...projection, version: NEXT_VERSION }));
      const rollback = { target: TARGET, from: NEXT_SERVING, kind: 'rollback', state: 'ready', by: 'sue' } as const;
      await putRebuild(store, 'accounts', { ...rollback, at: '2026-01-01T00:00:00.000Z' }, 0);
    };
    await dropUnused('accounts', builds, { store: { ...store, drop }, lease: { held: true }, logger: silent });
    assert.equal(await store.versions('accounts'), [NEXT_VERSION, TARGET, NEXT_SERVING]);
  });
});

test('waits for a build that is about to get there', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 3);
    await build(store, SERVING, 8);
    await store.activate('accounts', SERVING);
    const requested = frozen(store, 5_000);
    await build(store, SERVING, 9);
    await build(store, FIRST, 9);
    assert.equal(await requested, []);
  });
});

test('a dropped build is in no file once the store is scrubbed', async () => {
  await withStore(async (store, textsInFiles) => {
    const texts = ['a text of the frozen build alone'];
    const collection = { name: 'accounts', version: FIRST, indexes: [], personal: true } as const;
    await store.write([batch(collection, [doc('user-ada', 1, { name: texts[0] })], 1)]);
    await build(store, SERVING, 9);
    await store.activate('accounts', SERVING);
    assert.equal(textsInFiles(texts), texts);
    assert.equal(await underLeader(store, [SERVING], async () => frozen(store)), []);
    await store.scrub();
    assert.equal(textsInFiles(texts), []);
  });
});

test.run();

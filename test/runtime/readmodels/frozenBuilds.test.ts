import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PERSONAL_READ_MODELS } from '../../../src/projections/index.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { dropFrozenBuilds } from '../../../src/runtime/readmodels/frozenBuilds.js';
import { requestRollback } from '../../../src/runtime/readmodels/maintenance/rebuild.js';
import { putPreviousBuild } from '../../../src/runtime/readmodels/previousBuilds.js';
import { putRebuild } from '../../../src/runtime/readmodels/rebuildRecord.js';
import { accountsProjection } from '../../../src/projections/accounts.js';
import { rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { at, batch, doc } from '../../support/engines/readStoreDocuments.js';
import { embeddedFixture } from '../../support/engines/readStoreEmbedded.js';

const test = suite('frozen builds');

const NUMBER = '+447700900001';
const projection = accountsProjection;
/** Rebuilds of version 1: in use is the second one. */
const [FIRST, SERVING, TARGET, NEXT_VERSION] = [1, 1_000_002, 1_000_003, 2];

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

test('drops a build that is kept for a rollback and does not follow the log', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 3);
    await build(store, SERVING, 9);
    await store.activate('accounts', SERVING);
    await putPreviousBuild(store, 'accounts', { number: FIRST, until: Date.now() + 60_000 });
    assert.equal(await dropFrozenBuilds(store, ['accounts'], at(9), 50), { dropped: ['accounts@1'], behind: [] });
    assert.equal(await store.versions('accounts'), [SERVING]);
    assert.is(await store.checkpoint('accounts@1'), undefined);
    const requested = { by: 'sue', at: '2026-01-01T00:00:00.000Z', attended: false };
    assert.match((await rejectionOf(requestRollback(store, projection, requested))).message, /was dropped/);
    assert.equal(await dropFrozenBuilds(store, ['accounts'], at(9), 50), { dropped: [], behind: [] });
  });
});

test('leaves builds that follow, that are being built, and those of a later version', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 9);
    await build(store, SERVING, 9);
    await build(store, TARGET, 2);
    await build(store, NEXT_VERSION, 1);
    await store.activate('accounts', SERVING);
    const rebuild = { target: TARGET, from: SERVING, kind: 'rebuild', state: 'building', attended: false } as const;
    await putRebuild(store, 'accounts', { ...rebuild, by: 'sue', at: '2026-01-01T00:00:00.000Z' }, 0);
    assert.equal(await dropFrozenBuilds(store, ['accounts'], at(9), 50), {
      dropped: [],
      behind: ['accounts@2', 'accounts@1000003'],
    });
    assert.is((await store.versions('accounts')).length, 4);
  });
});

test('drops nothing while the build in use does not follow, and says so', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 3);
    await build(store, SERVING, 8);
    await store.activate('accounts', SERVING);
    const found = await dropFrozenBuilds(store, ['accounts'], at(9), 50);
    assert.equal(found, { dropped: [], behind: ['accounts@1', 'accounts@1000002'] });
    assert.is((await store.versions('accounts')).length, 2);
  });
});

test('waits for a build that is about to get there', async () => {
  await withStore(async (store) => {
    await build(store, FIRST, 3);
    await build(store, SERVING, 8);
    await store.activate('accounts', SERVING);
    const requested = dropFrozenBuilds(store, ['accounts'], at(9), 5_000);
    await build(store, SERVING, 9);
    await build(store, FIRST, 9);
    assert.equal(await requested, { dropped: [], behind: [] });
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
    await dropFrozenBuilds(store, ['accounts'], at(9), 50);
    await store.scrub();
    assert.equal(textsInFiles(texts), []);
  });
});

test.run();

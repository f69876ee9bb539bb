import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ReadStore } from '../../../../src/ports/readStore.js';
import { at, batch, doc, filled, newCollection, projectionOf } from '../../../support/engines/readStoreDocuments.js';
import { embeddedFixture, newFolder } from '../../../support/engines/readStoreEmbedded.js';
import { numberOf, OTHERS, startReadStore } from '../../../support/engines/readStoreProcess.js';
import { FOR_EVER_MS } from '../../../support/assertions/until.js';

const test = suite('Embedded read store: processes and the event loop');

async function inFolder(run: (dir: string, store: ReadStore) => Promise<void>): Promise<void> {
  const dir = await newFolder();
  const { store, destroy } = await embeddedFixture(dir);
  try {
    await run(dir, store);
  } finally {
    await destroy();
  }
}

/** Counts turns of the event loop while `work` is under way. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let done = false;
  const finished = work.finally(() => {
    done = true;
  });
  for (; !done; turns++) await turn();
  await finished;
  return turns;
}

test('notices what another process writes', () =>
  inFolder(async (dir, store) => {
    const other = await startReadStore(dir);
    try {
      for (let n = 1; n <= 5; n++) {
        const reached = store.reached(projectionOf(OTHERS), at(n), FOR_EVER_MS);
        await sleep(20);
        await other.write(n);
        assert.ok(await reached);
        assert.equal((await store.get(OTHERS, `d${n}`))?.body, { n });
        assert.is(await store.checkpoint(projectionOf(OTHERS)), at(n));
      }
    } finally {
      await other.kill();
    }
  }));

test('keeps documents in memory while other collections change, and rereads changed ones', () =>
  inFolder(async (dir, store) => {
    const other = await startReadStore(dir);
    try {
      await other.write(1);
      await store.get(OTHERS, 'd1');
      const known = await store.get(OTHERS, 'd1');
      await turn();
      await store.records.put('lease', { holder: 'me' });
      await store.write([batch(newCollection(), [doc('d1', 1, {})], 1)]);
      await turn();
      assert.is(await store.get(OTHERS, 'd1'), known, 'the very same object');
      await other.write(2);
      await turn();
      const anew = await store.get(OTHERS, 'd1');
      assert.is.not(anew, known);
      assert.equal(anew, known);
      const [corrected] = await store.correct(OTHERS, [
        { id: 'd1', expected: at(1), document: doc('d1', 1, { n: 'right' }) },
      ]);
      assert.ok(corrected);
      await turn();
      assert.equal((await store.get(OTHERS, 'd1'))?.body, { n: 'right' });
    } finally {
      await other.kill();
    }
  }));

test('lets another process write while one writes without end', () =>
  inFolder(async (dir, store) => {
    const other = await startReadStore(dir);
    try {
      other.load(1);
      await store.reached(projectionOf(OTHERS), at(2_500), 20_000);
      const before = other.acknowledged();
      const mine = newCollection();
      await store.ensure(mine);
      for (let n = 1; n <= 10; n++) {
        await store.write([batch(mine, [doc('one', n, { n })], n)]);
        assert.is(await store.records.put(`key${n}`, n, { expected: 0 }), 1);
      }
      assert.equal((await store.get(mine, 'one'))?.body, { n: 10 });
      await store.reached(projectionOf(OTHERS), at(before + 1), 20_000);
    } finally {
      await other.kill();
    }
  }));

for (const wait of [40, 150, 300]) {
  test(`never has a checkpoint ahead of its documents, killed while it writes (${wait} ms)`, async () => {
    const dir = await newFolder();
    const other = await startReadStore(dir);
    other.load(1);
    while (other.acknowledged() === 0) await sleep(5);
    await sleep(wait);
    await other.kill();
    const acknowledged = other.acknowledged();
    const { store, destroy } = await embeddedFixture(dir);
    try {
      const checkpoint = numberOf(await store.checkpoint(projectionOf(OTHERS)));
      assert.ok(checkpoint >= acknowledged, `${acknowledged} was acknowledged, ${checkpoint} is stored`);
      assert.is(await store.count(OTHERS, { where: { n: { gte: 1, lte: checkpoint } } }), checkpoint);
      await store.write([batch(OTHERS, [doc('d1', checkpoint + 1, { n: -1 })], checkpoint + 1)]);
      assert.equal((await store.get(OTHERS, 'd1'))?.body, { n: -1 }, 'and it goes on');
    } finally {
      await destroy();
    }
  });
}

test('lets the event loop turn while much is read and written', () =>
  inFolder(async (_, store) => {
    const collection = newCollection([['n']]);
    await store.ensure(collection);
    const ids = Array.from({ length: 10_000 }, (_unused, n) => `${(n * 7_919) % 10_000}`);
    const write = store.write(
      Array.from({ length: 10 }, (_unused, k) =>
        batch(
          collection,
          ids.slice(k * 1_000, k * 1_000 + 1_000).map((id) => doc(id, 1, { n: 1, text: 'x'.repeat(300) })),
        ),
      ),
    );
    assert.ok((await turnsDuring(write)) >= 5);
    assert.ok((await turnsDuring(store.getMany(collection, ids))) >= 30);
    assert.ok((await turnsDuring(store.find(collection, { where: { n: 1 } }))) >= 30);
    assert.ok((await turnsDuring(store.find(collection, { limit: 200 }))) <= 5, 'a page is read at once');
  }));

test('lets thousands wait for a projection', () =>
  inFolder(async (_, store) => {
    const collection = await filled(store, []);
    const projection = projectionOf(collection);
    const waiting = Array.from({ length: 5_000 }, (_unused, n) =>
      store.reached(projection, at(1 + ((n * 37) % 5_000)), n % 10 === 0 ? 1 : 20_000),
    );
    await sleep(30);
    for (let n = 1_000; n <= 5_000; n += 1_000) await store.write([batch(collection, [], n)]);
    const answers = await Promise.all(waiting);
    assert.is(answers.filter(Boolean).length, 4_500);
  }));

test.run();

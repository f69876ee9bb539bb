import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOW_PRIORITY_SLICE_MS, slices } from '../../../src/lib/async/slices.js';
import { MAX_BATCH_BYTES, type StoredDocument, type WriteBatch } from '../../../src/ports/readStore.js';
import { documentCache, openBuild } from '../../../src/runtime/readmodels/runningBuild.js';
import { LeaseLostError, atMostBytes, makeWriter } from '../../../src/runtime/readmodels/writer.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { installed } from '../../support/fixtures/projecting.js';

const test = suite('writer');
const fail = (error: unknown): void => {
  throw error;
};
const at = (position: number): string => String(position).padStart(16, '0');
const document = (id: string, position: number, body: object = {}): StoredDocument => ({
  id,
  position: at(position),
  body,
});

test("the bound of a document's size is never below it", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.ok(atMostBytes(value) >= Buffer.byteLength(JSON.stringify(value)));
    }),
  );
  assert.ok(
    atMostBytes({ gone: undefined, deep: [['\u0000\ud800']] }) >=
      Buffer.byteLength(JSON.stringify({ deep: [['\u0000\ud800']] })),
  );
});

test(
  'long documents are spread over batches',
  installed(async ({ store }) => {
    const build = await openBuild(store, transactionsProjection);
    const written: WriteBatch[] = [];
    const writer = makeWriter(
      [build],
      {
        ...store,
        write: async (batches) => {
          written.push(...batches);
          return store.write(batches);
        },
      },
      { held: true },
      fail,
    );
    for (let id = 0; id < 7; id++) build.dirty.set(`t${id}`, document(`t${id}`, 1, { message: 'x'.repeat(100_000) }));
    build.folded = at(1);
    await writer.drain();
    assert.equal(
      written.map(({ documents, checkpoint }) => [documents.length, checkpoint?.position]),
      [
        [3, undefined],
        [3, undefined],
        [1, at(1)],
      ],
    );
    for (const { documents } of written) assert.ok(Buffer.byteLength(JSON.stringify(documents)) < MAX_BATCH_BYTES);
    assert.is(await store.count(build.collection, {}), 7);
    assert.is(build.cache.get('t0')?.id, 't0');
    assert.is(build.dirty.size + build.writing.size, 0);
  }),
);

test(
  'one write at a time takes all that was folded during the one before',
  installed(async ({ store }) => {
    const build = await openBuild(store, transactionsProjection);
    const sizes: number[] = [];
    const slow = async (batches: readonly WriteBatch[]): Promise<void> => {
      sizes.push(batches.reduce((sum, { documents }) => sum + documents.length, 0));
      await sleep(20);
      await store.write(batches);
    };
    const writer = makeWriter([build], { ...store, write: slow }, { held: true }, fail);
    for (let id = 1; id <= 5; id++) {
      build.dirty.set(`t${id}`, document(`t${id}`, id));
      build.folded = at(id);
      writer.kick();
      await Promise.resolve();
    }
    await writer.turn();
    await writer.drain();
    assert.equal(sizes, [1, 4]);
    assert.is(await store.checkpoint(build.checkpoint), at(5));
    writer.kick();
    await writer.turn();
    assert.is(sizes.length, 2, 'nothing new, nothing written');
  }),
);

test(
  'a retiring build is written after the one that serves',
  installed(async ({ store }) => {
    const [left, next] = [
      await openBuild(store, transactionsProjection),
      await openBuild(store, { ...transactionsProjection, version: 77 }),
    ];
    left.state = 'retiring';
    next.state = 'serving';
    const written: number[] = [];
    const writer = makeWriter(
      [left, next],
      { ...store, write: async (batches) => void written.push(...batches.map(({ collection }) => collection.version)) },
      { held: true },
      fail,
    );
    for (const build of [left, next]) build.dirty.set('t1', document('t1', 1));
    await writer.drain();
    assert.equal(written, [77, transactionsProjection.version]);
  }),
);

test(
  'the writer ends without the lease, and writes nothing',
  installed(async ({ store }) => {
    const build = await openBuild(store, transactionsProjection);
    const lease = { held: false };
    const errors: unknown[] = [];
    const writer = makeWriter([build], store, lease, (error) => errors.push(error));
    build.dirty.set('t1', document('t1', 1));
    await writer.drain();
    lease.held = true;
    build.dirty.set('t2', document('t2', 1));
    await writer.drain();
    assert.is(errors.length, 1);
    assert.instance(errors[0], LeaseLostError);
    assert.is(await store.count(build.collection, {}), 0);
  }),
);

test('the cache keeps the newest state, and at most two generations', () => {
  const cache = documentCache(3);
  const keep = (...documents: StoredDocument[]): void => {
    cache.keep(new Map(documents.map((one) => [one.id, one])));
  };
  keep(document('a', 1), document('b', 1));
  keep(document('a', 2));
  assert.is(cache.get('a')?.position, at(2));
  keep(document('c', 3), document('d', 3));
  assert.is(cache.get('a')?.position, at(2), 'the generation before');
  keep(document('e', 4), document('f', 4));
  assert.is(cache.get('a'), undefined);
  assert.is(cache.get('c')?.position, at(3));
  cache.clear();
  assert.is(cache.get('e'), undefined);
});

test('a slice ends, and the event loop turns before the next', async () => {
  // Asked right after it begins, a slice is due only where this process was held up in between: it is asked again then.
  const fresh = async (begin: () => void | Promise<void>): Promise<boolean> => {
    for (let tries = 0; tries < 20; tries++) {
      await begin();
      if (!time.due()) return true;
    }
    return false;
  };
  let time = slices(LOW_PRIORITY_SLICE_MS);
  assert.ok(
    await fresh(() => {
      time = slices(LOW_PRIORITY_SLICE_MS);
    }),
  );
  const end = performance.now() + 10;
  while (performance.now() < end);
  assert.ok(time.due());
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  await time.rest();
  assert.ok(turned);
  assert.ok(await fresh(() => time.rest()));
  while (performance.now() < end + 10);
  assert.ok(await fresh(() => time.start()));
});

test.run();

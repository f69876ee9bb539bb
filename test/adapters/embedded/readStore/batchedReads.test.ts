/** Documents that are looked up together, here or by a thread. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { READ_STORE_FILE } from '../../../../src/adapters/embedded/readStore/file.js';
import { layoutOf } from '../../../../src/adapters/embedded/readStore/layout.js';
import {
  type BatchedReads,
  type BatchedReadsOptions,
  openBatchedReads,
} from '../../../../src/adapters/embedded/readStore/batchedReads.js';
import { createMemory } from '../../../../src/adapters/embedded/readStore/memory.js';
import { openEmbeddedReadStore } from '../../../../src/adapters/embedded/readStore/readStore.js';
import { threadData } from '../../../../src/adapters/embedded/thread.js';
import { at, batch, doc, newCollection, rejectionOf } from '../../../support/engines/readStoreDocuments.js';
import { newFolder } from '../../../support/engines/readStoreEmbedded.js';
import { unexpected } from '../../../support/assertions/unexpected.js';

const test = suite('Embedded read store: looking documents up');

const collection = newCollection();
const other = newCollection();

/**
 * Answers with where it was read; finds no `none…`, can't read `bad…`, dies of `fatal…`, is in no hurry with `slow…`.
 */
const SCRIPTED = `
  const { parentPort } = require('node:worker_threads');
  const answer = (asked) => {
    const ids = asked.flatMap((one) => one.ids);
    if (ids.some((id) => id.startsWith('fatal'))) throw new Error('out of order');
    if (ids.some((id) => id.startsWith('bad'))) return undefined;
    return asked.flatMap(({ table, ids }) => ids.flatMap((id) => (id.startsWith('none') ? [undefined, undefined] : ['1', JSON.stringify({ by: 'thread', table, id })])));
  };
  parentPort.on('message', (message) => {
    if (message === 'close') return parentPort.close();
    if (message.some(({ ids }) => ids.some((id) => id.startsWith('slow')))) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    parentPort.postMessage(answer(message));
  });
  parentPort.postMessage('ready');`;

/** BatchedReads with the scripted thread; `here`: the ids that were read on this one. */
function scripted(options: Omit<Partial<BatchedReadsOptions>, 'onDeath'> = {}) {
  const here: string[] = [];
  const deaths: string[] = [];
  const memory = createMemory();
  let threads = 0;
  const reads = openBatchedReads({
    read(_, id) {
      here.push(id);
      if (id.startsWith('bad')) throw new Error(`can't read ${id}`);
      return id.startsWith('none') ? undefined : { id, position: '1', body: { by: 'here' } };
    },
    memory: () => memory,
    start() {
      threads++;
      return new Worker(SCRIPTED, { eval: true });
    },
    onDeath: ({ message }) => void deaths.push(message),
    ...options,
  });
  return { reads, here, deaths, memory, threads: () => threads };
}

const many = (name: string, amount = 20): string[] => Array.from({ length: amount }, (_, n) => `${name}${n}`);
const all = async (reads: BatchedReads, ids: readonly string[]) =>
  Promise.all(ids.map((id) => reads.get(collection, id)));
const byWhom = async (reads: BatchedReads, ids: readonly string[]) => [
  ...new Set((await all(reads, ids)).map((document) => (document?.body as { by?: string })?.by)),
];

/** Looks up until the thread answers: the first large batch starts it without waiting. */
async function withThread(reads: BatchedReads): Promise<void> {
  for (let n = 0; !(await byWhom(reads, many(`start${n}-`))).includes('thread'); n++) await wait(10);
}

test('reads few documents here, at the end of the turn, and many by the thread once there is one', async () => {
  const { reads, here, threads } = scripted();
  const little = all(reads, many('a', 7));
  await Promise.resolve();
  assert.equal(here, [], 'not before the turn ends');
  assert.equal(
    (await little).map((document) => document?.id),
    many('a', 7),
  );
  assert.is(threads(), 0);
  assert.equal(await byWhom(reads, many('b')), ['here'], 'nobody waits for the thread to start');
  assert.is(threads(), 1);
  await withThread(reads);
  here.length = 0;
  const found = await Promise.all([
    ...many('c').map((id) => reads.get(collection, id)),
    ...many('d').map((id) => reads.get(other, id)),
    reads.get(collection, 'none'),
    reads.get(collection, 'e'),
  ]);
  assert.equal(
    found.map((document) => document?.id),
    [...many('c'), ...many('d'), undefined, 'e'],
    'each gets its own',
  );
  const tables = found.map((document) => (document?.body as { table?: string })?.table);
  assert.is(new Set(tables.slice(0, 20)).size, 1);
  assert.is(tables[41], tables[0]);
  assert.is.not(tables[20], tables[0]);
  assert.equal(here, []);
  assert.equal(await byWhom(reads, ['f']), ['here']);
  await reads.close();
});

test('answers more than fits into a turn, and more than the thread is sent at once', async () => {
  const { reads } = scripted();
  await withThread(reads);
  const ids = [...many('slow', 1), ...many('x', 3_000)];
  assert.equal(
    (await all(reads, ids)).map((document) => document?.id),
    ids,
  );
  await reads.close();
});

test('reads everything here without a processor for a thread', async () => {
  const { reads, here } = scripted({ start: undefined });
  assert.equal(await byWhom(reads, many('a', 250)), ['here']);
  assert.is(here.length, 250);
  await reads.close();
});

test("reads here what the thread can't read, and throws the reason", async () => {
  const { reads } = scripted();
  await withThread(reads);
  const outcomes = await Promise.allSettled([...many('a'), 'bad'].map((id) => reads.get(collection, id)));
  assert.equal(
    outcomes.map(({ status }) => status),
    [...many('a').map(() => 'fulfilled'), 'rejected'],
  );
  assert.is(((outcomes[20] as PromiseRejectedResult).reason as Error).message, "can't read bad");
  assert.equal(await byWhom(reads, many('b')), ['thread'], 'and it goes on');
  await reads.close();
});

test('reads here what a dead thread was asked, and starts another after a while', async () => {
  const { reads, threads, deaths } = scripted({ restartMs: 60_000 });
  await withThread(reads);
  assert.equal(await byWhom(reads, [...many('a'), 'fatal']), ['here']);
  assert.equal(deaths, ['out of order']);
  assert.equal(await byWhom(reads, many('b')), ['here']);
  assert.is(threads(), 1);
  await reads.close();

  const soon = scripted({ restartMs: 0 });
  await withThread(soon.reads);
  assert.equal(await byWhom(soon.reads, [...many('a'), 'fatal']), ['here']);
  await withThread(soon.reads);
  assert.is(soon.threads(), 2);
  await soon.reads.close();
});

test('keeps documents that are asked for again until they are forgotten, even while under way', async () => {
  const { reads, memory, here } = scripted();
  await withThread(reads);
  const name = `${collection.name}@1`;
  await all(reads, many('a'));
  await all(reads, many('a'));
  memory.forget('another@1');
  here.length = 0;
  assert.equal(await byWhom(reads, ['a3']), ['thread']);
  assert.equal(await byWhom(reads, [...many('a'), 'b']), ['thread', 'here'], 'what is left is little');
  assert.equal(here, ['b']);
  memory.forget(name);
  assert.equal(await byWhom(reads, ['a3']), ['here']);

  const requested = all(reads, ['slow', ...many('c')]);
  await turn();
  await turn();
  memory.forget(name);
  await requested;
  const again = all(reads, ['slow', ...many('c')]);
  await turn();
  await turn();
  memory.forget(name);
  await again;
  assert.equal(await byWhom(reads, ['c1']), ['here'], 'it may be outdated');
  await reads.close();
});

test('keeps nothing of builds that readers have left, however many there are', () => {
  const memory = createMemory();
  const builds = Array.from({ length: 40 }, (_, n) => layoutOf({ ...collection, version: n + 1 }));
  for (const layout of builds) {
    // The second look-up keeps a document in memory.
    for (let times = 0; times < 2; times++) memory.remember(layout, doc('a', 1, {}), memory.age());
    assert.ok(memory.known(layout, 'a'));
  }
  assert.is(memory.known(builds[0] as (typeof builds)[number], 'a'), undefined);
});

test("fails present look-ups, and no later ones, when memory can't be brought up to date", async () => {
  const memory = createMemory();
  let broken = false;
  const { reads } = scripted({
    memory() {
      if (broken) throw new Error('no disk');
      return memory;
    },
  });
  await withThread(reads);
  broken = true;
  for (const ids of [many('a', 150), ['b']]) {
    const outcomes = await Promise.allSettled(ids.map((id) => reads.get(collection, id)));
    for (const outcome of outcomes) assert.is(((outcome as PromiseRejectedResult).reason as Error).message, 'no disk');
  }
  broken = false;
  assert.equal(await byWhom(reads, many('c')), ['thread']);
  await reads.close();
});

test('answers earlier look-ups when it closes, and reads later ones here', async () => {
  const { reads } = scripted();
  await withThread(reads);
  const requested = all(reads, ['slow', ...many('a')]);
  await turn();
  const closing = reads.close();
  assert.equal(
    (await requested).map((document) => document?.id),
    ['slow', ...many('a')],
  );
  await closing;
  assert.equal(await byWhom(reads, many('b')), ['here']);
  await reads.close();
});

test('finds with the store’s own thread what stands in the file, and misses the same', async () => {
  const dir = await newFolder();
  const store = await openEmbeddedReadStore({ dir });
  await store.ensure(collection);
  await store.write([
    batch(
      collection,
      many('d', 500).map((id, n) => doc(id, n + 1, { n, text: 'ä€😀\u0000' })),
    ),
  ]);
  const reads = openBatchedReads({
    read: (_, id) => {
      throw new Error(`${id} was to be read by the thread`);
    },
    memory: createMemory,
    onDeath: unexpected,
    start: () =>
      new Worker(new URL('../../../../src/adapters/embedded/readStore/readStoreLookupWorker.js', import.meta.url), {
        workerData: threadData(join(dir, READ_STORE_FILE)),
      }),
  });
  await Promise.allSettled(many('d').map((id) => reads.get(collection, id)));
  while (
    (await Promise.allSettled(many('d').map((id) => reads.get(collection, id)))).some(
      ({ status }) => status === 'rejected',
    )
  )
    await wait(10);
  const found = await all(reads, ['none', ...many('d', 499)]);
  assert.equal(found, [undefined, ...many('d', 499).map((id, n) => doc(id, n + 1, { n, text: 'ä€😀\u0000' }))]);
  assert.is(found[1]?.position, at(1));
  assert.match(
    (await rejectionOf(Promise.all(many('x').map((id) => reads.get(other, id))))).message,
    'by the thread',
    'a collection that is not there',
  );
  await reads.close();
  await store.close();
  await rm(dir, { recursive: true });
});

test.run();

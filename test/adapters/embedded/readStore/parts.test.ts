import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../../src/adapters/embedded/driver.js';
import { layoutOf } from '../../../../src/adapters/embedded/readStore/layout.js';
import { openWriterClient, type WriterClient } from '../../../../src/adapters/embedded/writerClient.js';
import type { WriterRequest } from '../../../../src/adapters/embedded/readStore/messages.js';
import { createBatchEncoder } from '../../../../src/adapters/embedded/readStore/batchEncoder.js';
import { createReader } from '../../../../src/adapters/embedded/readStore/reader.js';
import { openScrubbing } from '../../../../src/adapters/embedded/readStore/scrub.js';
import { tablesOf } from '../../../../src/adapters/embedded/readStore/tables.js';
import { createCheckpointWaiters } from '../../../../src/adapters/embedded/readStore/checkpointWaiters.js';
import { afterPrefix } from '../../../../src/adapters/prefix.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { at, batch, doc, newCollection, rejectionOf } from '../../../support/engines/readStoreDocuments.js';

const test = suite('Embedded read store: its parts');

/** Answers every request with its kind, but dies of `drop`. */
const FRAGILE = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', (message) => {
    if (message === 'close') return parentPort.close();
    if (message.some(({ request }) => request.kind === 'drop')) throw new Error('out of order');
    parentPort.postMessage(message.map(({ id, request }) => ({ id, value: request.kind })));
  });`;

function clientOf(start: () => Worker, answering = (): void => undefined): WriterClient<WriterRequest> {
  return openWriterClient({
    store: 'read store',
    start,
    atOnce: true,
    errorOf: ({ message }) => new Error(message),
    answering,
  });
}

test('fails unanswered requests of a writer that died, and starts another', async () => {
  let started = 0;
  let told = 0;
  const client = clientOf(
    () => {
      started++;
      return new Worker(FRAGILE, { eval: true });
    },
    () => {
      told++;
    },
  );
  const bind: WriterRequest = { kind: 'bind', logId: 'l' };
  const called = client.call(bind);
  assert.is(told, 0);
  assert.is(await called, 'bind');
  assert.is(told, 1);
  const failed = await Promise.all([
    rejectionOf(client.call({ kind: 'drop', layout: layoutOf(newCollection()) })),
    rejectionOf(client.call(bind)),
  ]);
  for (const error of failed) {
    assert.instance(error, UnavailableError);
    assert.ok((error as UnavailableError).outcomeUnknown);
    assert.match((error.cause as Error).message, 'out of order');
  }
  assert.equal(await Promise.all([client.call(bind), client.call(bind)]), ['bind', 'bind']);
  assert.is(started, 2);
  await client.close();
  assert.instance(await rejectionOf(client.call(bind)), UnavailableError);
  await client.close();
});

test('closes a client whose writer is dead', async () => {
  const client = clientOf(() => new Worker(FRAGILE, { eval: true }));
  await rejectionOf(client.call({ kind: 'drop', layout: layoutOf(newCollection()) }));
  await client.close();
});

/** Answers the last parts of writes, and keeps of each whether it had a checkpoint. */
const TAKING = `
  const { parentPort, workerData } = require('node:worker_threads');
  parentPort.on('message', (message) => {
    if (message === 'close') return parentPort.close();
    for (const { id, request } of message) {
      Atomics.add(workerData, 0, request.checkpoints.length);
      if (request.last) parentPort.postMessage([{ id }]);
    }
  });`;

test('writes no checkpoint when the writer dies in the midst of a write', async () => {
  const checkpoints = new Int32Array(new SharedArrayBuffer(4));
  const started: Worker[] = [];
  const start = (): Worker => {
    const worker = new Worker(TAKING, { eval: true, workerData: checkpoints });
    started.push(worker);
    return worker;
  };
  const client = clientOf(start);
  let sent = 0;
  const encoder = createBatchEncoder({
    ...client,
    async sent() {
      await client.sent();
      if (++sent === 2) await started[0]?.terminate();
    },
  });
  const collection = newCollection();
  const text = 'x'.repeat(1_900);
  const batches = Array.from({ length: 40 }, (_, k) =>
    batch(
      collection,
      Array.from({ length: 1_000 }, (_unused, n) => doc(`${n}`, k, { text })),
      k < 38 ? undefined : k,
    ),
  );
  const error = await rejectionOf(encoder.write(batches));
  assert.instance(error, UnavailableError);
  assert.ok((error as UnavailableError).outcomeUnknown);
  assert.equal([started.length, checkpoints[0]], [2, 0]);
  await encoder.write(batches);
  assert.is(checkpoints[0], 2);
  await client.close();
});

/** An encoder that records its parts. */
function encoderOnPaper() {
  const parts: WriterRequest[] = [];
  let turns = 0;
  const encoder = createBatchEncoder({
    send: (request) => void parts.push(request),
    async sent() {
      turns++;
    },
    deaths: () => 0,
    async call<R>(request: WriterRequest) {
      parts.push(request);
      return undefined as R;
    },
  });
  return { encoder, parts, turns: () => turns };
}

test('encodes a large write in slices, its checkpoint last', async () => {
  const { encoder, parts, turns } = encoderOnPaper();
  const collection = newCollection([['n']]);
  const text = 'x'.repeat(1_900);
  const batches = Array.from({ length: 20 }, (_, k) =>
    batch(
      collection,
      Array.from({ length: 1_000 }, (_unused, n) => doc(`${n}`, k, { n, text })),
      k,
    ),
  );
  await encoder.write(batches);
  assert.ok(turns() >= 2, `${turns()} turns`);
  const writes = parts.flatMap((part) => (part.kind === 'write' ? [part] : []));
  assert.is(
    writes.findIndex(({ last }) => last),
    writes.length - 1,
  );
  let sent = 0;
  for (const { documents, checkpoints } of writes) {
    for (const { rows } of documents) sent += rows.length / 4;
    for (const { position } of checkpoints)
      assert.ok(sent >= (Number(position) + 1) * 1_000, 'with or after its documents');
  }
  assert.is(sent, 20_000);
  assert.equal(
    writes.flatMap(({ checkpoints }) => checkpoints.map(({ position }) => position)),
    batches.map((_, k) => at(k)),
  );
});

test('sends the checkpoint of a batch without documents, also where the turn ends with the next batch', async () => {
  const { encoder, parts, turns } = encoderOnPaper();
  const collection = newCollection();
  const slow = {
    toJSON() {
      for (const end = performance.now() + 10; performance.now() < end;);
      return {};
    },
  };
  const first = encoder.write([batch(collection, [doc('a', 1, slow)])]);
  const second = encoder.write([batch(newCollection(), [], 1), batch(collection, [doc('b', 2, {})], 2)]);
  await Promise.all([first, second]);
  assert.is(turns(), 1);
  assert.equal(
    parts.flatMap((part) => (part.kind === 'write' ? part.checkpoints.map(({ position }) => position) : [])),
    [at(1), at(2)],
  );
});

test('fails the write of a body that is not JSON without a checkpoint, and goes on with the next', async () => {
  const { encoder, parts } = encoderOnPaper();
  const collection = newCollection();
  const bad = encoder.write([batch(collection, [doc('a', 1, {})]), batch(collection, [doc('b', 1, { n: 1n })], 1)]);
  const good = encoder.write([batch(collection, [doc('c', 2, {})], 2)]);
  assert.instance(await rejectionOf(bad), TypeError);
  await good;
  assert.equal(
    parts.map((part) =>
      part.kind === 'write' ? [part.call, part.last, part.checkpoints.map(({ position }) => position)] : part,
    ),
    [
      [1, true, []],
      [2, true, [at(2)]],
    ],
  );
});

test("ends waiting with the error of a store that can't be read", async () => {
  let failing = false;
  let looks = 0;
  const waiters = createCheckpointWaiters({
    version() {
      looks++;
      if (failing) throw new UnavailableError('no disk');
      return 1;
    },
    checkpoint: () => undefined,
    wanted: () => undefined,
  });
  const waiting = [waiters.reached('a@1', at(1), 5_000), waiters.reached('b@1', at(1), 5_000)];
  failing = true;
  for (const one of waiting) assert.instance(await rejectionOf(one), UnavailableError);
  const before = looks;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.is(looks, before, 'nobody waits, nobody looks');
  waiters.close();
});

test('answers a waiter for less than others wait for by what the file says now', async () => {
  let stored = at(3);
  let looks = 0;
  const waiters = createCheckpointWaiters({
    version: () => 1,
    checkpoint() {
      looks += 1;
      return stored;
    },
    wanted: () => undefined,
  });
  const later = waiters.reached('a@1', at(9), 5_000);
  stored = at(5);
  assert.ok(
    await Promise.race([
      waiters.reached('a@1', at(5), 5_000),
      Promise.resolve().then(async () => Promise.resolve(false)),
    ]),
    'at once',
  );
  const looked = looks;
  void waiters.reached('a@1', at(9), 5_000);
  assert.is(looks, looked, 'for no more than others wait for');
  waiters.close();
  assert.not.ok(await later);
});

test('announces waiters with the first and after the last of a turn, and none that need not wait', async () => {
  let told = 0;
  const waiters = createCheckpointWaiters({ version: () => 1, checkpoint: () => at(3), wanted: () => (told += 1) });
  assert.ok(await waiters.reached('a@1', at(3), 5_000));
  assert.is(told, 0);
  const waiting = [
    waiters.reached('a@1', at(9), 5_000),
    waiters.reached('a@1', at(9), 5_000),
    waiters.reached('b@1', at(8), 5_000),
  ];
  assert.is(told, 1);
  const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));
  await turn();
  assert.is(told, 2);
  waiting.push(waiters.reached('a@1', at(9), 5_000));
  assert.is(told, 3);
  await turn();
  assert.is(told, 3, 'nobody came since');
  waiters.close();
  assert.equal(await Promise.all(waiting), [false, false, false, false]);
});

test('needs no look into the file for a known checkpoint', async () => {
  let looks = 0;
  const waiters = createCheckpointWaiters({
    version: () => 1,
    checkpoint() {
      looks++;
      return undefined;
    },
    wanted: () => undefined,
  });
  waiters.advanced('a@1', at(5));
  waiters.advanced('a@1', at(4));
  assert.ok(await waiters.reached('a@1', at(5), 0));
  assert.is(looks, 0);
  waiters.forget('a@1');
  assert.not.ok(await waiters.reached('a@1', at(5), 0));
  assert.is(looks, 1);
  waiters.close();
});

test('finds the end of a prefix', () => {
  const ends: readonly (readonly [string, string | undefined])[] = [
    ['', undefined],
    ['a', 'b'],
    ['az', 'a{'],
    ['\u{d7ff}', '\u{e000}'],
    ['\u{ffff}', '\u{10000}'],
    ['a\u{10ffff}', 'b'],
    ['\u{10ffff}\u{10ffff}', undefined],
  ];
  for (const [prefix, end] of ends) assert.is(afterPrefix(prefix), end);
});

test("refuses names that can't be a table", () => {
  for (const name of ['', 'A', 'a-b', 'a"b', 'a b', 'ä'])
    assert.throws(() => layoutOf({ name, version: 1, indexes: [] }), /only lower-case/);
  for (const version of [0, -1, 1.5, Number.NaN])
    assert.throws(() => layoutOf({ name: 'a', version, indexes: [] }), /whole number/);
});

test('gives a page of one moment, however much is written while its documents are made', async () => {
  const database = new Sqlite(':memory:');
  const things = newCollection([['n']]);
  const layout = layoutOf(things);
  for (const [table, columns] of [
    ['checkpoint', 'projection TEXT NOT NULL PRIMARY KEY, position TEXT NOT NULL'],
    ['setting', 'name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL'],
  ])
    database.exec(`CREATE TABLE ${table} (${columns})`);
  const tables = tablesOf(database, { scrubbing: openScrubbing(database), secure: () => undefined });
  const write = (n: number, id: number, position: number): void =>
    tables.write({ layout, rows: [`d${id}`, at(position), JSON.stringify({ n }), n] });
  for (let id = 1; id <= 600; id++) write(id, id, id);
  const finding = createReader(database).find(things, { sort: [['n', 1]], limit: 500 });
  write(1_000, 500, 1_000);
  assert.equal(
    (await finding).map(({ body }) => (body as { n: number }).n),
    Array.from({ length: 500 }, (_, index) => index + 1),
  );
  database.close();
});

test.run();

import { setTimeout as sleep } from 'node:timers/promises';
import type { Document } from 'mongodb';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openMongoReadStore } from '../../../src/adapters/mongodb/readStore.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { openedWell, startFakeMongo } from '../../support/engines/fakeMongo.js';
import { type MongoServer, mongoMissing, startMongo } from '../../support/engines/mongoServer.js';
import { everyCall, recovered } from '../../support/engines/mongoTrouble.js';
import { at, batch, doc, newCollection, projectionOf, rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { skipSuite } from '../../support/assertions/testWhere.js';
import { FOR_EVER_MS, until } from '../../support/assertions/until.js';

const missing = mongoMissing();

if (missing === undefined) {
  const test = suite<{ server: MongoServer; store: ReadStore }>('MongoDB: in trouble');
  test.before.each(async (context) => {
    context.server = await startMongo({ durable: true });
    context.store = await openMongoReadStore({ url: context.server.url });
  });
  test.after.each(async ({ server, store }) => {
    server.signal('SIGCONT');
    await server.stop();
    await store.close();
  });

  test('loses nothing acknowledged when killed with -9 under load, and has no checkpoint ahead', async ({
    server,
    store,
  }) => {
    const collection = newCollection();
    await store.ensure(collection);
    let acknowledged = 0;
    let stop = false;
    const failures: Error[] = [];
    const writer = (async () => {
      for (let n = 1; !stop;) {
        const group = Array.from({ length: 20 }, (_, i) => doc(`d${n + i}`, n + i, { n: n + i }));
        const written = await store.write([batch(collection, group, n + 19)]).then(
          () => true,
          (error: Error) => failures.push(error) && false,
        );
        if (written) {
          acknowledged = n + 19;
          n += 20;
        } else await sleep(20);
      }
    })();
    const keys: string[] = [];
    const putter = (async () => {
      for (let n = 0; !stop; n++) {
        if ((await store.records.put(`r${n}`, n, { expected: 0 }).catch(() => undefined)) === 1) keys.push(`r${n}`);
        else await sleep(20);
      }
    })();
    try {
      for (const wait of [200, 350]) {
        await sleep(wait);
        server.signal('SIGKILL');
        await sleep(50);
        const before = acknowledged;
        await server.restart();
        await until(() => acknowledged > before + 20, 'it to go on');
        const known = acknowledged;
        const checkpoint = Number(await store.checkpoint(projectionOf(collection)));
        assert.ok(checkpoint >= known, `${known} was acknowledged, ${checkpoint} is stored`);
        const ids = Array.from({ length: checkpoint }, (_, n) => `d${n + 1}`);
        assert.is((await store.getMany(collection, ids)).filter((document) => document === undefined).length, 0);
      }
    } finally {
      stop = true;
      await Promise.all([writer, putter]);
    }
    for (const key of keys) assert.ok(await store.records.get(key), `${key} was acknowledged`);
    assert.ok(failures.length > 0);
    for (const failure of failures) assert.instance(failure, UnavailableError);
  });

  test('fails calls and waiters while the server is down, however long', async ({ server, store }) => {
    const collection = newCollection([['n']]);
    await store.ensure(collection);
    server.signal('SIGKILL');
    await sleep(100);
    const waiting = rejectionOf(store.reached(projectionOf(collection), at(1), FOR_EVER_MS));
    for (let round = 0; round < 2; round++) {
      const calls = Object.values(everyCall(store, collection));
      for (const error of await Promise.all(calls.map(async (call) => rejectionOf(call()))))
        assert.instance(error, UnavailableError);
    }
    assert.instance(await waiting, UnavailableError);
    await server.restart();
    await recovered(() => store.ping());
  });

  test.run();
} else {
  skipSuite('MongoDB: in trouble', missing);
}

const fakes = suite('MongoDB: answers that a server gives rarely');

const empty = { cursor: { id: 0n, ns: 'x.y', firstBatch: [] } };

/** A store on a server with scripted answers, once it is open. */
async function onFake(
  answer: (command: Document) => Document | 'end' | 'silence' | undefined,
  run: (store: ReadStore, commands: readonly string[]) => Promise<void>,
): Promise<void> {
  const server = await startFakeMongo((command) => openedWell(command) ?? answer(command) ?? {});
  const store = await openMongoReadStore({ url: server.url });
  try {
    await run(store, server.commands);
  } finally {
    await store.close();
    await server.stop();
  }
}

fakes('however many calls there are, they share 32 connections', async () => {
  let silent = false;
  const server = await startFakeMongo((command) => openedWell(command) ?? (silent ? 'silence' : {}));
  const store = await openMongoReadStore({ url: server.url });
  silent = true;
  const calls = Promise.allSettled(Array.from({ length: 300 }, (_, n) => store.get(newCollection(), `d${n}`)));
  try {
    // The first are given up after seconds, and their places taken.
    await until(() => server.connections() >= 32, 'the connections');
    await sleep(200);
    // The driver looks after the server over two more.
    assert.ok(server.connections() >= 32 && server.connections() <= 34, `${server.connections()} connections`);
  } finally {
    await server.stop();
    await calls;
    await store.close();
  }
});

fakes("leaves a write's outcome unknown when the connection ends before the answer", () =>
  onFake(
    (command) =>
      'update' in command || 'delete' in command || 'findAndModify' in command || 'insert' in command ? 'end' : empty,
    async (store) => {
      const collection = newCollection();
      const writes = [
        () => store.write([batch(collection, [doc('a', 1, {})], 1)]),
        () => store.records.put('a', 1),
        () => store.records.put('a', 1, { expected: 0 }),
        () => store.records.put('a', 1, { expected: 1 }),
        () => store.records.delete('a'),
        () => store.activate('a', 1),
        () => store.boundTo('a'),
      ];
      for (const write of writes) {
        const error = await rejectionOf(write());
        assert.instance(error, UnavailableError);
        assert.ok((error as UnavailableError).outcomeUnknown);
      }
    },
  ),
);

fakes('no checkpoint is written after documents that were not', () =>
  onFake(
    ({ update }) => (String(update).startsWith('doc_') ? { ok: 0, code: 1, errmsg: 'deadlock detected' } : { n: 1 }),
    async (store, commands) => {
      const [a, b] = [newCollection(), newCollection()];
      assert.instance(
        await rejectionOf(store.write([batch(a, [doc('a', 1, {})], 1), batch(b, [doc('a', 1, {})], 1)])),
        UnavailableError,
      );
      assert.equal(commands.filter((name) => name === 'update').length, 2, 'both collections, and nothing after them');
    },
  ),
);

fakes('what has not reached a majority is not acknowledged', () =>
  onFake(
    () => ({
      n: 1,
      nModified: 1,
      writeConcernError: { code: 64, errmsg: 'waiting for replication timed out', errInfo: { wtimeout: true } },
    }),
    async (store) => {
      for (const write of [
        () => store.write([batch(newCollection(), [doc('a', 1, {})], 1)]),
        () => store.records.put('a', 1, { expected: 1 }),
        () => store.activate('a', 1),
      ]) {
        const error = await rejectionOf(write());
        assert.instance(error, UnavailableError);
        assert.ok((error as UnavailableError).outcomeUnknown);
      }
    },
  ),
);

fakes('a taken value of another index is an error', () =>
  onFake(
    (command) =>
      'find' in command
        ? empty
        : {
            n: 0,
            nModified: 0,
            writeErrors: [
              {
                index: 0,
                code: 11_000,
                keyPattern: { b: 1 },
                errmsg: 'E11000 duplicate key error collection: x.doc_index index: b_1 dup key: { b: "{}" }',
              },
            ],
          },
    async (store) => {
      for (const write of [
        () => store.write([batch(newCollection(), [doc('a', 1, {})], 1)]),
        () => store.records.put('a', 1, { expected: 0 }),
        () => store.boundTo('a'),
        () => store.activate('a', 1),
      ]) {
        const error = await rejectionOf(write().then((answer) => assert.unreachable(String(answer))));
        assert.match(error.message, 'E11000');
        assert.not.instance(error, UnavailableError);
      }
    },
  ),
);

const takenId = {
  n: 0,
  nModified: 0,
  writeErrors: [
    { index: 0, code: 11_000, errmsg: 'E11000 duplicate key error collection: x.y index: _id_ dup key: { _id: "a" }' },
  ],
};

fakes('a pointer whose first one came from another client in between is set all the same', async () => {
  const upserts: unknown[] = [];
  await onFake(
    (command) => {
      upserts.push(command['update']);
      return upserts.length === 1 ? takenId : { n: 1 };
    },
    async (store) => {
      await store.activate('gifts', 2);
      assert.is(upserts.length, 2);
    },
  );
});

fakes('a record, or a binding, that comes and goes in between is asked for again, not for ever', () =>
  onFake(
    (command) => ('find' in command ? empty : 'findAndModify' in command ? { value: null } : takenId),
    async (store) => {
      for (const write of [() => store.records.put('a', 1), () => store.boundTo('log')])
        assert.instance(await rejectionOf(write()), UnavailableError);
    },
  ),
);

fakes.run();

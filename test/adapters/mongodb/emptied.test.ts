/** What becomes of a store whose data is gone while it is open: an empty volume, or a database that was dropped. */
import { MongoClient } from 'mongodb';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { addressOf, READ_STORE } from '../../../src/adapters/mongodb/address.js';
import { boundTo } from '../../../src/adapters/mongodb/binding.js';
import { ensureCollection } from '../../../src/adapters/mongodb/collections.js';
import { type Connection, INDEX_MS, openConnection } from '../../../src/adapters/mongodb/connection.js';
import { openMongoKeyStore } from '../../../src/adapters/mongodb/keyStore.js';
import { layoutOf } from '../../../src/adapters/mongodb/layout.js';
import { openMongoReadStore } from '../../../src/adapters/mongodb/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { openProxy } from '../../support/engines/eventStoreProxy.js';
import { newRow } from '../../support/engines/keyStoreRows.js';
import { type MongoServer, mongoMissing, newDatabase, startMongo } from '../../support/engines/mongoServer.js';
import { recovered } from '../../support/engines/mongoTrouble.js';
import { at, batch, doc, newCollection, projectionOf, rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { skipSuite } from '../../support/assertions/testWhere.js';

const missing = mongoMissing();

const ownLog = suite('MongoDB: the log of a database');

ownLog(
  'is stored after the mark, so that a process that dies in between leaves nothing that others refuse',
  async () => {
    const done: string[] = [];
    const connection = {
      store: READ_STORE,
      read: async () => null,
      write: async () => Promise.reject(new Error(`killed, after: ${done.join()}`)),
    } as unknown as Connection;
    const error = await rejectionOf(boundTo(connection, 'log', async () => void done.push('mark')));
    assert.is(error.message, 'killed, after: mark');
  },
);

ownLog.run();

if (missing === undefined) {
  const test = suite<{ server: MongoServer }>('MongoDB: its data is gone');
  test.before(async (context) => {
    context.server = await startMongo();
  });
  test.after(async ({ server }) => server.stop());

  test('stores no checkpoint beyond the documents that a dropped database has lost, and is filled anew', async ({
    server,
  }) => {
    const database = newDatabase(server.url);
    const store = await openMongoReadStore({ url: database.url });
    try {
      const collection = newCollection([['n']]);
      const projection = projectionOf(collection);
      await store.boundTo('log');
      await store.write([batch(collection, [doc('d1', 1, { n: 1 })], 1)]);
      await database.client.db(database.name).dropDatabase();
      await store.records.put('session', 1);
      assert.is(await store.checkpoint(projection), undefined, 'readiness asks for it, too');
      const error = await rejectionOf(store.write([batch(collection, [doc('d2', 2, { n: 2 })], 2)]));
      assert.instance(error, UnavailableError);
      assert.match(error.message, `lost the checkpoints of ${projection}`);
      assert.is(await store.checkpoint(projection), undefined);
      assert.is(await store.get(collection, 'd2'), undefined, 'it was folded without what was lost');
      assert.is(await store.boundTo('log'), 'log');
      const indexes = await database.client.db(database.name).collection('records').indexes();
      assert.ok(
        indexes.some(({ expireAfterSeconds }) => expireAfterSeconds === 0),
        'what expires is deleted again',
      );
      await store.write([batch(collection, [doc('d1', 1, { n: 1 })], 1)]);
      await store.write([batch(collection, [doc('d2', 2, { n: 2 })], 2)]);
      assert.is(await store.checkpoint(projection), at(2));
      const again = await openMongoReadStore({ url: database.url });
      assert.is((await again.get(collection, 'd1'))?.position, at(1));
      await again.close();
    } finally {
      await store.close();
      await database.destroy();
    }
  });

  test('lets a process start on a database that was emptied, though others have written records since', async ({
    server,
  }) => {
    const database = newDatabase(server.url);
    const running = await openMongoReadStore({ url: database.url });
    try {
      await running.boundTo('log');
      await database.client.db(database.name).dropDatabase();
      // A front's, whose projector is not there at present.
      await running.records.put('session', { user: 'u1' });
      const started = await openMongoReadStore({ url: database.url });
      assert.is(await started.boundTo('log'), 'log');
      assert.equal((await started.records.get('session'))?.value, { user: 'u1' });
      await started.close();
      const later = await openMongoReadStore({ url: database.url });
      await later.close();
    } finally {
      await running.close();
      await database.destroy();
    }
  });

  test('takes no collection of another program for records of an emptied database', async ({ server }) => {
    const database = newDatabase(server.url);
    try {
      await database.client.db(database.name).collection('records').insertOne({ v: 'theirs' });
      const error = await rejectionOf(openMongoReadStore({ url: database.url }));
      assert.match(error.message, 'MONGODB_URL: the database was written by a state before 0.1.0');
    } finally {
      await database.destroy();
    }
  });

  test('leaves the documents where only their checkpoint was removed', async ({ server }) => {
    const database = newDatabase(server.url);
    const store = await openMongoReadStore({ url: database.url });
    try {
      const [one, other] = [newCollection(), newCollection()];
      await store.boundTo('log');
      await store.write([batch(one, [doc('d1', 1, {})], 1), batch(other, [], 1)]);
      await database.client
        .db(database.name)
        .collection<{ _id: string }>('checkpoints')
        .deleteOne({ _id: projectionOf(one) });
      const next = [batch(one, [doc('d2', 2, {})], 2), batch(other, [], 2)];
      assert.match((await rejectionOf(store.write(next))).message, projectionOf(one));
      assert.is(await store.count(one, {}), 2);
      assert.equal(
        [await store.checkpoint(projectionOf(one)), await store.checkpoint(projectionOf(other))],
        [undefined, at(2)],
      );
      await store.write(next);
      assert.is(await store.checkpoint(projectionOf(one)), at(2));
    } finally {
      await store.close();
      await database.destroy();
    }
  });

  test('fills a collection anew that a person has dropped, whatever was written since', async ({ server }) => {
    const database = newDatabase(server.url);
    const [quiet, busy, plain] = [newCollection([['n']]), newCollection([['n']]), newCollection()];
    const all = [quiet, busy, plain];
    const store = await openMongoReadStore({ url: database.url });
    try {
      await store.boundTo('log');
      for (const collection of all) {
        await store.ensure(collection);
        await store.write([batch(collection, [doc('d1', 1, { n: 1 })], 1)]);
        await store.activate(collection.name, collection.version);
      }
      await store.ensure(busy);
      assert.is(await store.active(busy.name), busy.version, 'nothing was dropped yet');
      const names = (await database.client.db(database.name).listCollections().toArray()).map(({ name }) => name);
      for (const { name } of all)
        for (const stored of names.filter((one) => one.includes(name)))
          await database.client.db(database.name).collection(stored).drop();
      await store.write([batch(busy, [doc('d2', 2, { n: 2 })], 2)]);
      const started = await openMongoReadStore({ url: database.url });
      for (const collection of all) {
        await started.ensure(collection);
        assert.is(await started.checkpoint(projectionOf(collection)), undefined, 'it is folded from the beginning');
        assert.is(await started.active(collection.name), undefined, 'nobody reads it until then');
        assert.is(await started.count(collection, {}), 0);
      }
      await started.close();
    } finally {
      await store.close();
      await database.destroy();
    }
  });

  test('leaves a collection in use whose first indexes a start that was killed has not made', async ({ server }) => {
    const database = newDatabase(server.url);
    const before = newCollection();
    const after = { ...before, indexes: newCollection([['n']]).indexes };
    const first = await openMongoReadStore({ url: database.url });
    await first.boundTo('log');
    await first.ensure(before);
    await first.write([batch(before, [doc('d1', 1, { n: 1 })], 1)]);
    await first.activate(before.name, before.version);
    await first.close();
    const connection = openConnection({ store: READ_STORE, ...addressOf(database.url, READ_STORE) });
    const killed: Connection = {
      ...connection,
      write: async (work, deadlineMs) =>
        deadlineMs === INDEX_MS ? Promise.reject(new Error('killed')) : connection.write(work, deadlineMs),
    };
    assert.is((await rejectionOf(ensureCollection(killed, layoutOf(after), false))).message, 'killed');
    await connection.close();
    const started = await openMongoReadStore({ url: database.url });
    try {
      await started.ensure(after);
      assert.is(await started.active(after.name), after.version, 'it was not dropped');
      assert.equal(
        (await started.find(after, { where: { n: 1 } })).map(({ id }) => id),
        ['d1'],
      );
    } finally {
      await started.close();
      await database.destroy();
    }
  });

  test('answers nothing from a key store that comes back empty, and goes on once its data is back', async ({
    server,
  }) => {
    const empty = await startMongo();
    const portOf = ({ url }: MongoServer): number => Number(new URL(url).port);
    const way = await openProxy({ port: portOf(server) });
    const keys = await openMongoKeyStore({ url: `mongodb://127.0.0.1:${way.port}/keys` });
    const client = new MongoClient(empty.url);
    try {
      const [known, other] = [newRow(), newRow()];
      await keys.add([known]);
      way.turn(portOf(empty));
      way.cut();
      for (const call of [
        async () => keys.byId([known.id]),
        async () => keys.byLookup([known.lookup]),
        async () => keys.add([other]),
        async () => keys.ping(),
      ]) {
        // A connection that was lost fails a call or two by itself.
        let error = await rejectionOf(call());
        for (let n = 0; n < 20 && !error.message.includes('lost its data'); n++) error = await rejectionOf(call());
        assert.instance(error, UnavailableError);
        assert.match(error.message, 'the key store has lost its data');
        assert.is((error as UnavailableError).publicReason, 'has lost its data, or an index');
      }
      assert.equal(await client.db('keys').listCollections().toArray(), []);
      // A process that starts, or a command, makes what an empty key store lacks, before it finds that it does not fit.
      await (await openMongoKeyStore({ url: `mongodb://127.0.0.1:${portOf(empty)}/keys` })).close();
      assert.match((await rejectionOf(keys.ping())).message, 'the key store has lost its data');
      assert.match((await rejectionOf(keys.add([other]))).message, 'the key store has lost its data');
      assert.is(await client.db('keys').collection('subjects').countDocuments(), 0);
      way.turn(portOf(server));
      way.cut();
      await recovered(async () => keys.ping());
      assert.equal([...(await keys.byId([known.id])).values()], [known]);
      await keys.add([other]);
    } finally {
      await keys.close();
      await client.close();
      await way.close();
      await empty.stop();
    }
  });

  test('answers nothing from a key store of which a part was dropped, once it was asked how it is', async ({
    server,
  }) => {
    const database = newDatabase(server.url);
    const db = database.client.db(database.name);
    for (const [drop, lost] of [
      [async () => db.dropDatabase(), /lost its data/],
      [async () => db.collection('subjects').drop(), /lost its data/],
      [async () => db.collection('subjects').dropIndex('l'), /lost the index l of collection subjects/],
    ] as const) {
      await db.dropDatabase();
      const keys = await openMongoKeyStore({ url: database.url });
      try {
        const [known, other] = [newRow(), newRow()];
        await keys.add([known]);
        await keys.ping();
        const stored = await db.collection('subjects').find().toArray();
        await drop();
        for (const call of [
          async () => keys.ping(),
          async () => keys.byId([known.id]),
          async () => keys.byLookup([known.lookup]),
          async () => keys.add([other]),
        ]) {
          const error = await rejectionOf(call());
          assert.instance(error, UnavailableError);
          assert.match(error.message, lost);
        }
        assert.is(await db.collection<{ _id: string }>('subjects').findOne({ _id: other.id }), null);
        await db.collection('subjects').createIndex({ l: 1 }, { name: 'l', unique: true });
        await db.collection('subjects').deleteMany({});
        assert.match((await rejectionOf(keys.ping())).message, /lost its data/);
        await db.collection('subjects').insertMany(stored);
        await keys.add([other]);
      } finally {
        await keys.close();
      }
    }
    await database.destroy();
  });

  test.run();
} else {
  skipSuite('MongoDB: its data is gone', missing);
}

import type { Document } from 'mongodb';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EngineError } from '../../../src/adapters/engineError.js';
import { layoutOf } from '../../../src/adapters/mongodb/layout.js';
import { filterOf, sortOf } from '../../../src/adapters/mongodb/query.js';
import { openMongoReadStore } from '../../../src/adapters/mongodb/readStore.js';
import type { Query, ReadStore } from '../../../src/ports/readStore.js';
import { type TestDatabase, contractServer, mongoMissing, newDatabase } from '../../support/mongoServer.js';
import { at, batch, doc, idsOf, newCollection, rejectionOf } from '../../support/readStoreDocuments.js';

const given = (process.env['TEST_MONGODB_URL'] ?? '') !== '';
const missing = given ? undefined : mongoMissing();

/** What the application asks, as each read model does. */
const QUERIES: readonly Query[] = [
  { where: { segment: 's1', status: 'free', probe: { gte: 100 } }, sort: [['probe', 1]], limit: 10 },
  { where: { segment: 's1', status: 'free', probe: { lt: 100 } }, sort: [['probe', 1]], limit: 10 },
  { where: { segment: 's1' }, limit: 1 },
  { where: { gift: 'g10' } },
  { where: { changed: { gt: '' } }, sort: [['changed', -1]], limit: 1 },
  { where: { changed: { gt: at(2_900) } }, sort: [['changed', 1]], limit: 1_000 },
  { where: { added: { gt: at(1_000), lte: at(2_000) } }, sort: [['added', 1]], limit: 1_000 },
  { where: { id: { gt: 'd1' } }, sort: [['id', 1]], limit: 1_000 },
  { where: { id: { in: ['d1', 'd2'] } } },
  { where: { id: { prefix: 'd29' } } },
  { where: { id: 'd1' } },
];

/** The kinds of steps in a plan, by whatever name the server has for them. */
function steps(plan: unknown): string[] {
  return [...JSON.stringify(plan).matchAll(/"(?:stage|Node Type)":"([^"]*)"/g)].map(([, name]) => name as string);
}

if (missing === undefined) {
  const server = await contractServer();
  const test = suite<{ database: TestDatabase; store: ReadStore }>('MongoDB: indexes');
  test.before.each(async (context) => {
    context.database = newDatabase(server.url);
    context.store = await openMongoReadStore({ url: context.database.url });
  });
  test.after.each(async ({ database, store }) => {
    await store.close();
    await database.destroy();
  });
  test.after(() => server.stop());

  const indexesOf = async ({ client }: TestDatabase, collection: string): Promise<Document[]> => client.db().collection(collection).indexes();

  test('declared indexes end with the id, and are made once, or later', async ({ database, store }) => {
    const collection = newCollection([['a', 'b.c'], ['d', 'id'], ['id'], ['d']]);
    await store.ensure(collection, { deferIndexes: true });
    const name = layoutOf(collection).collection;
    assert.equal((await indexesOf(database, name)).map(({ key }) => key as unknown), [{ _id: 1 }]);
    for (let time = 0; time < 2; time++) {
      await store.ensure(collection);
      assert.equal((await indexesOf(database, name)).map(({ key }) => key as unknown), [{ _id: 1 }, { f_a: 1, 'f_b~2e~c': 1, _id: 1 }, { f_d: 1, _id: 1 }]);
    }
  });

  test('expired records are taken away by the server', async ({ database }) => {
    const [, expiry] = await indexesOf(database, 'records');
    assert.equal([expiry?.['key'], expiry?.['expireAfterSeconds']], [{ e: 1 }, 0]);
  });

  test('an index of the same name that is another one is told at once', async ({ database, store }) => {
    const collection = newCollection([['a']]);
    await store.ensure(collection, { deferIndexes: true });
    const { collection: name } = layoutOf(collection);
    await database.client.db().collection(name).createIndex({ f_a: 1, _id: 1 }, { name: 'f_a,_id', unique: true });
    const error = await rejectionOf(store.ensure(collection));
    assert.instance(error, EngineError);
    assert.match(error.message, `index f_a,_id of collection ${name}`);
    await database.client.db().collection(name).dropIndex('f_a,_id');
    await store.ensure(collection);
  });

  test('a unique index of somebody else does not pass for a newer document', async ({ database, store }) => {
    const collection = newCollection([['a']]);
    await store.ensure(collection);
    await database.client.db().collection(layoutOf(collection).collection).createIndex({ f_a: 1 }, { name: 'theirs', unique: true });
    const error = await rejectionOf(store.write([batch(collection, [doc('one', 1, { a: 1 }), doc('two', 1, { a: 1 })], 1)]));
    assert.match(error.message, 'theirs');
    assert.is(await store.checkpoint(`${collection.name}@1`), undefined);
  });

  test('fields are brought beside thousands of bodies, once', async ({ database, store }) => {
    const before = newCollection();
    await store.ensure(before);
    for (let k = 0; k < 3; k++) await store.write([batch(before, Array.from({ length: 800 }, (_, n) => doc(`d${k}-${String(n).padStart(3, '0')}`, 1, { n, odd: n % 2 === 1 ? true : [] })))]);
    const after = { ...before, indexes: [{ fields: ['odd', 'n'] }] };
    await store.ensure(after);
    assert.equal(idsOf(await store.find(after, { where: { odd: true, n: 799 } })), ['d0-799', 'd1-799', 'd2-799']);
    assert.is(await store.count(after, { where: { odd: null } }), 1_200);
    assert.equal((await store.get(after, 'd1-007'))?.body, { n: 7, odd: true });
    await database.client.db().collection(layoutOf(after).collection).updateMany({}, { $unset: { f_odd: '' } });
    await store.ensure(after);
    assert.is(await store.count(after, { where: { odd: true } }), 0, 'known to be there, they are not looked for again');
  });

  test('what stands in the database is as the documentation says', async ({ database, store }) => {
    const collection = newCollection([['a']]);
    await store.ensure(collection);
    await store.write([batch(collection, [doc('one', 1, { a: 'x', $b: { '.': 1 } })], 1)]);
    await store.activate(collection.name, 1);
    const db = database.client.db();
    const named = async (name: string, _id: string): Promise<unknown> => db.collection<{ _id: string }>(name).findOne({ _id });
    assert.equal(await named(`doc_${collection.name}_1`, 'one'), { _id: 'one', p: at(1), b: '{"a":"x","$b":{".":1}}', f_a: 'x' });
    assert.equal(await named('checkpoints', `${collection.name}@1`), { _id: `${collection.name}@1`, p: at(1) });
    assert.equal(await named('meta', `active/${collection.name}`), { _id: `active/${collection.name}`, version: 1 });
    await store.drop(collection);
    assert.equal(await Promise.all([named('checkpoints', `${collection.name}@1`), named('meta', `fields/${collection.name}@1`)]), [null, null]);
  });

  if (server.own) console.log('skipped: MongoDB: every query on an index: the test server has no explain');
  else {
    test('every query on an index', async ({ database, store }) => {
      const collection = newCollection([['segment', 'status', 'probe'], ['gift'], ['changed'], ['added']]);
      await store.ensure(collection);
      for (let k = 0; k < 3; k++) {
        const documents = Array.from({ length: 1_000 }, (_, i) => k * 1_000 + i).map((n) => doc(`d${n}`, 1, { segment: `s${n % 50}`, status: n % 3 === 0 ? 'free' : 'used', probe: (n * 7_919) % 3_000, gift: n % 2 === 0 ? `g${n}` : null, changed: at(n), added: at(n), text: 'x'.repeat(300) }));
        await store.write([batch(collection, documents)]);
      }
      for (let n = 0; n < 1_000; n++) await store.records.put(`r${n}`, n, { expiresAt: Date.now() + (n % 2 === 0 ? 60_000 : 600_000) });
      const db = database.client.db();
      const layout = layoutOf(collection);
      const plans: [string, unknown][] = [];
      for (const query of QUERIES) {
        const found = db.collection(layout.collection).find(filterOf(layout, query) as Document, { sort: sortOf(query), ...(query.limit === undefined ? {} : { limit: query.limit }) });
        plans.push([JSON.stringify(query), await found.explain('queryPlanner')]);
      }
      const records = db.collection<{ _id: string; e: Date }>('records');
      plans.push(['records by prefix', await records.find({ _id: { $gte: 'r1', $lt: 'r2' }, e: { $gt: new Date() } }).sort({ _id: 1 }).explain('queryPlanner')]);
      plans.push(['a record', await records.find({ _id: 'r1', e: { $gt: new Date() } }).explain('queryPlanner')]);
      plans.push(['what has expired', await records.find({ e: { $lte: new Date(0) } }).explain('queryPlanner')]);
      for (const [query, plan] of plans) {
        const names = steps((plan as Document)['queryPlanner']);
        assert.not.ok(names.some((name) => /^(COLLSCAN|Seq Scan)$/.test(name)), `${query}: ${names.join(', ')}`);
        assert.ok(names.some((name) => /IXSCAN|IDHACK|EXPRESS|Index/.test(name)), `${query}: ${names.join(', ')}`);
      }
    });
  }

  test.run();
} else {
  console.log(`skipped: MongoDB: indexes: ${missing}`);
}

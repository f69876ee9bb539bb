import type { Document } from 'mongodb';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EngineError } from '../../../src/lib/engineError.js';
import { layoutOf } from '../../../src/adapters/mongodb/layout.js';
import { filterOf, sortOf } from '../../../src/adapters/mongodb/query.js';
import { openMongoReadStore } from '../../../src/adapters/mongodb/readStore.js';
import { inParallel } from '../../../src/lib/async/inParallel.js';
import type { Body, CollectionSpec, Query, ReadStore } from '../../../src/ports/readStore.js';
import { PROJECTIONS } from '../../../src/projections/index.js';
import { recordCommands, telling } from '../../support/engines/mongoCommands.js';
import { type TestDatabase, contractServer, mongoMissing, newDatabase } from '../../support/engines/mongoServer.js';
import { at, batch, doc, idsOf, newCollection, rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { skipSuite } from '../../support/assertions/testWhere.js';

const given = (process.env['TEST_MONGODB_URL'] ?? '') !== '';
const missing = given ? undefined : mongoMissing();

const voucherCodesOf = (segment_id: string): readonly Query[] => [
  { where: { segment_id, status: 'free', probe: { gte: 100 } }, sort: [['probe', 1]], limit: 10 },
  { where: { segment_id, status: 'free', probe: { lt: 100 } }, sort: [['probe', 1]], limit: 10 },
  { where: { segment_id }, limit: 1 },
  { where: { gift_id: 'g10' } },
];
/** Every answer of `GET /ops/parked`, by its parameters. */
const PARKED: readonly Query[] = [
  {},
  { name: 'purchase' },
  { state: 'parked' },
  { name: 'purchase', state: 'parked' },
].flatMap((where) =>
  [{}, { changed: { gt: at(2_900) } }].map((after): Query => ({
    where: { ...where, ...after },
    sort: [['changed', 1]],
    limit: 21,
  })),
);
/** The service's queries beyond documents by id, by read model. */
const QUERIES: Readonly<Record<string, readonly Query[]>> = {
  voucher_codes: voucherCodesOf('s1'),
  catalogue: [
    { where: { changed: { gt: '' } }, sort: [['changed', -1]], limit: 1 },
    { where: { changed: { gt: at(2_900) } }, sort: [['changed', 1]], limit: 1_000 },
    { where: { added: { gt: '' } }, sort: [['added', 1]], limit: 1_000 },
    { where: { added: { gt: at(1_000), lte: at(2_000) } }, sort: [['added', 1]], limit: 1_000 },
  ],
  parked: PARKED,
  gifts: [
    { where: { held: { prefix: 'u5/' } }, sort: [['held', -1]], limit: 21 },
    { where: { held: { gte: 'u5/', lt: `u5/${at(2_000)}` } }, sort: [['held', -1]], limit: 21 },
    { where: { held: `u5/${at(2_005)}`, id: { lt: 'd3' } }, sort: [['id', -1]], limit: 21 },
  ],
  feed: ['buyer', 'client', 'holder', 'merchant'].map((field) => ({
    where: { [field]: 's5', id: { gt: 'd1', lte: 'd2' } },
    sort: [['id', 1]],
    limit: 101,
  })),
  webhook_endpoints: [
    { where: { owner: 's5', state: { in: ['done1', 'done2'] } }, limit: 101 },
    { where: { state: 'parked', id: { gt: 'd1' } }, sort: [['id', 1]], limit: 101 },
  ],
  schedule: ['send_due', 'expires_on'].flatMap((field): Query[] => [
    { where: { [field]: { gte: at(100), lte: at(2_900) } }, sort: [[field, 1]], limit: 100 },
    { where: { [field]: at(2_000), id: { gt: 'd1' } }, sort: [['id', 1]], limit: 100 },
  ]),
  transactions: [
    { sort: [['created_at', -1]], limit: 100 },
    { where: { created_at: { gte: at(100), lte: at(2_900) } }, sort: [['created_at', -1]], limit: 100 },
    { where: { created_at: { gte: at(100), lt: at(2_900) } }, sort: [['created_at', -1]], limit: 100 },
    { where: { created_at: at(2_000), id: { lt: 'd3' } }, sort: [['id', -1]], limit: 100 },
  ],
};
/** Queries on every read model: pages of `verify`, of the totals, and by id. */
const OF_ALL: readonly Query[] = [
  { where: { id: { gt: 'd1' } }, sort: [['id', 1]], limit: 1_000 },
  { sort: [['id', 1]], limit: 1_000 },
  { sort: [['id', 1]], skip: 50, limit: 1_000 },
  { where: { id: { in: ['d1', 'd2'] } } },
  { where: { id: { prefix: 'd29' } } },
  { where: { id: 'd1' } },
];

/** The kinds of steps in a plan, by whatever name the server has for them. */
function steps(plan: unknown): string[] {
  return [...JSON.stringify(plan).matchAll(/"(?:stage|Node Type)":"([^"]*)"/g)].map(([, name]) => name as string);
}

const specOf = (name: string): CollectionSpec => ({
  name,
  version: 1,
  indexes: PROJECTIONS.find((projection) => projection.name === name)!.indexes,
});

/** Enough of everything that a scan would cost more than an index. */
async function fill(store: ReadStore): Promise<void> {
  for (const name of Object.keys(QUERIES)) {
    const collection = specOf(name);
    await store.ensure(collection);
    for (let k = 0; k < 3; k++) {
      const documents = Array.from({ length: 1_000 }, (_, i) => k * 1_000 + i).map((n) => doc(`d${n}`, 1, bodyOf(n)));
      await store.write([batch(collection, documents, 1)]);
    }
  }
  await inParallel(
    Array.from({ length: 600 }, (_, n) => n),
    16,
    async (n) =>
      void (await store.records.put(`r${n}`, n, { expiresAt: Date.now() + (n % 2 === 0 ? 60_000 : 600_000) })),
  );
}

/** Fields of every read model. */
function bodyOf(n: number): Body {
  return {
    segment_id: `s${n % 50}`,
    status: n % 3 === 0 ? 'free' : 'used',
    probe: (n * 7_919) % 3_000,
    gift_id: n % 2 === 0 ? `g${n}` : null,
    buyer: `s${n % 50}`,
    client: `s${n % 50}`,
    holder: `s${n % 50}`,
    merchant: `s${n % 50}`,
    owner: `s${n % 50}`,
    held: `u${n % 50}/${at(n)}`,
    changed: at(n),
    added: at(n),
    send_due: at(n),
    expires_on: at(n),
    created_at: at(n),
    name: n % 20 === 0 ? 'purchase' : `other${n % 7}`,
    state: n % 30 === 0 ? 'parked' : `done${n % 7}`,
    text: 'x'.repeat(300),
  };
}

/** Asks the store for everything that the service asks it for: each method of the port, each way. */
async function askAll(store: ReadStore): Promise<void> {
  for (const [name, own] of Object.entries(QUERIES)) {
    const collection = specOf(name);
    for (const query of [...own, ...OF_ALL]) await store.find(collection, query);
    for (const query of [...own, {}]) await store.count(collection, { where: query.where ?? {} });
    await store.get(collection, 'd5');
    await store.getMany(collection, ['d5', 'd6', 'none']);
    await store.write([batch(collection, [doc('d5', 2, bodyOf(5)), doc('new', 2, bodyOf(6))], 2)]);
    await store.correct(collection, [
      { id: 'd5', expected: at(2), document: { id: 'd5', position: at(3), body: bodyOf(5) } },
      { id: 'd6', expected: at(1), document: undefined },
      { id: 'newer', expected: undefined, document: { id: 'newer', position: at(3), body: bodyOf(5) } },
      { id: 'none', expected: undefined, document: undefined },
    ]);
    await store.ensure({ ...collection, indexes: [...collection.indexes, { fields: ['text'] }] });
    await store.checkpoint(`${name}@1`);
    await store.reached(`${name}@1`, at(9), 50);
    await store.versions(name);
    await store.activate(name, 1, { expected: 0 });
    await store.activate(name, 1, { expected: 1 });
    await store.activate(name, 1);
    await store.active(name);
  }
  await store.boundTo('log');
  await store.boundTo('other');
  // As leases, sessions, throttling, stored answers and checkpoints of process managers do.
  const { records } = store;
  const version = await records.put('lease', { holder: 'a' }, { expected: 0, expiresAt: Date.now() + 60_000 });
  await records.put('lease', { holder: 'b' }, { expected: version! });
  await records.put('lease', { holder: 'c' });
  await records.get('lease');
  await records.list('r1', 10);
  await records.list('r');
  await records.list('');
  await records.delete('lease', 2);
  await records.delete('lease');
  await store.drop(specOf('redemptions'));
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

  const indexesOf = async ({ client }: TestDatabase, collection: string): Promise<Document[]> =>
    client.db().collection(collection).indexes();

  test('makes declared indexes once, or later, ending with the id', async ({ database, store }) => {
    const collection = newCollection([['a', 'b.c'], ['d', 'id'], ['id'], ['d']]);
    await store.ensure(collection, { deferIndexes: true });
    const name = layoutOf(collection).collection;
    assert.equal(
      (await indexesOf(database, name)).map(({ key }) => key as unknown),
      [{ _id: 1 }],
    );
    for (let time = 0; time < 2; time++) {
      await store.ensure(collection);
      assert.equal(
        (await indexesOf(database, name)).map(({ key }) => key as unknown),
        [{ _id: 1 }, { f_a: 1, 'f_b~2e~c': 1, _id: 1 }, { f_d: 1, _id: 1 }],
      );
    }
  });

  test('lets the server delete expired records', async ({ database }) => {
    const [, expiry] = await indexesOf(database, 'records');
    assert.equal([expiry?.['key'], expiry?.['expireAfterSeconds']], [{ e: 1 }, 0]);
  });

  test('reports an index of the same name that is another one at once', async ({ database, store }) => {
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

  test('does not take a foreign unique index for a newer document', async ({ database, store }) => {
    const collection = newCollection([['a']]);
    await store.ensure(collection);
    await database.client
      .db()
      .collection(layoutOf(collection).collection)
      .createIndex({ f_a: 1 }, { name: 'theirs', unique: true });
    const error = await rejectionOf(
      store.write([batch(collection, [doc('one', 1, { a: 1 }), doc('two', 1, { a: 1 })], 1)]),
    );
    assert.match(error.message, 'theirs');
    assert.is(await store.checkpoint(`${collection.name}@1`), undefined);
  });

  test('extracts fields of thousands of bodies once', async ({ database, store }) => {
    const before = newCollection();
    await store.ensure(before);
    for (let k = 0; k < 3; k++)
      await store.write([
        batch(
          before,
          Array.from({ length: 800 }, (_, n) =>
            doc(`d${k}-${String(n).padStart(3, '0')}`, 1, { n, odd: n % 2 === 1 ? true : [] }),
          ),
        ),
      ]);
    const after = { ...before, indexes: [{ fields: ['odd', 'n'] }] };
    await store.ensure(after);
    assert.equal(idsOf(await store.find(after, { where: { odd: true, n: 799 } })), ['d0-799', 'd1-799', 'd2-799']);
    assert.is(await store.count(after, { where: { odd: null } }), 1_200);
    assert.equal((await store.get(after, 'd1-007'))?.body, { n: 7, odd: true });
    await database.client
      .db()
      .collection(layoutOf(after).collection)
      .updateMany({}, { $unset: { f_odd: '' } });
    await store.ensure(after);
    assert.is(
      await store.count(after, { where: { odd: true } }),
      0,
      'known to be there, they are not looked for again',
    );
  });

  test('stores what the documentation says', async ({ database, store }) => {
    const collection = newCollection([['a']]);
    await store.ensure(collection);
    await store.write([batch(collection, [doc('one', 1, { a: 'x', $b: { '.': 1 } })], 1)]);
    await store.activate(collection.name, 1);
    const db = database.client.db();
    const named = async (name: string, _id: string): Promise<unknown> =>
      db.collection<{ _id: string }>(name).findOne({ _id });
    assert.equal(await named(`doc_${collection.name}_1`, 'one'), {
      _id: 'one',
      p: at(1),
      b: '{"a":"x","$b":{".":1}}',
      f_a: 'x',
    });
    assert.equal(await named('checkpoints', `${collection.name}@1`), { _id: `${collection.name}@1`, p: at(1) });
    assert.equal(await named('meta', `active/${collection.name}`), { _id: `active/${collection.name}`, version: 1 });
    await store.drop(collection);
    assert.equal(
      await Promise.all([named('checkpoints', `${collection.name}@1`), named('meta', `fields/${collection.name}@1`)]),
      [null, null],
    );
  });

  test('asks for every declared index, in an order that it has from one end', () => {
    for (const { name, indexes } of PROJECTIONS) {
      const layout = layoutOf({ name, version: 1, indexes });
      const used = (QUERIES[name] ?? []).map((query) => {
        const order = [...(sortOf(query) as Map<string, number>)];
        assert.is(
          new Set(order.map(([, direction]) => direction)).size,
          1,
          `${name}: ${JSON.stringify(query)} is sorted both ways`,
        );
        const equal = Object.entries(filterOf(layout, query) as Document)
          .filter(([, condition]) => '$eq' in (condition as Document))
          .map(([key]) => key);
        const index = layout.indexes.find(({ key }) => {
          const keys = Object.keys(key);
          const rest = keys.slice(equal.length);
          return (
            equal.every((field) => keys.indexOf(field) < equal.length && keys.includes(field)) &&
            (query.sort === undefined || order.every(([field], place) => rest[place] === field))
          );
        });
        assert.ok(index !== undefined, `${name}: no index has ${JSON.stringify(query)} in its order`);
        return index.name;
      });
      assert.equal([...new Set(used)].toSorted(), layout.indexes.map((index) => index.name).toSorted(), name);
    }
  });

  if (server.own) console.log('skipped: MongoDB: every query on an index: the test server has no explain');
  else {
    test('answers every query by an index', async ({ database }) => {
      const recording = recordCommands();
      const store = await openMongoReadStore({ url: telling(database.url) });
      try {
        await fill(store);
        await askAll(store);
        const questions = recording.questions();
        const requested = new Set(questions.map(({ collection }) => collection));
        for (const collection of [
          'records',
          'checkpoints',
          'meta',
          ...Object.keys(QUERIES).map((name) => `doc_${name}_1`),
        ])
          assert.ok(requested.has(collection), `nothing was asked of ${collection}`);
        const db = database.client.db();
        for (const { collection, filter, sort, limit, skip } of questions) {
          const options = {
            ...(sort === undefined ? {} : { sort: sort as never }),
            ...(limit === undefined ? {} : { limit }),
            ...(skip === undefined ? {} : { skip }),
          };
          const plan = await db.collection(collection).find(filter, options).explain('queryPlanner');
          const names = steps((plan as Document)['queryPlanner']);
          const what = `${collection}: ${JSON.stringify({ filter, ...options, ...(sort instanceof Map ? { sort: [...(sort as Map<string, number>)] } : {}) })}: ${names.join(', ')}`;
          // All documents are looked at where all are asked for.
          if (Object.keys(filter).length === 0) continue;
          assert.not.ok(
            names.some((name) => /^(COLLSCAN|Seq Scan|SORT)$/.test(name)),
            what,
          );
          assert.ok(
            names.some((name) => /IXSCAN|IDHACK|EXPRESS|Index/.test(name)),
            what,
          );
        }
        const expired = await db
          .collection('records')
          .find({ e: { $lte: new Date(0) } })
          .explain('queryPlanner');
        assert.ok(
          steps((expired as Document)['queryPlanner']).some((name) => /IXSCAN|Index/.test(name)),
          'what has expired',
        );
      } finally {
        recording.end();
        await store.close();
      }
    });
  }

  test.run();
} else {
  skipSuite('MongoDB: indexes', missing);
}

import type { Document } from 'mongodb';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openMongoKeyStore } from '../../../src/adapters/mongodb/keyStore.js';
import { openMongoReadStore } from '../../../src/adapters/mongodb/readStore.js';
import { EngineError } from '../../../src/lib/engineError.js';
import { FORMAT_MARK } from '../../../src/ports/dataFormat.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { keyStoreContract } from '../../contract/keyStore.js';
import { type FakeAnswer, startFakeMongo } from '../../support/engines/fakeMongo.js';
import { mongoKeyFixture } from '../../support/engines/keyStoreMongo.js';
import { newRow, newRows } from '../../support/engines/keyStoreRows.js';
import { contractServer, mongoMissing } from '../../support/engines/mongoServer.js';
import { rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { freePort } from '../../support/engines/serverProcess.js';

/** Of a server that is given. */
const GIVEN_SERVER_DEVIATIONS = {
  'calls fail with UnavailableError while the engine is gone, and work when it is back':
    'clients of a server that is given are led over no way that can be cut',
};

const given = (process.env['TEST_MONGODB_URL'] ?? '') !== '';
const missing = given ? undefined : mongoMissing();

if (missing === undefined) {
  const { url, own, stop } = await contractServer();
  keyStoreContract('MongoDB', () => mongoKeyFixture(url, own), own ? {} : GIVEN_SERVER_DEVIATIONS);
  const after = suite('MongoDB key store contract: the server');
  after('is stopped', stop);
  after.run();
} else {
  console.log(`skipped: KeyStore: MongoDB: ${missing}`);
}

const test = suite('MongoDB key store');

function listed(index: Document): Document {
  return { cursor: { id: 0n, ns: 'x.subjects', firstBatch: [{ v: 2, ...index }] } };
}

/** A server that answers the opening well. */
async function fake(
  answer: (command: Document) => FakeAnswer,
  index: Document = { name: 'l', key: { l: 1 }, unique: true },
) {
  const found = (...firstBatch: Document[]): FakeAnswer => ({ cursor: { id: 0n, ns: 'keys.meta', firstBatch } });
  return startFakeMongo((command) => {
    if ('listIndexes' in command) return listed(index);
    if ('listCollections' in command) return found();
    // Whether it has any subject.
    if ('find' in command && Object.keys(command['filter']).length === 0) return found({ _id: 'one' });
    return command['find'] === 'meta' ? found({ _id: 'format', ...FORMAT_MARK }) : answer(command);
  });
}

async function refusal(url: string): Promise<string> {
  const error = await rejectionOf(openMongoKeyStore({ url }));
  assert.instance(error, EngineError);
  assert.is((error as EngineError).setting, 'KEYS_URL');
  return error.message;
}

test('names its setting when the address is wrong, or no server is there', async () => {
  assert.match(await refusal('nonsense'), 'KEYS_URL: it is not an address of a MongoDB');
  const port = await freePort();
  assert.match(await refusal(`mongodb://127.0.0.1:${port}/keys`), `no MongoDB answers at 127.0.0.1:${port}`);
});

test('refuses a database that holds the read store, which is backed up with the log', async () => {
  const names = (...all: string[]): FakeAnswer => ({
    cursor: { id: 0n, ns: 'keys.x', firstBatch: all.map((name) => ({ name, type: 'collection' })) },
  });
  let collections = names('meta', 'records', 'checkpoints');
  const server = await startFakeMongo((command) => {
    if ('listCollections' in command) return collections;
    if (command['find'] === 'meta')
      return { cursor: { id: 0n, ns: 'keys.meta', firstBatch: [{ _id: 'format', ...FORMAT_MARK }] } };
    return 'listIndexes' in command ? listed({ name: 'l', key: { l: 1 }, unique: true }) : {};
  });
  try {
    assert.match(await refusal(server.url), /^KEYS_URL: the database holds the read store, too: name one of its own/);
    collections = names('meta', 'subjects');
    const error = await rejectionOf(openMongoReadStore({ url: server.url }));
    assert.instance(error, EngineError);
    assert.match((error as Error).message, /^MONGODB_URL: the database holds the key store, too: name one of its own/);
    await (await openMongoKeyStore({ url: server.url })).close();
  } finally {
    await server.stop();
  }
});

test('refuses an index of lookups that is not unique', async () => {
  const server = await fake(() => ({}), { name: 'l', key: { l: 1 } });
  try {
    assert.match(await refusal(server.url), 'KEYS_URL: index l of collection subjects is not as it was made');
  } finally {
    await server.stop();
  }
});

test('asks for majority and primary whatever the address says, in the order of what is contended', async () => {
  const requested: Document[] = [];
  const server = await fake((command) => {
    requested.push(command);
    return 'find' in command ? { cursor: { id: 0n, ns: 'x.y', firstBatch: [] } } : { n: 1 };
  });
  try {
    const store = await openMongoKeyStore({ url: `${server.url}keys?readPreference=secondary&w=1&journal=false` });
    const rows = newRows(20);
    const ids = rows.map(({ id }) => id);
    await store.add(rows);
    await store.rewrap(rows);
    await store.fence(ids);
    await store.remove(ids);
    await store.byId(ids);
    await store.byLookup(ids);
    await store.page('x', 10);
    await store.erasures('x', 10);
    await store.close();
    for (const command of requested) assert.is(command['$db'], 'keys');
    const reads = requested.filter((command) => 'find' in command);
    assert.is(reads.length, 4);
    for (const read of reads)
      assert.equal(
        [read['readConcern'], read['$readPreference'] ?? { mode: 'primary' }],
        [{ level: 'majority' }, { mode: 'primary' }],
      );
    const [inserts, updates, fences, removals] = requested.filter((command) => !('find' in command)) as [
      Document,
      Document,
      Document,
      Document,
    ];
    for (const write of [inserts, updates, fences, removals])
      assert.equal(write['writeConcern'], { w: 'majority', wtimeout: 10_000, j: true });
    const lookups = (inserts['documents'] as Document[]).map((document) => document['l'] as string);
    assert.equal(lookups, rows.map(({ lookup }) => lookup).toSorted());
    for (const write of [updates, removals]) {
      const updated = (write['updates'] as Document[]).map((update) => (update['q'] as Document)['_id'] as string);
      assert.equal(updated, ids.toSorted());
    }
    for (const update of updates['updates'] as Document[]) assert.not.ok(update['upsert']);
    assert.equal((fences['updates'] as Document[])[0]?.['q'], { _id: { $in: ids.toSorted() }, s: { $exists: true } });
    for (const update of removals['updates'] as Document[])
      assert.equal(Object.keys((update['u'] as Document)['$unset'] as Document), ['s', 'f']);
  } finally {
    await server.stop();
  }
});

test('takes a row of another process once a majority of the servers has it', async () => {
  const [mine, theirs] = [newRow(), newRow()];
  let reads = 0;
  const server = await fake((command) => {
    if ('insert' in command)
      return { n: 0, writeErrors: [{ index: 0, code: 11_000, errmsg: 'E11000 duplicate key error index: l dup key' }] };
    const byLookup = 'l' in (command['filter'] as Document);
    if (byLookup) reads += 1;
    const { id, secret } = theirs;
    const found = byLookup && reads > 2 ? [{ _id: id, l: mine.lookup, s: secret }] : [];
    return { cursor: { id: 0n, ns: 'x.y', firstBatch: found } };
  });
  try {
    const store = await openMongoKeyStore({ url: server.url });
    assert.equal(await store.add([mine]), new Map([[mine.lookup, { ...theirs, lookup: mine.lookup }]]));
    assert.is(reads, 3);
    reads = Number.NEGATIVE_INFINITY;
    const error = await rejectionOf(store.add([mine]));
    assert.instance(error, UnavailableError);
    assert.match(error.message, 'majority');
    await store.close();
  } finally {
    await server.stop();
  }
});

test('keeps commands of long secrets below 2 MB', async () => {
  const bytes: number[] = [];
  const server = await fake((command) => {
    bytes.push(JSON.stringify(command['documents']).length);
    return { n: 1 };
  });
  try {
    const store = await openMongoKeyStore({ url: server.url });
    await store.add(newRows(1_000).map((row) => ({ ...row, secret: 'x'.repeat(4_000) })));
    await store.close();
    assert.is(bytes.length, 3);
    for (const size of bytes) assert.ok(size < 2_000_000);
  } finally {
    await server.stop();
  }
});

test.run();

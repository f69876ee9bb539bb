import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EngineError, NoAnswerError } from '../../../src/lib/engineError.js';
import { addressOf, engineErrorOf, READ_STORE } from '../../../src/adapters/mongodb/address.js';
import { openMongoReadStore } from '../../../src/adapters/mongodb/readStore.js';
import { HELLO, openedWell, startFakeMongo } from '../../support/engines/fakeMongo.js';
import { rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { freePort } from '../../support/engines/serverProcess.js';
import { until } from '../../support/assertions/until.js';

const test = suite('MongoDB: opening');

/** The clear message that opening fails with. */
async function refusal(url: string): Promise<string> {
  const error = await rejectionOf(openMongoReadStore({ url }));
  assert.instance(error, EngineError);
  assert.is((error as EngineError).setting, 'MONGODB_URL');
  assert.match(error.message, /^MONGODB_URL: /);
  return error.message;
}

test('refuses a wrong address before connecting, and never shows its password', async () => {
  for (const url of [
    'http://host/gift',
    'mongodb://',
    'mongodb://host:99999/',
    'mongodb://host/?unknown=1',
    'nonsense',
    '',
  ])
    assert.match(await refusal(url), 'it is not an address of a MongoDB', url);
  assert.match(await refusal('mongodb://host/?unknown=1'), 'option unknown is not supported');
  for (const url of [
    'mongodb://user:s3cr/et@host/',
    'mongodb://user:s3?cr=et@host/',
    'mongodb://user:s3cr:et@host:port/',
    'mongodb://user:s3%cret@host/',
    'mongodb://user:s3cret@host/?unknown=1',
  ]) {
    const message = await refusal(url);
    assert.match(message, 'percent-encoded', url);
    assert.not.match(message, /s3|cret/, url);
  }
  for (const database of ['a.b', 'a%20b', 'a$b', 'x'.repeat(64)])
    assert.match(await refusal(`mongodb://host/${database}`), "can't be the name of a database", database);
});

test('takes the database from the address', () => {
  const names = {
    'mongodb://host': 'gift',
    'mongodb://host/': 'gift',
    'mongodb://host/?retryWrites=false': 'gift',
    'mongodb://host/test': 'test',
    'mongodb://u:p%2Fw@a:1,b:2/my%2Dshop?replicaSet=rs': 'my-shop',
  };
  for (const [url, name] of Object.entries(names)) assert.is(addressOf(url, READ_STORE).database, name, url);
});

test('lets the driver repeat no write, whatever the address says', () => {
  for (const url of ['mongodb://host/', 'mongodb://host/?retryWrites=true'])
    assert.is(addressOf(url, READ_STORE).newClient().options.retryWrites, false, url);
});

test('reports that no server is there', async () => {
  const port = await freePort();
  assert.match(
    await refusal(`mongodb://127.0.0.1:${port}/gift`),
    new RegExp(`no MongoDB answers at 127\\.0\\.0\\.1:${port}: .*ECONNREFUSED`),
  );
});

test('refuses a server that is too old', async () => {
  const server = await startFakeMongo(() => ({}), { ...HELLO, maxWireVersion: 6 });
  try {
    assert.match(
      await refusal(server.url),
      /the server's version does not fit, MongoDB 7\.0 or later does: .*wire version/,
    );
  } finally {
    await server.stop();
  }
});

test('reports refused credentials', async () => {
  const server = await startFakeMongo((command) =>
    'saslStart' in command
      ? { ok: 0, code: 18, codeName: 'AuthenticationFailed', errmsg: 'Authentication failed.' }
      : {},
  );
  try {
    const message = await refusal(server.url.replace('//', '//user:s3cret@'));
    assert.match(message, 'the credentials are refused: Authentication failed.');
    assert.not.match(message, 's3cret');
  } finally {
    await server.stop();
  }
});

for (const [code, message] of [
  [13, 'its user may not read and write the database: not allowed'],
  [8_000, 'MONGODB_URL: not allowed'],
] as const) {
  test(`reports a server that answers with code ${code}`, async () => {
    const server = await startFakeMongo(() => ({ ok: 0, code, errmsg: 'not allowed' }));
    try {
      assert.match(await refusal(server.url), message);
    } finally {
      await server.stop();
    }
  });
}

test('waits at a start for the primary of a failover', async () => {
  for (const code of [10_107, 11_602, 91]) {
    const server = await startFakeMongo(() => ({ ok: 0, code, errmsg: 'not primary' }));
    try {
      assert.instance(await rejectionOf(openMongoReadStore({ url: server.url })), NoAnswerError, `${code}`);
    } finally {
      await server.stop();
    }
  }
});

test('refuses an index of records that is not as it was made', async () => {
  const server = await startFakeMongo((command) => {
    const answer = openedWell(command) ?? {};
    if ('listIndexes' in command) delete answer['cursor'].firstBatch[0].expireAfterSeconds;
    return answer;
  });
  try {
    assert.match(await refusal(server.url), 'index e of collection records is not as it was made');
  } finally {
    await server.stop();
  }
});

test('asks for majority and primary whatever the address says, and leaves nothing open', async () => {
  const requested: Record<string, unknown>[] = [];
  const server = await startFakeMongo((command) => {
    requested.push(command);
    // A database that has nothing yet.
    if ('listIndexes' in command && requested.filter((one) => 'listIndexes' in one).length === 1)
      return { ok: 0, code: 26, errmsg: 'ns does not exist: shop.records' };
    return openedWell(command) ?? ('find' in command ? { cursor: { id: 0n, ns: 'x.y', firstBatch: [] } } : { n: 1 });
  });
  try {
    const store = await openMongoReadStore({ url: `${server.url}shop?readPreference=secondary&w=1&journal=false` });
    await store.checkpoint('gifts@1');
    await store.boundTo('log');
    await store.records.put('key', 1, { expected: 1 });
    await store.activate('gifts', 2);
    await store.close();
    for (const command of requested) assert.is(command['$db'], 'shop');
    const reads = requested.filter((command) => 'find' in command);
    assert.is(reads.length, 3);
    for (const read of reads)
      assert.equal(
        [read['readConcern'], read['$readPreference'] ?? { mode: 'primary' }],
        [{ level: 'majority' }, { mode: 'primary' }],
      );
    const writes = requested.filter(
      (command) => !('find' in command || 'listIndexes' in command || 'listCollections' in command),
    );
    assert.is(writes.length, 5);
    for (const write of writes) assert.equal(write['writeConcern'], { w: 'majority', wtimeout: 10_000, j: true });
    await until(() => server.connections() === 0, 'the end of all connections');
  } finally {
    await server.stop();
  }
});

test("throws an error that is not the engine's as it is", () => {
  const error = new TypeError('a mistake');
  assert.is(engineErrorOf(error, READ_STORE), error);
});

test.run();

/** Data of another release is refused by name wherever it is stored, and nothing is changed. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import pino from 'pino';
import { Sqlite } from '../../src/adapters/embedded/driver.js';
import { formatNumber } from '../../src/adapters/embedded/formatNumber.js';
import { openEventStoreDb } from '../../src/adapters/eventstoredb/eventStore.js';
import { LOG_STREAM } from '../../src/adapters/eventstoredb/filters.js';
import { openMongoKeyStore } from '../../src/adapters/mongodb/keyStore.js';
import { openMongoReadStore } from '../../src/adapters/mongodb/readStore.js';
import { VERSION } from '../../src/lib/version.js';
import { DATA_FORMAT, formatFault } from '../../src/ports/dataFormat.js';
import { openTileFolder, tileFolder } from '../../src/ops/evidence/tree/tileFolder.js';
import { startApp } from '../../src/service/app.js';
import { loadConfig } from '../../src/service/config.js';

import { startEventStoreDouble } from '../support/engines/eventStoreDouble.js';
import type { RawEvent } from '../support/engines/eventStoreDoubleLog.js';
import { mongoMissing, newDatabase, startMongo } from '../support/engines/mongoServer.js';
import { testWhere } from '../support/assertions/testWhere.js';
import { gift } from '../support/service/cli.js';
import { rejectionOf } from '../support/engines/readStoreDocuments.js';

const test = suite<{ dir: string }>('data format');
const LATER = { format: DATA_FORMAT + 1, version: '7.8.9' };
const RUN_LATER = /has data format \d+, and release \S+ reads \d+ only: run release 7\.8\.9 or a later one/;
const BEFORE = /was written by a state before 0\.1\.0, which no release reads: run the program that wrote it/;

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'data-format-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

const contents = (dir: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(dir, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => [name, readFileSync(join(dir, name)).toString('base64')]),
  );

function mark(file: string, number: number): void {
  const database = new Sqlite(file);
  database.pragma(`user_version = ${number}`);
  database.pragma('wal_checkpoint(TRUNCATE)');
  database.close();
}

test('says by which release data are read', () => {
  assert.is(formatFault({ format: DATA_FORMAT, version: '9.9.9' }), undefined);
  assert.match(formatFault(LATER)?.remedy ?? '', '7.8.9');
  assert.match(formatFault({})?.problem ?? '', 'before 0.1.0');
  assert.match(VERSION, /^\d+\.\d+\.\d+/);
});

test('refuses a data folder of which one file is of another format, and changes none', async ({ dir }) => {
  assert.is((await gift(dir, ['import', 'examples/demo.json'])).code, 0);
  const config = loadConfig({ DATA_DIR: dir, PORT: '0', LOG_LEVEL: 'silent' });
  await (await startApp(config, pino({ level: 'silent' }))).close();
  for (const file of ['events.db', 'keys.db', 'read.db']) {
    const path = join(dir, file);
    const own = new Sqlite(path, { readonly: true });
    const number = own.pragma('user_version', { simple: true }) as number;
    own.close();
    for (const [other, words] of [
      [formatNumber(LATER), RUN_LATER],
      [1, BEFORE],
    ] as const) {
      mark(path, other);
      const before = contents(dir);
      assert.match((await rejectionOf(startApp(config, pino({ level: 'silent' })))).message, words, file);
      for (const command of [
        ['import', 'examples/demo.json'],
        ['audit', 'verify'],
        ['backup', join(dir, 'backup')],
      ]) {
        const { code, err } = await gift(dir, command);
        assert.is(code, 1, `${file} ${command.join(' ')}`);
        assert.match(err, words, `${file} ${command.join(' ')}`);
        assert.match(err, file);
      }
      assert.equal(contents(dir), before, file);
    }
    mark(path, number);
  }
  const copied = await gift({}, ['copy', '--from', dir, '--to', join(dir, 'copy'), '--no-seal']);
  assert.is(copied.code, 0, copied.err);
  mark(join(dir, 'events.db'), 1);
  const refused = await gift({}, ['copy', '--from', dir, '--to', join(dir, 'other'), '--no-seal']);
  assert.match(refused.err, BEFORE);
  assert.not(existsSync(join(dir, 'other')));
});

test('refuses a backup of the key store of another format', async ({ dir }) => {
  assert.is((await gift(dir, ['import', 'examples/demo.json'])).code, 0);
  const file = join(dir, 'keys');
  assert.is((await gift(dir, ['keys', 'backup', file])).code, 0);
  const text = readFileSync(file, 'utf8');
  assert.ok(text.startsWith(`{"gift_keys":${DATA_FORMAT},"version":"${VERSION}"`));
  for (const [header, words] of [
    [`{"gift_keys":${LATER.format},"version":"${LATER.version}"`, RUN_LATER],
    ['{"gift_keys":1', BEFORE],
  ] as const) {
    writeFileSync(join(dir, 'other'), text.replace(/^\{"gift_keys":\d+,"version":"[^"]+"/, header));
    assert.match((await gift(dir, ['keys', 'restore', join(dir, 'other')])).err, words);
  }
});

test('refuses a tree of another format, and marks its own before all else', async ({ dir }) => {
  const path = join(dir, 'log');
  assert.is(openTileFolder(dir, 'log').path, path);
  assert.not(existsSync(path));
  await tileFolder(path).keepWitnessed('a head');
  assert.is(readFileSync(join(path, 'format'), 'utf8'), `${DATA_FORMAT} ${VERSION}\n`);
  openTileFolder(dir, 'log');
  writeFileSync(join(path, 'format'), `${LATER.format} ${LATER.version}\n`);
  assert.throws(() => openTileFolder(dir, 'log'), RUN_LATER);
  rmSync(join(path, 'format'));
  assert.throws(() => openTileFolder(dir, 'log'), BEFORE);
  mkdirSync(join(dir, 'empty'));
  openTileFolder(dir, 'empty');
});

test('opens a tree whose first process was killed while it wrote the format', async ({ dir }) => {
  const path = join(dir, 'log');
  mkdirSync(path);
  writeFileSync(join(path, 'format.part'), `${DATA_FORMAT}`);
  await openTileFolder(dir, 'log').keepWitnessed('a head');
  assert.is(readFileSync(join(path, 'format'), 'utf8'), `${DATA_FORMAT} ${VERSION}\n`);
});

const raw = (data: object): RawEvent => ({
  id: randomUUID(),
  type: 'LogCreated',
  contentType: 'application/json',
  data: Buffer.from(JSON.stringify(data)),
  metadata: Buffer.from(JSON.stringify({ commandId: 'c', correlationId: 'c', by: {}, at: '2026-05-04T12:00:00.000Z' })),
});

test('refuses an EventStoreDB of another format or use, and appends nothing there', async () => {
  for (const [stream, own, words] of [
    [LOG_STREAM, [{ logId: 'x' }], BEFORE],
    [LOG_STREAM, [{ logId: 'x', ...LATER }], RUN_LATER],
    [LOG_STREAM, [{ logId: 'x', format: DATA_FORMAT, version: VERSION }, LATER], RUN_LATER],
    ['orders-1', [{}], BEFORE],
  ] as const) {
    const double = await startEventStoreDouble();
    try {
      await double.log.append(stream, own.map(raw), 'none');
      const end = async (): Promise<unknown> => double.log.logBack(1, () => true);
      const before = await end();
      assert.match((await rejectionOf(openEventStoreDb({ url: double.url }))).message, words);
      assert.equal(await end(), before);
    } finally {
      await double.close();
    }
  }
});

testWhere(
  test,
  mongoMissing() === undefined,
  mongoMissing() ?? '',
  'refuses a MongoDB database of another format or use, and marks an empty one',
  async () => {
    const server = await startMongo();
    try {
      for (const [setting, open] of [
        ['MONGODB_URL', openMongoReadStore],
        ['KEYS_URL', openMongoKeyStore],
      ] as const) {
        const { url, client, name, destroy } = newDatabase(server.url);
        const database = client.db(name);
        const names = async (): Promise<unknown> => database.listCollections({}, { nameOnly: true }).toArray();
        await (await open({ url })).close();
        await (await open({ url })).close();
        const marks = database.collection<{ _id: string }>('meta');
        assert.equal(await marks.findOne({ _id: 'format' }), { _id: 'format', format: DATA_FORMAT, version: VERSION });
        await marks.updateOne({ _id: 'format' }, { $set: LATER });
        const later = await rejectionOf(open({ url }));
        assert.match(later.message, new RegExp(`^${setting}: the database ${RUN_LATER.source}`));
        await marks.drop();
        // A read store with nothing but records was emptied while others ran.
        await database.createCollection('gifts_1');
        const before = await names();
        assert.match((await rejectionOf(open({ url }))).message, BEFORE);
        assert.equal(await names(), before);
        await destroy();
      }
    } finally {
      await server.stop();
    }
  },
);

test.run();

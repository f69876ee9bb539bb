import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../../src/adapters/embedded/driver.js';
import { KEY_STORE_FILE, openReader, openWriter } from '../../../../src/adapters/embedded/keyStore/file.js';
import { openEmbeddedKeyStore } from '../../../../src/adapters/embedded/keyStore/keyStore.js';
import type { Added, KeyRequest } from '../../../../src/adapters/embedded/keyStore/messages.js';
import { createKeyWriter } from '../../../../src/adapters/embedded/keyStore/writer.js';
import { DataFileError } from '../../../../src/adapters/embedded/sqlite.js';
import type { Answer } from '../../../../src/adapters/embedded/writerClient.js';
import type { KeyStore, SubjectRow } from '../../../../src/ports/keyStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { keyStoreContract } from '../../../contract/keyStore.js';
import { testWhere } from '../../../support/assertions/testWhere.js';
import { embeddedKeyFixture, newKeyFolder, textsInFiles } from '../../../support/engines/keyStoreEmbedded.js';
import { mapBy, newRow, newRows, newSecret } from '../../../support/engines/keyStoreRows.js';
import { rejectionOf } from '../../../support/engines/readStoreDocuments.js';
import { NO_MOUNT, smallDisk } from '../../../support/faults/smallDisk.js';
import { DISK_FAULTS, failReads } from '../../../support/faults/sqliteFaults.js';

keyStoreContract('embedded', () => embeddedKeyFixture());

const test = suite<{ dir: string; file: string }>('Embedded key store');

test.before.each((context) => {
  context.dir = newKeyFolder();
  context.file = join(context.dir, KEY_STORE_FILE);
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

async function inStore<T>(dir: string, work: (store: KeyStore) => Promise<T>): Promise<T> {
  const store = await openEmbeddedKeyStore({ dir });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The answer to an `add` that added every row. */
const NONE_OTHER: Added = { others: [], removed: [] };

const idsOf = (rows: readonly SubjectRow[]): string[] => rows.map(({ id }) => id);
const flat = (rows: readonly SubjectRow[]): string[] => rows.flatMap(({ id, lookup, secret }) => [id, lookup, secret]);

test('makes its files for their owner alone, and closing leaves one', async ({ dir, file }) => {
  chmodSync(dir, 0o755);
  await inStore(dir, async (store) => {
    await store.add(newRows(3));
    for (const name of readdirSync(dir)) assert.is(statSync(join(dir, name)).mode & 0o777, 0o600, name);
    assert.equal(readdirSync(dir).toSorted(), ['keys.db', 'keys.db-shm', 'keys.db-wal']);
  });
  assert.equal(readdirSync(dir), ['keys.db']);
  assert.is(statSync(file).mode & 0o777, 0o600);
});

/** Opening must be refused in these words, and leave the file as it is. */
async function refused(dir: string, words: RegExp): Promise<void> {
  const file = join(dir, KEY_STORE_FILE);
  const before = readFileSync(file);
  const error = await rejectionOf(openEmbeddedKeyStore({ dir }));
  assert.instance(error, DataFileError);
  assert.match(error.message, words);
  assert.ok(readFileSync(file).equals(before), 'untouched');
  assert.equal(readdirSync(dir), [KEY_STORE_FILE]);
}

test('refuses foreign, newer and damaged files, and leaves them alone', async ({ dir, file }) => {
  writeFileSync(file, 'my diary, '.repeat(500));
  await refused(dir, /not an SQLite file/);
  rmSync(file);
  const foreign = new Sqlite(file);
  foreign.exec('CREATE TABLE subject (id TEXT)');
  foreign.close();
  await refused(dir, /not this program's key store/);
  rmSync(file);
  const rows = newRows(2_000);
  await inStore(dir, (store) => store.add(rows));
  const good = readFileSync(file);
  const newer = new Sqlite(file);
  newer.pragma(`user_version = ${99 * 2 ** 24}`); // Data format 99 of release 0.0.0.
  newer.close();
  await refused(dir, /data format 99.+run release/);
  writeFileSync(file, good.subarray(0, good.length - 8_192));
  await refused(dir, /cut short.+restore it from a backup/);
  writeFileSync(file, Buffer.concat([good.subarray(0, 100), Buffer.alloc(8_192, 7), good.subarray(8_292)]));
  await refused(dir, /damaged/);
  writeFileSync(file, good);
  await inStore(dir, async (store) => assert.equal(await store.byId(idsOf(rows)), mapBy(rows, 'id')));
});

test('fails one call after a read that failed once, and nothing after it', ({ dir }) =>
  inStore(dir, async (store) => {
    const row = newRow();
    await store.add([row]);
    for (const fault of DISK_FAULTS) {
      failReads(fault, [KEY_STORE_FILE]);
      try {
        for (const ask of [
          () => store.byId([row.id]),
          () => store.byLookup([row.lookup]),
          () => store.page(undefined, 10),
          () => store.removed([row.id]),
          () => store.erasures(undefined, 10),
          () => store.ping(),
        ])
          assert.instance(await rejectionOf(ask()), UnavailableError, fault[0]);
      } finally {
        failReads();
      }
      assert.equal(await store.byId([row.id]), mapBy([row], 'id'));
    }
  }));

test('answers a removal when no reader needs the earlier pages any more, or fails it', async ({ dir, file }) => {
  const reader = openReader(file);
  const writer = openWriter(file);
  const answers: Answer[] = [];
  const run = createKeyWriter(writer, { receive: () => [], answer: (some) => answers.push(...some), lockWaitMs: 30 });
  const ask = (...requests: KeyRequest[]): readonly Answer[] => {
    run(requests.map((request, id) => ({ id, request })));
    return answers.splice(0);
  };
  const rows = newRows(3);
  const texts = [rows[0]!.lookup, rows[0]!.secret];
  assert.equal(ask({ kind: 'add', rows: flat(rows) }), [{ id: 0, value: NONE_OTHER }]);
  reader.exec('BEGIN');
  assert.is(reader.prepare('SELECT count(*) FROM subject').pluck().get(), 3);
  const late = newRow();
  const [failed, added] = ask({ kind: 'remove', ids: [rows[0]!.id] }, { kind: 'add', rows: flat([late]) });
  assert.is(failed?.fault?.code, 'SQLITE_BUSY');
  assert.equal(added, { id: 1, value: NONE_OTHER }, 'the others of the group are answered');
  assert.ok(textsInFiles(dir, texts).length > 0);
  reader.exec('COMMIT');
  assert.equal(ask({ kind: 'remove', ids: [rows[0]!.id] }), [{ id: 0, value: undefined }], 'the same call again');
  assert.equal(textsInFiles(dir, texts), []);
  assert.is(reader.prepare('SELECT count(*) FROM subject').pluck().get(), 3);
  writer.close();
  reader.close();
});

test('fails requests while another process keeps the file locked, and one with a fault alone', ({ file }) => {
  const other = openReader(file);
  const writer = openWriter(file);
  const answers: Answer[] = [];
  const run = createKeyWriter(writer, { receive: () => [], answer: (some) => answers.push(...some), lockWaitMs: 30 });
  const [first, second] = newRows(2);
  const wrong = newRow({ id: first!.id });
  other.pragma('query_only = OFF');
  other.exec('BEGIN IMMEDIATE');
  run([1, 2].map((id) => ({ id, request: { kind: 'add', rows: flat([first!]) } })));
  assert.equal(
    answers.splice(0).map(({ fault }) => fault?.code),
    ['SQLITE_BUSY', 'SQLITE_BUSY'],
  );
  other.exec('COMMIT');
  run([first!, wrong, second!].map((row, id) => ({ id, request: { kind: 'add', rows: flat([row]) } })));
  assert.equal(
    answers.map(({ fault }) => fault === undefined),
    [true, false, true],
  );
  writer.close();
  other.close();
});

test('keeps rows of one length, so that SQLite copies none within a page', async ({ dir, file }) => {
  await inStore(dir, async (store) => {
    const rows = Array.from({ length: 3_000 }, (_, n) => newRow({ secret: newSecret(20 + (n % 200)) }));
    await store.add(rows);
    await store.remove(idsOf(rows.slice(0, 1_000)));
  });
  const database = new Sqlite(file);
  const usable = database.pragma('page_size', { simple: true }) as number;
  for (const name of ['subject', 'subject_lookup']) {
    const pages = database
      .prepare<[string], { pagetype: string; payload: number; ncell: number; mx_payload: number }>(
        'SELECT pagetype, payload, ncell, mx_payload FROM dbstat WHERE name = ? AND ncell > 0',
      )
      .all(name);
    for (const { pagetype, payload, ncell, mx_payload: longest } of pages) {
      assert.is(payload, ncell * longest, `${name}: one length`);
      const [header, row] = pagetype === 'leaf' ? [8, 1 + longest] : [12, 5 + longest];
      const most = Math.floor((usable - header) / (row + 2));
      assert.ok(usable - header - most * (row + 2) >= 2 * most, `${name}, ${pagetype}: ${row} bytes a row`);
    }
    assert.equal(new Set(pages.map(({ pagetype }) => pagetype)), new Set(['internal', 'leaf']));
  }
  database.close();
});

test('leaves nothing of removed rows in its pages, whatever came and went between them', async ({ dir }) => {
  await inStore(dir, async (store) => {
    let standing: SubjectRow[] = [];
    const removed: string[] = [];
    for (let round = 0; round < 12; round++) {
      const rows = Array.from({ length: 400 }, (_, n) =>
        newRow({ secret: newSecret(20 + ((n * 53 + round * 7) % 900)) }),
      );
      await store.add(rows);
      standing.push(...rows);
      const changed = standing.filter((_, n) => (n + round) % 7 === 0);
      removed.push(...changed.map(({ secret }) => secret));
      const next = new Map(changed.map((row, n) => [row.id, { ...row, secret: newSecret(20 + ((n * 31) % 700)) }]));
      await store.rewrap([...next.values()]);
      standing = standing.map((row) => next.get(row.id) ?? row);
      const gone = standing.filter((_, n) => (n * 7 + round) % 10 < 4);
      standing = standing.filter((_, n) => (n * 7 + round) % 10 >= 4);
      await store.remove(idsOf(gone));
      removed.push(...gone.flatMap(({ lookup, secret }) => [lookup, secret]));
    }
    assert.equal(textsInFiles(dir, removed), []);
    assert.equal(await store.byId(idsOf(standing)), mapBy(standing, 'id'));
  });
});

const disk = smallDisk(8);

testWhere(
  test,
  disk !== undefined,
  NO_MOUNT,
  'a full disk fails writes with UnavailableError, and they work again when there is space',
  async () => {
    const { dir } = disk!;
    const ballast = join(dir, 'ballast');
    writeFileSync(ballast, Buffer.alloc(3_000_000));
    const store = await openEmbeddedKeyStore({ dir });
    const stored: SubjectRow[] = [];
    let failure: unknown;
    while (failure === undefined) {
      const rows = Array.from({ length: 200 }, () => newRow({ secret: newSecret(1_000) }));
      failure = await store.add(rows).then(
        () => void stored.push(...rows),
        (error: unknown) => error,
      );
    }
    assert.instance(failure, UnavailableError);
    assert.ok(stored.length > 0);
    assert.equal(await store.byId(idsOf(stored)), mapBy(stored, 'id'));
    rmSync(ballast);
    const more = newRows(200);
    assert.equal(await store.add(more), mapBy(more, 'lookup'));
    await store.remove(idsOf(stored));
    assert.equal(
      textsInFiles(
        dir,
        flat(stored).filter((text) => !idsOf(stored).includes(text)),
      ),
      [],
    );
    await store.close();
  },
);

test.after(() => disk?.remove());

test.run();

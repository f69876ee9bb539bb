import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import { gift, type Ran } from '../support/service/cli.js';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore/eventStore.js';
import { type StoredLog, KEYS, storedLog } from '../support/fixtures/storedTree.js';

const test = suite<{ dir: string; log: StoredLog; older: string; latest: string; file: string }>('cli: signed backups');

const NEW_KEY = 'a new key of the tests has thirty-two bytes at least';

/** A backup between two signed heads, which are kept elsewhere. */
test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'signed-backups-'));
  const { dir } = context;
  const log = (context.log = await storedLog());
  const kept = async (name: string): Promise<string> => {
    writeFileSync(join(dir, name), (await log.folder.head()) ?? '');
    return join(dir, name);
  };
  await log.fill(300);
  await log.keepUntilSigned();
  context.older = await kept('older.txt');
  context.file = join(dir, 'backup.log');
  assert.equal((await gift(envOf(log.dir), ['backup', context.file])).code, 0);
  await log.fill(50);
  await log.keepUntilSigned();
  context.latest = await kept('latest.txt');
});
test.after.each(async ({ dir, log }) => {
  await log.close();
  rmSync(dir, { recursive: true });
});

const envOf = (dataDir: string): Record<string, string> => ({ DATA_DIR: dataDir, SEAL_KEY: KEYS[0] ?? '' });
const restored = (dataDir: string, file: string, ...args: readonly string[]): Promise<Ran> =>
  gift(envOf(dataDir), ['restore', file, '--reason', 'a drill', ...args]);

test('a backup that ends before a signed head is refused, and says from where on events are missing', async ({
  dir,
  file,
  latest,
}) => {
  const fresh = join(dir, 'fresh');
  const { code, err, out } = await restored(fresh, file, '--checkpoint', latest);
  assert.deepEqual([code, out], [1, '']);
  assert.match(
    err,
    /^gift: the backup is behind a signed head: the log was cut off at its end: \d+ events are missing from number 30\d on/,
  );
  assert.throws(() => readdirSync(fresh), { code: 'ENOENT' });
});

test('it is restored where that is wanted, and its log agrees with the heads before it', async ({
  dir,
  file,
  older,
  latest,
}) => {
  for (const [name, args] of [
    ['behind', ['--checkpoint', latest, '--behind']],
    ['not behind', ['--checkpoint', older]],
  ] as const) {
    const fresh = join(dir, name);
    const { code, err } = await restored(fresh, file, ...args);
    assert.equal(code, 0, err);
    const verified = await gift(envOf(fresh), ['audit', 'verify', '--json', '--checkpoint', older]);
    assert.equal(verified.code, 0, verified.err);
    assert.deepEqual([verified.records()[0]?.['heads'], verified.records()[0]?.['agreed_size']], [2, 301]);
  }
});

test('a restored log held against a later head of the old one names the restore, however long it has gone on', async ({
  dir,
  file,
  latest,
}) => {
  const fresh = join(dir, 'fresh');
  assert.equal((await restored(fresh, file, '--behind')).code, 0);
  const newer = await storedLog(async () => openEmbeddedEventStore({ dir: fresh }));
  const missing =
    'the log was restored from a backup that lacks 51 signed events, from number 304 on: there stands LogRestored of ';
  for (const count of [10, 100]) {
    await newer.fill(count);
    await newer.keepUntilSigned();
    const { code, out, err } = await gift(envOf(fresh), ['audit', 'verify', '--checkpoint', latest]);
    assert.deepEqual([code, err.split(missing)[0]], [1, 'gift: the log is not what was signed: ']);
    // No holder of the key has signed anything twice.
    const why = 'it covers 354 events, and this log was restored from a backup of the first 303 of them';
    assert.deepEqual(out.split('\n').slice(3), [`${latest}, of 354 events: ${why}`, '']);
  }
  await newer.close();
  const second = join(dir, 'second.log');
  assert.equal((await gift(envOf(fresh), ['backup', second])).code, 0);
  const refused = await restored(join(dir, 'again'), second, '--checkpoint', latest);
  assert.match(
    refused.err,
    /^gift: the backup is behind a signed head: .*; --behind restores this one all the same\n$/,
  );
  const again = await restored(join(dir, 'again'), second, '--checkpoint', latest, '--behind');
  assert.equal(again.code, 0, again.err);
});

test('a backup that is two events behind a head is refused, and restored where that is wanted', async ({
  dir,
  log,
}) => {
  const file = join(dir, 'one-behind.log');
  assert.equal((await gift(envOf(log.dir), ['backup', file])).code, 0);
  // The other one is the end of the backup's own record.
  await log.fill(1);
  await log.keepUntilSigned();
  const latest = join(dir, 'one-more.txt');
  writeFileSync(latest, (await log.folder.head()) ?? '');
  const { code, err } = await restored(join(dir, 'fresh'), file, '--checkpoint', latest);
  assert.equal(code, 1);
  assert.match(err, /^gift: the backup is behind a signed head: .*: 2 events are missing/);
  const again = await restored(join(dir, 'again'), file, '--checkpoint', latest, '--behind');
  assert.equal(again.code, 0, again.err);
});

test('a backup from before and after a change of the key is restored with the new key alone', async ({ dir, log }) => {
  for (const keys of [[...KEYS, NEW_KEY], [NEW_KEY]]) {
    await log.fill(3);
    await log.keepUntilSigned({ keys });
  }
  await log.fill(1);
  const file = join(dir, 'new-key.log');
  assert.equal((await gift(envOf(log.dir), ['backup', file])).code, 0);
  const fresh = join(dir, 'fresh');
  const env = { DATA_DIR: fresh, SEAL_KEY: NEW_KEY };
  const { code, err } = await gift(env, ['restore', file, '--reason', 'a drill']);
  assert.equal(code, 0, err);
  const verified = await gift(env, ['audit', 'verify']);
  assert.equal(verified.code, 0, verified.err);
  assert.match(verified.out, /\n\d+ of the heads are not signed by a known key: their signatures are not verified\n/);
});

test('a log of which no known key has signed a head is not called signed', async ({ log }) => {
  const { code, out, err } = await gift({ DATA_DIR: log.dir, SEAL_KEY: NEW_KEY }, ['audit', 'verify']);
  assert.equal(code, 1, out);
  assert.equal(err, 'gift: no head is signed by a known key: give the key that signed them with --key\n');
});

test('a backup from before a change of the key names the setting to change, and no other backup', async ({
  dir,
  log,
}) => {
  const file = join(dir, 'old-key.log');
  assert.equal((await gift(envOf(log.dir), ['backup', file])).code, 0);
  const fresh = join(dir, 'fresh');
  const args = ['restore', file, '--reason', 'a drill'];
  const refused = await gift({ DATA_DIR: fresh, SEAL_KEY: NEW_KEY }, args);
  assert.equal(refused.code, 1);
  assert.match(
    refused.err,
    /^gift: the backup can't be held against what was signed: no head is signed by a known key/,
  );
  assert.match(refused.err, /Nothing was restored: set SEAL_KEY to OLD,NEW/);
  const { code, err } = await gift({ DATA_DIR: fresh, SEAL_KEY: `${KEYS[0] ?? ''},${NEW_KEY}` }, args);
  assert.equal(code, 0, err);
});

test('a backup whose key is lost is held against roots alone, and refused where it was altered', async ({
  dir,
  log,
}) => {
  const file = join(dir, 'keyless.log');
  const forged = join(dir, 'keyless-forged.log');
  assert.equal((await gift(envOf(log.dir), ['backup', file])).code, 0);
  await log.tamper((database) => database.prepare(`UPDATE events SET data = '{"n":1}' WHERE position = 9`).run());
  assert.equal((await gift(envOf(log.dir), ['backup', forged])).code, 0);
  for (const [name, code] of [
    [file, 0],
    [forged, 1],
  ] as const) {
    const env = { DATA_DIR: `${name}-restored` };
    const restored = await gift(env, ['restore', name, '--reason', 'all keys are lost']);
    assert.equal(restored.code, code, restored.err);
  }
});

test('a backup of a log that was altered is refused, also with a head that it reaches', async ({ dir, log, older }) => {
  await log.events.close();
  const database = new Database(join(log.dir, 'events.db'));
  database.prepare(`UPDATE events SET data = '{"n":1}' WHERE position = 9`).run();
  database.close();
  const file = join(dir, 'forged.log');
  assert.equal((await gift(envOf(log.dir), ['backup', file])).code, 0);
  const { code, err } = await restored(join(dir, 'fresh'), file, '--checkpoint', older, '--behind');
  assert.equal(code, 1);
  assert.match(err, /^gift: the backup is not what was signed: one or more of the events 1 to 301 were altered/);
});

test('a copy keeps the heads of the log that it was made from, and agrees with them', async ({ dir, log }) => {
  await log.events.close();
  const copy = join(dir, 'copy');
  assert.equal((await gift({}, ['copy', '--from', log.dir, '--to', copy])).code, 0);
  const { code, err, records } = await gift(envOf(copy), ['audit', 'verify', '--json']);
  assert.equal(code, 0, err);
  assert.equal(records()[0]?.['heads'], 2);
  assert.ok(Number(records()[0]?.['agreed_size']) > 350);
});

test.run();

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedKeyStore } from '../../src/adapters/embedded/keyStore/keyStore.js';
import type { KeyStore } from '../../src/ports/keyStore.js';
import { loadKeys } from '../../src/service/keys.js';
import { withLogIn } from '../support/engines/eventStoreFolder.js';
import { mapBy, newRow, newRows } from '../support/engines/keyStoreRows.js';
import { gift } from '../support/service/cli.js';
import { giftOnFullDisk } from '../support/service/programs.js';

const test = suite<{ dir: string; data: string; file: string }>('cli/keys');

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'cli-keys-'));
  context.data = join(context.dir, 'data');
  context.file = join(context.dir, 'keys');
  loadKeys({ dataDir: context.data });
  await withLogIn(context.data, async () => undefined);
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

async function inKeys<T>(data: string, work: (keys: KeyStore) => Promise<T>): Promise<T> {
  const keys = await openEmbeddedKeyStore({ dir: data });
  try {
    return await work(keys);
  } finally {
    await keys.close();
  }
}

test('restores a backup without the rows of erased persons, and says how many', async ({ data, file }) => {
  const rows = newRows(5);
  const ids = rows.map(({ id }) => id);
  await inKeys(data, (keys) => keys.add(rows));
  assert.is((await gift(data, ['keys', 'backup', file])).out, `5 rows of the key store are in ${file}\n`);
  const nothingGone = await gift(data, ['keys', 'restore', file]);
  assert.equal([nothingGone.code, nothingGone.out], [0, `5 rows of ${file} are in the key store\n`]);
  await inKeys(data, (keys) => keys.remove(ids.slice(0, 2)));
  const restored = await gift(data, ['keys', 'restore', file]);
  assert.equal([restored.code, restored.err], [0, '']);
  assert.is(restored.out, `3 rows of ${file} are in the key store\n2 rows of erased persons were left out\n`);
  await inKeys(data, async (keys) => assert.equal(await keys.byId(ids), mapBy(rows.slice(2), 'id')));
});

test('fails where other rows stand for the same numbers, and says how many', async ({ data, file }) => {
  const rows = newRows(3);
  await inKeys(data, (keys) => keys.add(rows));
  await gift(data, ['keys', 'backup', file]);
  const fresh = `${data}-fresh`;
  loadKeys({ dataDir: fresh });
  await inKeys(fresh, (keys) => keys.add([newRow({ lookup: rows[0]!.lookup })]));
  const { code, out, err } = await gift(fresh, ['keys', 'restore', file]);
  assert.equal([code, out], [1, `2 rows of ${file} are in the key store\n`]);
  assert.match(err, '1 rows were left out: the key store has other rows');
});

test('names what is not a backup of a key store, and adds nothing', async ({ dir, data, file }) => {
  writeFileSync(file, 'my diary\n');
  for (const [path, words] of [
    [file, `${file} is not a whole backup of a key store`],
    [join(dir, 'nowhere'), "can't be read (ENOENT)"],
    [dir, "can't be read (EISDIR)"],
  ] as const) {
    const { code, out, err } = await gift(data, ['keys', 'restore', path]);
    assert.equal([code, out], [1, '']);
    assert.match(err, words);
  }
});

test('reports a full disk and a missing folder by name, and leaves nothing behind', async ({ dir, data, file }) => {
  await inKeys(data, (keys) => keys.add(newRows(500)));
  const limited = giftOnFullDisk(64, ['keys', 'backup', file], { DATA_DIR: data });
  assert.equal([limited.status, limited.stdout], [1, '']);
  assert.ok(
    limited.stderr.endsWith(`gift: no space left for ${file}: name a file on another disk; nothing was left behind\n`),
    limited.stderr,
  );
  const nowhere = join(dir, 'nowhere');
  const missing = await gift(data, ['keys', 'backup', join(nowhere, 'keys')]);
  assert.equal(
    [missing.code, missing.out, missing.err],
    [1, '', `gift: there is no folder ${nowhere}: make it, or name another file\n`],
  );
  assert.equal(readdirSync(dir), ['data']);
});

test('rewraps no rows of another folder, where 0 of 0 would say that the old key is needed no longer', async (context) => {
  const nowhere = join(context.dir, 'nowhere');
  const { code, out, err } = await gift({ DATA_DIR: nowhere, MASTER_KEY: 'n'.repeat(40) }, ['keys', 'rewrap']);
  assert.equal([code, out], [1, '']);
  assert.match(err, `there is no event log in ${nowhere}: set DATA_DIR to the service's data folder`);
  assert.equal(readdirSync(context.dir), ['data']);
});

test.run();

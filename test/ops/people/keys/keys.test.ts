import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lookupOf, phoneSubject } from '../../../../src/domain/personalFields.js';
import { BackupDamagedError } from '../../../../src/ops/backup/backupLines.js';
import {
  backupKeys,
  checkKeysBackup,
  type RestoredKeys,
  restoreKeys,
  rewrapKeys,
} from '../../../../src/ops/people/keys/keysBackup.js';
import { type Erasure, storedErasures, storeErasure } from '../../../../src/ops/people/erasure/erasureRecord.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { masterKeys } from '../../../../src/runtime/personal/masterKeys.js';
import type { Subjects } from '../../../../src/runtime/personal/subjects.js';
import { testHash } from '../../../support/fixtures/importFile.js';
import { type MemoryKeys, memoryKeys } from '../../../support/engines/memoryKeys.js';
import { rejectionOf } from '../../../support/engines/readStoreDocuments.js';
import { memorySubjects } from '../../../support/fixtures/memorySubjects.js';

const test = suite('key store by hand');
const GOING_ON = new AbortController().signal;
const ROWS = 2_500;

const subjectsOf = (keys: MemoryKeys): Subjects =>
  memorySubjects(keys, ({ kind, text }) => lookupOf(testHash, { kind, text }));

/** A key store with rows of numbers, and their ids. */
async function filled(): Promise<{ keys: MemoryKeys; ids: readonly string[] }> {
  const keys = memoryKeys();
  const names = Array.from({ length: ROWS }, (_, n) => phoneSubject(`+4477009${String(n).padStart(5, '0')}`));
  return { keys, ids: await subjectsOf(keys).ids(names) };
}

/** Backs it up into a file, which `work` gets, and removes it. */
async function withBackup<T>(keys: MemoryKeys, work: (path: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'keys-'));
  const path = join(dir, 'backup');
  const options = { takenAt: '2026-05-04T00:00:00.000Z', signal: GOING_ON };
  try {
    assert.is(await backupKeys(keys, path, options), keys.rows.size);
    assert.is(statSync(path).mode & 0o777, 0o600);
    assert.equal(readdirSync(dir), ['backup']);
    return await work(path);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

async function restored(keys: MemoryKeys, path: string): Promise<RestoredKeys> {
  return restoreKeys(keys, { path, backup: await checkKeysBackup(path, GOING_ON) }, GOING_ON);
}

async function erasuresOf(keys: MemoryKeys): Promise<Erasure[]> {
  const found: Erasure[] = [];
  for await (const erasure of storedErasures(keys)) found.push(erasure);
  return found;
}

const erasure = (id: string, changes: Partial<Erasure> = {}): Erasure => ({
  id,
  person: { kind: 'user', userId: `user of ${id}` },
  reason: 'asked for',
  by: { user: 'support' },
  at: '2026-05-03T00:00:00.000Z',
  ...changes,
});
const DONE = { done_at: '2026-05-03T00:01:00.000Z' };

test('restores every row of a backup, and leaves those that stand', async () => {
  const { keys, ids } = await filled();
  const fresh = memoryKeys();
  const [first = ''] = ids;
  const own = { id: 'another', lookup: keys.rows.get(first)?.lookup ?? '', secret: 's' };
  fresh.rows.set('another', own);
  await withBackup(keys, async (path) => {
    assert.not.match(readFileSync(path, 'utf8'), '+447700900001');
    assert.equal(await restored(fresh, path), { rows: ROWS - 1, erased: 0, others: 1 });
  });
  assert.is(fresh.rows.size, ROWS);
  assert.equal(fresh.rows.get('another'), own);
  const secrets = await subjectsOf(fresh).secrets(ids.slice(1));
  assert.is(secrets.get(ids[7] ?? '')?.toString(), '+447700900007');
});

test('leaves out rows that were removed since, also where the number came back', async () => {
  const { keys, ids } = await filled();
  await withBackup(keys, async (path) => {
    await keys.remove(ids.slice(0, 3));
    const [back] = await subjectsOf(keys).ids([phoneSubject('+447700900000')]);
    assert.equal(await restored(keys, path), { rows: ROWS - 3, erased: 3, others: 0 });
    assert.is((await keys.byId(ids.slice(0, 3))).size, 0);
    assert.is((await subjectsOf(keys).ids([phoneSubject('+447700900000')]))[0], back);
  });
});

test('restores the erasures that are not there, and leaves one that stands', async () => {
  const { keys } = await filled();
  await storeErasure(keys, erasure('a', DONE));
  await storeErasure(keys, erasure('b'));
  const fresh = memoryKeys();
  await storeErasure(fresh, erasure('b', DONE));
  await withBackup(keys, async (path) => {
    for (let n = 0; n < 2; n++) assert.is((await restored(fresh, path)).rows, ROWS);
  });
  assert.equal(await erasuresOf(fresh), [erasure('a', DONE), erasure('b', DONE)]);
});

test('backs up an erasure as undone that was done while its rows were read', async () => {
  const { keys } = await filled();
  await storeErasure(keys, erasure('a', DONE));
  await storeErasure(keys, erasure('b'));
  let finished = false;
  const meanwhile: MemoryKeys = {
    ...keys,
    async page(after, limit) {
      const rows = await keys.page(after, limit);
      if (!finished) for (const id of ['b', 'c']) await storeErasure(keys, erasure(id, DONE));
      finished = true;
      return rows;
    },
  };
  const fresh = memoryKeys();
  await withBackup(meanwhile, (path) => restored(fresh, path));
  assert.equal(await erasuresOf(fresh), [erasure('a', DONE), erasure('b'), erasure('c')]);
});

test('puts erasures back before rows', async () => {
  const { keys } = await filled();
  await storeErasure(keys, erasure('a'));
  const fresh = memoryKeys();
  const broken: MemoryKeys = {
    ...fresh,
    add: async () => {
      throw new UnavailableError('it is away');
    },
  };
  await withBackup(keys, async (path) => {
    assert.instance(await rejectionOf(restored(broken, path)), UnavailableError);
  });
  assert.equal(await erasuresOf(fresh), [erasure('a')]);
});

test('backs up and restores an empty key store', async () => {
  const fresh = memoryKeys();
  await withBackup(memoryKeys(), async (path) =>
    assert.equal(await restored(fresh, path), { rows: 0, erased: 0, others: 0 }),
  );
  assert.is(fresh.rows.size, 0);
});

test('refuses a backup that was cut or altered, and other files', async () => {
  const { keys } = await filled();
  await storeErasure(keys, erasure('a'));
  await withBackup(keys, async (path) => {
    const text = readFileSync(path, 'utf8');
    const lines = text.split('\n');
    for (const damaged of [
      '',
      'x\n',
      '[1]\n{"rows":0,"sha256":""}\n',
      text.slice(0, -5),
      text.slice(0, -1),
      `${lines[0]}\n`,
      lines.slice(0, 100).join('\n'),
      `${lines.slice(0, 100).join('\n')}\n`,
      lines.toSpliced(5, 1).join('\n'),
      text.replace(lines[9] ?? '', (lines[9] ?? '').replace(/[a-m]/, 'n')),
      text.replace('asked for', 'asked fot'),
      text.replaceAll('\n', '\r\n'),
      text.replace(`"rows":${ROWS}`, `"rows":${ROWS - 1}`),
    ]) {
      writeFileSync(path, damaged);
      assert.instance(await rejectionOf(checkKeysBackup(path, GOING_ON)), BackupDamagedError);
    }
  });
});

test('names a backup that changed after its check', async () => {
  const { keys } = await filled();
  await withBackup(keys, async (path) => {
    const backup = await checkKeysBackup(path, GOING_ON);
    writeFileSync(path, readFileSync(path, 'utf8').split('\n').slice(0, 10).join('\n') + '\n');
    const error = await rejectionOf(restoreKeys(memoryKeys(), { path, backup }, GOING_ON));
    assert.instance(error, BackupDamagedError);
  });
});

test('wraps every secret under the first master key', async () => {
  const { keys, ids } = await filled();
  const [OLD, NEW] = ['m'.repeat(43), 'n'.repeat(43)];
  assert.equal(await rewrapKeys(keys, masterKeys([NEW, OLD]), GOING_ON), { rows: ROWS, rewrapped: ROWS, altered: [] });
  const alone = masterKeys([NEW]);
  const [row] = [keys.rows.get(ids[7] ?? '')];
  assert.is(alone.open(row?.secret ?? '', row?.id ?? '').toString(), '+447700900007');
  assert.equal(await rewrapKeys(keys, alone, GOING_ON), { rows: ROWS, rewrapped: 0, altered: [] });
});

test('wraps fenced rows anew, and keeps their fence', async () => {
  const { keys, ids } = await filled();
  const [fenced = '', gone = ''] = ids;
  await keys.fence([fenced]);
  await keys.remove([gone]);
  const [OLD, NEW] = ['m'.repeat(43), 'n'.repeat(43)];
  assert.equal(await rewrapKeys(keys, masterKeys([NEW, OLD]), GOING_ON), {
    rows: ROWS - 1,
    rewrapped: ROWS - 1,
    altered: [],
  });
  assert.is(keys.rows.get(fenced)?.fenced, true);
  assert.is(keys.rows.has(gone), false);
});

test('wraps all others anew where a row was altered, and names that one', async () => {
  const { keys, ids } = await filled();
  const [altered = ''] = ids;
  const row = keys.rows.get(altered);
  if (row === undefined) throw new Error('there is no row');
  const secret = row.secret.slice(0, -4) + (row.secret.endsWith('AAAA') ? 'BBBB' : 'AAAA');
  keys.rows.set(altered, { ...row, secret });
  const [OLD, NEW] = ['m'.repeat(43), 'n'.repeat(43)];
  assert.equal(await rewrapKeys(keys, masterKeys([NEW, OLD]), GOING_ON), {
    rows: ROWS,
    rewrapped: ROWS - 1,
    altered: [altered],
  });
  assert.is(keys.rows.get(altered)?.secret, secret);
});

test.run();

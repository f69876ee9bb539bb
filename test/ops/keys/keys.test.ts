import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lookupOf, phoneSubject } from '../../../src/domain/personalFields.js';
import { backupKeys, KeysBackupDamagedError, readKeysBackup, restoreKeys } from '../../../src/ops/keys/keysBackup.js';
import { rewrapKeys } from '../../../src/ops/keys/rewrapKeys.js';
import { masterKeys } from '../../../src/runtime/personal/masterKeys.js';
import type { Subjects } from '../../../src/runtime/personal/subjects.js';
import { testHash } from '../../support/fixtures/importFile.js';
import { type MemoryKeys, memoryKeys } from '../../support/engines/memoryKeys.js';
import { memorySubjects } from '../../support/fixtures/memorySubjects.js';

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

async function backupOf(keys: MemoryKeys): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'keys-'));
  const path = join(dir, 'backup');
  const options = { takenAt: '2026-05-04T00:00:00.000Z', signal: GOING_ON };
  try {
    assert.is(await backupKeys(keys, path, options), keys.rows.size);
    assert.is(statSync(path).mode & 0o777, 0o600);
    assert.equal(readdirSync(dir), ['backup']);
    return readFileSync(path, 'utf8');
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test('restores every row of a backup, and leaves those that stand', async () => {
  const { keys, ids } = await filled();
  const text = await backupOf(keys);
  assert.not.match(text, '+447700900001');
  const fresh = memoryKeys();
  const [first = ''] = ids;
  const own = { id: 'another', lookup: keys.rows.get(first)?.lookup ?? '', secret: 's' };
  fresh.rows.set('another', own);
  assert.is(await restoreKeys(fresh, readKeysBackup(text), GOING_ON), 1, 'left out');
  assert.is(fresh.rows.size, ROWS);
  assert.equal(fresh.rows.get('another'), own);
  const secrets = await subjectsOf(fresh).secrets(ids.slice(1));
  assert.is(secrets.get(ids[7] ?? '')?.toString(), '+447700900007');
});

test('backs up and restores an empty key store', async () => {
  const fresh = memoryKeys();
  assert.is(await restoreKeys(fresh, readKeysBackup(await backupOf(memoryKeys())), GOING_ON), 0);
  assert.is(fresh.rows.size, 0);
});

test('refuses a backup that was cut or altered, and other files', async () => {
  const { keys } = await filled();
  const text = await backupOf(keys);
  const lines = text.split('\n');
  for (const damaged of [
    '',
    'x\n',
    text.slice(0, -5),
    lines.slice(0, 100).join('\n'),
    lines.toSpliced(5, 1).join('\n'),
    text.replace(lines[9] ?? '', (lines[9] ?? '').replace(/[a-m]/, 'n')),
  ])
    assert.throws(
      () => readKeysBackup(damaged),
      (error: unknown) => error instanceof KeysBackupDamagedError,
    );
});

test('wraps every secret under the first master key', async () => {
  const { keys, ids } = await filled();
  const [OLD, NEW] = ['m'.repeat(43), 'n'.repeat(43)];
  assert.equal(await rewrapKeys(keys, masterKeys([NEW, OLD]), GOING_ON), { rows: ROWS, rewrapped: ROWS });
  const alone = masterKeys([NEW]);
  const [row] = [keys.rows.get(ids[7] ?? '')];
  assert.is(alone.open(row?.secret ?? '', row?.id ?? '').toString(), '+447700900007');
  assert.equal(await rewrapKeys(keys, alone, GOING_ON), { rows: ROWS, rewrapped: 0 });
});

test.run();

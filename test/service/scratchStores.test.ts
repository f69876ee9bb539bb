import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EngineError } from '../../src/lib/engineError.js';
import { openScratch } from '../../src/service/scratchStores.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { underMode } from '../support/faults/otherUser.js';
import { rejects } from '../support/assertions/rejects.js';
import { fillDisk, NO_MOUNT, smallDisk } from '../support/faults/smallDisk.js';

const test = suite<{ dir: string }>('scratch');
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'scratch-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

const copies = (dir: string): string[] => readdirSync(dir).filter((name) => name.startsWith('verify-'));

/** As if they had been made a while ago. */
function grownOld(dir: string): void {
  for (const name of copies(dir)) lutimesSync(join(dir, name), 0, 0);
}

test('goes when it is closed', async ({ dir }) => {
  const scratch = await openScratch(dir);
  assert.is(copies(dir).length, 1);
  await scratch.close();
  assert.equal(copies(dir), []);
});

test('removes what a killed process left, however soon, and keeps what another still uses', async ({ dir }) => {
  const module = new URL('../../src/service/scratchStores.js', import.meta.url).href;
  const other = spawn(process.execPath, [
    '--input-type=module',
    '-e',
    `await (await import(${JSON.stringify(module)})).openScratch(${JSON.stringify(dir)}); console.log('open'); setInterval(() => undefined, 1000);`,
  ]);
  try {
    await once(other.stdout, 'data');
    const theirs = copies(dir);
    grownOld(dir);
    const own = await openScratch(dir);
    assert.is(copies(dir).length, 2, 'one each');
    grownOld(dir);
    await (await openScratch(dir)).close();
    assert.is(copies(dir).length, 2, 'that of this process stays, too');
    await own.close();
    assert.equal(copies(dir), theirs);
  } finally {
    other.kill('SIGKILL');
  }
  await once(other, 'exit');
  grownOld(dir);
  await (await openScratch(dir)).close();
  assert.equal(copies(dir), []);
});

test('keeps a folder that has just been made and is not claimed yet', async ({ dir }) => {
  const making = mkdtempSync(join(dir, 'verify-'));
  await (await openScratch(dir)).close();
  assert.equal(
    copies(dir).map((name) => join(dir, name)),
    [making],
  );
});

test('keeps other folders and files, whatever their names', async ({ dir }) => {
  mkdirSync(join(dir, 'verify-reports'));
  writeFileSync(join(dir, 'verify-reports', 'may.txt'), 'kept');
  writeFileSync(join(dir, 'verify-may.json'), 'kept');
  symlinkSync('verify-reports', join(dir, 'verify-latest'));
  grownOld(dir);
  await (await openScratch(dir)).close();
  assert.equal(copies(dir).toSorted(), ['verify-latest', 'verify-may.json', 'verify-reports']);
  assert.equal(readdirSync(join(dir, 'verify-reports')), ['may.txt']);
});

test('says where nothing can be made, and what to see to', async ({ dir }) => {
  const error = await underMode(dir, 0o555, () =>
    rejects(
      openScratch(dir),
      EngineError,
      /^DATA_DIR: no copy can be made in .* \(EACCES\): see that this user may write there, and that it is not mounted read-only$/,
    ),
  );
  assert.ok(error.message.includes(dir));
});

test('reports a full disk as such, whichever file meets it, and leaves nothing', async () => {
  const disk = smallDisk(1);
  if (disk === undefined) return console.log(NO_MOUNT);
  try {
    const filler = join(disk.dir, 'filler');
    fillDisk(filler);
    for (const room of [0, 4_096, 8_192]) {
      truncateSync(filler, statSync(filler).size - room);
      await rejects(openScratch(disk.dir), UnavailableError, /(database or disk is full|ENOSPC)/);
      assert.equal(copies(disk.dir), [], `${room} bytes left`);
      fillDisk(filler);
    }
  } finally {
    disk.remove();
  }
});

test.run();

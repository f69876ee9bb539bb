import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../../src/adapters/embedded/driver.js';
import { openEmbeddedReadStore } from '../../../../src/adapters/embedded/readStore/readStore.js';
import { DataFileError } from '../../../../src/adapters/embedded/sqlite.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import {
  batch,
  doc,
  filled,
  newCollection,
  projectionOf,
  rejectionOf,
} from '../../../support/engines/readStoreDocuments.js';
import { newFolder } from '../../../support/engines/readStoreEmbedded.js';
import { DISK_FAULTS, failReads } from '../../../support/faults/sqliteFaults.js';
import { NO_MOUNT, smallDisk } from '../../../support/faults/smallDisk.js';
import { testWhere } from '../../../support/assertions/testWhere.js';

const test = suite('Embedded read store: files and disks');

/** Opening must be refused in these words, and leave the file as it is. */
async function refused(dir: string, words: RegExp): Promise<void> {
  const file = join(dir, 'read.db');
  const before = readFileSync(file);
  const error = await rejectionOf(openEmbeddedReadStore({ dir }));
  assert.instance(error, DataFileError);
  assert.match(error.message, words);
  assert.ok(readFileSync(file).equals(before), 'untouched');
  assert.equal(readdirSync(dir), ['read.db']);
}

test('refuses foreign files and leaves them alone', async () => {
  const dir = await newFolder();
  writeFileSync(join(dir, 'read.db'), 'my diary, '.repeat(500));
  await refused(dir, /not an SQLite file/);
  rmSync(join(dir, 'read.db'));
  const foreign = new Sqlite(join(dir, 'read.db'));
  foreign.exec('CREATE TABLE record (key TEXT)');
  foreign.close();
  await refused(dir, /not this program's read store/);
  rmSync(dir, { recursive: true });
});

test("refuses a newer program's file, and damaged ones, and leaves them alone", async () => {
  const dir = await newFolder();
  const file = join(dir, 'read.db');
  const store = await openEmbeddedReadStore({ dir });
  await filled(
    store,
    Array.from({ length: 500 }, (_, n) => ({ n, text: 'x'.repeat(100) })),
    [['n']],
  );
  await store.close();
  assert.equal(readdirSync(dir), ['read.db'], 'closing leaves one file');
  const good = readFileSync(file);
  const newer = new Sqlite(file);
  newer.pragma(`user_version = ${99 * 2 ** 24}`); // Data format 99 of release 0.0.0.
  newer.close();
  await refused(dir, /data format 99.+run release/);
  writeFileSync(file, good.subarray(0, good.length - 8_192));
  await refused(dir, /damaged/);
  writeFileSync(file, Buffer.concat([good.subarray(0, 100), Buffer.alloc(8_192, 7), good.subarray(8_292)]));
  await refused(dir, /damaged/);
  writeFileSync(file, good);
  await (await openEmbeddedReadStore({ dir })).close();
  rmSync(dir, { recursive: true });
});

test('reports damage that is met later as damage', async () => {
  const dir = await newFolder();
  const file = join(dir, 'read.db');
  const store = await openEmbeddedReadStore({ dir });
  const collection = await filled(
    store,
    Array.from({ length: 990 }, (_, n) => ({ n, text: 'x'.repeat(500) })),
    [],
  );
  await store.close();
  const bytes = readFileSync(file);
  const middle = Math.floor(bytes.length / 2 / 4_096) * 4_096;
  writeFileSync(
    file,
    Buffer.concat([bytes.subarray(0, middle), Buffer.alloc(8 * 4_096, 7), bytes.subarray(middle + 8 * 4_096)]),
  );
  const damaged = await openEmbeddedReadStore({ dir });
  const ids = Array.from({ length: 990 }, (_, n) => `d${String(n).padStart(2, '0')}`);
  const met = await rejectionOf(damaged.getMany(collection, ids));
  assert.instance(met, UnavailableError);
  assert.match(met.message, /read\.db: .+ \(SQLITE_CORRUPT/);
  assert.is((met as UnavailableError).publicReason, 'what its disk gives is damaged');
  const write = damaged.write([
    batch(
      collection,
      ids.map((id) => doc(id, 2_000, {})),
      2_000,
    ),
  ]);
  assert.instance(await rejectionOf(write), UnavailableError);
  assert.is(await damaged.checkpoint(projectionOf(collection)), undefined);
  await damaged.close();
  rmSync(dir, { recursive: true });
});

test('fails one call after a read that failed once, and nothing after it', async () => {
  const dir = await newFolder();
  const store = await openEmbeddedReadStore({ dir });
  const collection = await filled(store, [{ n: 1 }], [['n']]);
  for (const fault of DISK_FAULTS) {
    failReads(fault);
    try {
      const asking = [
        () => store.get(collection, 'd00'),
        () => store.getMany(collection, ['d00', 'd01']),
        () => store.find(collection, {}),
        () => store.records.get('x'),
        () => store.active('y'),
      ];
      for (const ask of asking) {
        assert.instance(await rejectionOf(ask()), UnavailableError, fault[0]);
      }
    } finally {
      failReads();
    }
    assert.is((await store.find(collection, {})).length, 1);
  }
  await store.close();
  rmSync(dir, { recursive: true });
});

test('makes a folder that is not there', async () => {
  const dir = await newFolder();
  const store = await openEmbeddedReadStore({ dir: join(dir, 'new', 'folder') });
  await store.close();
  writeFileSync(join(dir, 'file'), '');
  assert.instance(await rejectionOf(openEmbeddedReadStore({ dir: join(dir, 'file') })), DataFileError);
  rmSync(dir, { recursive: true });
});

const FULL = 'a full disk fails writes with UnavailableError, and they work again when there is space';

const disk = smallDisk(8);

testWhere(test, disk !== undefined, NO_MOUNT, FULL, fullDisk);

async function fullDisk(): Promise<void> {
  const { dir } = disk!;
  const ballast = join(dir, 'ballast');
  writeFileSync(ballast, Buffer.alloc(3_000_000));
  const store = await openEmbeddedReadStore({ dir });
  const collection = newCollection([['n']]);
  await store.ensure(collection);
  const text = 'x'.repeat(1_500);
  const group = (k: number) =>
    store.write([
      batch(
        collection,
        Array.from({ length: 300 }, (_, n) => doc(`${k}-${n}`, k, { n, text })),
      ),
      batch(
        collection,
        Array.from({ length: 300 }, (_, n) => doc(`${k}+${n}`, k, { n, text })),
        k,
      ),
    ]);
  let stored = 0;
  let failure: unknown;
  while (failure === undefined) {
    try {
      await group(stored + 1);
      stored++;
    } catch (error) {
      failure = error;
    }
  }
  assert.instance(failure, UnavailableError);
  assert.ok(stored > 0);
  const full = await Promise.allSettled([
    group(stored + 1),
    store.records.put('large', 'x'.repeat(3_000_000)),
    group(stored + 2),
  ]);
  for (const outcome of full) assert.instance((outcome as PromiseRejectedResult).reason, UnavailableError);
  const checkpoint = Number(await store.checkpoint(projectionOf(collection)));
  assert.ok(checkpoint <= stored, 'no checkpoint without its documents');
  assert.ok((await store.count(collection, {})) >= checkpoint * 600, 'reading goes on');
  rmSync(ballast);
  await group(stored + 1);
  // Of a write that failed some documents may stand there, which no checkpoint speaks of.
  const ids = Array.from({ length: stored + 1 }, (_, k) =>
    ['-', '+'].flatMap((sign) => Array.from({ length: 300 }, (_unused, n) => `${k + 1}${sign}${n}`)),
  ).flat();
  assert.ok(
    (await store.getMany(collection, ids)).every((document) => document !== undefined),
    'everything up to the checkpoint is there',
  );
  const others = (await store.find(collection, {})).map(({ id }) => id).filter((id) => !ids.includes(id));
  assert.ok(
    others.every((id) => /^\d+/.exec(id)?.[0] === String(stored + 2)),
    'and nothing but what was to be written after it',
  );
  assert.is(Number(await store.checkpoint(projectionOf(collection))), stored + 1);
  assert.is(await store.records.put('small', 1), 1);
  await store.close();
}

test.after(() => disk?.remove());

test.run();

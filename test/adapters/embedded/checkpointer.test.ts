import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Database } from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { moveNow } from '../../../src/adapters/embedded/checkpoint.js';
import { type Checkpointer, checkpointer } from '../../../src/adapters/embedded/checkpointer.js';
import { openBackground } from '../../../src/adapters/embedded/background.js';
import { Sqlite } from '../../../src/adapters/embedded/driver.js';
import { threadData } from '../../../src/adapters/embedded/thread.js';
import { DEADLINE_MS, until } from '../../support/assertions/until.js';

const test = suite<{ dir: string; file: string; database: Database; checkpoints: Checkpointer }>(
  'Moving a WAL into its file',
);

const PAGE = 4_096;

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-wal-'));
  context.file = join(context.dir, 'things.db');
  context.database = new Sqlite(context.file);
  context.database.pragma('journal_mode = WAL');
  context.database.pragma('wal_autocheckpoint = 0');
  context.database.exec('CREATE TABLE things (text TEXT)');
  context.checkpoints = checkpointer(context.database, threadData(context.file));
});
test.after.each(async ({ dir, database, checkpoints }) => {
  await checkpoints.close();
  database.close();
  rmSync(dir, { recursive: true });
});

/** Writes about so many pages in one transaction. */
function write(database: Database, pages: number): void {
  const insert = database.prepare('INSERT INTO things (text) VALUES (?)');
  database.transaction(() => {
    for (let n = 0; n < pages; n++) insert.run('x'.repeat(PAGE - 200));
  })();
}

test('moves pages while the thread that writes is at work', ({ file, database, checkpoints }) => {
  write(database, 500);
  const all = statSync(file).size + 500 * PAGE;
  checkpoints.move();
  // Without a turn of this thread's event loop.
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; tries < 2_000 && statSync(file).size < all; tries++) Atomics.wait(pause, 0, 0, 5);
  assert.ok(statSync(file).size >= all);
});

test('lets a WAL that is written all the while start from its beginning again', async ({
  file,
  database,
  checkpoints,
}) => {
  let written = 0;
  const longEnough = (): boolean => written >= 5_000 && statSync(`${file}-wal`).size < (written / 2) * PAGE;
  for (const end = performance.now() + DEADLINE_MS; !longEnough() && performance.now() < end; await wait(1)) {
    write(database, 50);
    written += 50;
    checkpoints.move();
  }
  assert.ok(longEnough(), `${statSync(`${file}-wal`).size} bytes for ${written} pages`);
});

test('warns of a thread that died, and starts another', async ({ dir, file, database }) => {
  const deaths = join(dir, 'deaths');
  appendFileSync(deaths, '');
  const script = `import { appendFileSync } from 'node:fs'; appendFileSync(new URL(${JSON.stringify(pathToFileURL(deaths).href)}), 'x'); throw new Error('dead');`;
  const warned: string[] = [];
  const hear = ({ message }: Error): void => void warned.push(message);
  process.on('warning', hear);
  const crashable = checkpointer(
    database,
    threadData(file),
    new URL(`data:text/javascript,${encodeURIComponent(script)}`),
  );
  await until(() => {
    crashable.move();
    return readFileSync(deaths, 'utf8').length >= 2;
  });
  await crashable.close();
  await until(() => warned.length >= 2);
  process.off('warning', hear);
  assert.is(warned[0], 'dead');
  write(database, 10);
});

test('has a shared thread move them, and starts one where that has ended', async ({ file, database }) => {
  for (const crashes of [false, true]) {
    const deaths: string[] = [];
    const script =
      "import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => { throw new Error('dead'); })";
    const shared = openBackground({
      onDeath: ({ message }) => void deaths.push(message),
      atOnce: true,
      ...(crashes ? { script: new URL(`data:text/javascript,${encodeURIComponent(script)}`) } : {}),
    });
    const sharing = checkpointer(database, { ...threadData(file), checkpoints: shared.checkpointsOf(file) });
    write(database, 200);
    const all = statSync(file).size + 200 * PAGE;
    await until(() => {
      sharing.move();
      return statSync(file).size >= all;
    });
    await sharing.close();
    await shared.close();
    assert.equal(deaths, crashes ? ['dead'] : []);
  }
});

test('leaves a fault of the disk to the next write, and throws any other', ({ database }) => {
  const failing = (error: Error): Database =>
    ({
      pragma() {
        throw error;
      },
    }) as unknown as Database;
  assert.is(moveNow(failing(new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL'))), undefined);
  assert.throws(() => moveNow(failing(new TypeError('a fault of ours'))), /of ours/);
  write(database, 10);
  const moved = moveNow(database);
  assert.ok(moved !== undefined && moved.log >= 10 && moved.checkpointed === moved.log);
});

test('ends after moving what was asked for', async ({ dir }) => {
  const file = join(dir, 'closed.db');
  const database = new Sqlite(file);
  database.pragma('journal_mode = WAL');
  database.exec('CREATE TABLE things (text TEXT)');
  write(database, 100);
  const checkpoints = checkpointer(database, threadData(file));
  checkpoints.move();
  await checkpoints.close();
  assert.ok(statSync(file).size >= 100 * PAGE);
  database.close();
  assert.is(statSync(`${file}-wal`, { throwIfNoEntry: false }), undefined, 'nobody else holds it open');
});

test.run();

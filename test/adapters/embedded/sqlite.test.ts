import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Sqlite } from '../../../src/adapters/embedded/driver.js';
import { formatNumber, FORMAT_NUMBER } from '../../../src/adapters/embedded/formatNumber.js';
import type { DatabaseOptions } from '../../../src/adapters/embedded/sqlite.js';
import { DataFileError, openDatabase, unavailableOf } from '../../../src/adapters/embedded/sqlite.js';
import { DATA_FORMAT, FORMAT_MARK } from '../../../src/ports/dataFormat.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { DISK_FAULTS, failReads } from '../../support/faults/sqliteFaults.js';

const test = suite('Data files');

const LOG: DatabaseOptions = {
  kind: 'event log',
  applicationId: 0x1234,
  create: (database) =>
    void database.exec(
      `CREATE TABLE things (name TEXT NOT NULL); CREATE TABLE "odd ""name" (id TEXT PRIMARY KEY) WITHOUT ROWID`,
    ),
};

let dir = '';
let file = '';
test.before.each(() => {
  dir = mkdtempSync(join(tmpdir(), 'gift-file-'));
  file = join(dir, 'things of #1?.db');
});
test.after.each(() => rmSync(dir, { recursive: true }));

/** A log of some 80 pages, closed. */
function makeLog(options: Partial<DatabaseOptions> = {}): void {
  const database = openDatabase(file, { ...LOG, ...options });
  const insert = database.prepare('INSERT INTO things (name) VALUES (?)');
  database.transaction(() => {
    for (let n = 0; n < 300; n++) insert.run(`${n} `.repeat(250));
  })();
  database.close();
}

function contents(): Record<string, string> {
  return Object.fromEntries(readdirSync(dir).map((name) => [name, readFileSync(join(dir, name)).toString('base64')]));
}

/** The refusal's message; checks that nothing in the folder changed. */
function refusalOf(options: Partial<DatabaseOptions> = {}): string {
  const before = contents();
  let message: string | undefined;
  try {
    openDatabase(file, { ...LOG, ...options }).close();
  } catch (error) {
    assert.instance(error, DataFileError);
    assert.is((error as DataFileError).file, file);
    message = (error as DataFileError).message;
  }
  assert.equal(contents(), before, 'the folder is as it was');
  assert.ok(message !== undefined, 'it was refused');
  assert.ok(message!.includes(file));
  return message!;
}

test('makes a new file for its owner alone, marked, durable and in WAL mode, and its folder', () => {
  file = join(dir, 'new', 'folder', 'log.db');
  const database = openDatabase(file, LOG);
  const setting = (name: string): unknown => database.pragma(name, { simple: true });
  assert.equal(
    ['application_id', 'user_version', 'journal_mode', 'synchronous', 'mmap_size', 'busy_timeout'].map(setting),
    [0x1234, FORMAT_NUMBER, 'wal', 2, 0, 5_000],
  );
  database.exec(`INSERT INTO things VALUES ('a')`);
  for (const name of [file, `${file}-wal`, `${file}-shm`]) assert.is(statSync(name).mode & 0o777, 0o600, name);
  assert.is(statSync(join(dir, 'new')).mode & 0o777, 0o700);
  database.close();
});

test('opens a file again, several times at once too, for reading or writing', () => {
  makeLog();
  const [one, two] = [openDatabase(file, LOG), openDatabase(file, { ...LOG, readonly: true })];
  one.exec(`INSERT INTO things VALUES ('more')`);
  assert.is(two.prepare('SELECT count(*) FROM things').pluck().get(), 301);
  assert.throws(() => two.exec(`DELETE FROM things`), /readonly/);
  one.close();
  const three = openDatabase(file, { ...LOG, openElsewhere: true });
  assert.is(three.prepare('SELECT count(*) FROM things').pluck().get(), 301);
  three.close();
  two.close();
  assert.equal(readdirSync(dir).length, 1, 'the last to close leaves one file');
});

test('takes an empty file for none', () => {
  writeFileSync(file, '');
  openDatabase(file, LOG).close();
  assert.is(new Sqlite(file).pragma('user_version', { simple: true }), FORMAT_NUMBER);
});

test('reads what a killed process left in the WAL', () => {
  const script = `
    import { openDatabase } from ${JSON.stringify(new URL('../../../src/adapters/embedded/sqlite.js', import.meta.url).href)};
    const database = openDatabase(process.argv[1], { kind: 'event log', applicationId: 0x1234, create: (d) => d.exec('CREATE TABLE things (name TEXT NOT NULL)') });
    database.exec("INSERT INTO things VALUES ('kept')");
    process.kill(process.pid, 'SIGKILL');`;
  assert.throws(() => execFileSync(process.execPath, ['--input-type=module', '-e', script, file], { stdio: 'ignore' }));
  assert.ok(existsSync(`${file}-wal`));
  const database = openDatabase(file, LOG);
  assert.is(database.prepare('SELECT name FROM things').pluck().get(), 'kept');
  database.close();
});

test('refuses something else and leaves it alone', () => {
  writeFileSync(file, 'Dear diary, '.repeat(500));
  assert.match(
    refusalOf(),
    /is not an SQLite file: move it away, or name another folder in DATA_DIR; it was left as it is/,
  );
  writeFileSync(file, 'x');
  assert.match(refusalOf(), /is not an SQLite file/);
  rmSync(file);
  mkdirSync(file);
  try {
    openDatabase(file, LOG);
    assert.unreachable();
  } catch (error) {
    assert.instance(error, DataFileError);
    assert.match((error as DataFileError).message, /can't be read \(EISDIR\)/);
  }
});

test("refuses another program's database and leaves it alone, in WAL mode and with a WAL too", () => {
  const foreign = new Sqlite(file);
  foreign.exec('CREATE TABLE notes (text)');
  assert.match(refusalOf(), /is not this program's event log: move it away/);
  foreign.pragma('journal_mode = WAL');
  foreign.exec(`INSERT INTO notes VALUES ('a')`);
  const copy = join(dir, 'copy.db');
  for (const suffix of ['', '-wal']) cpSync(file + suffix, copy + suffix);
  foreign.close();
  assert.match(refusalOf(), /is not this program's event log/);
  file = copy;
  assert.match(refusalOf(), /is not this program's event log/);
});

test('refuses a file of ours for another purpose', () => {
  makeLog();
  assert.match(refusalOf({ kind: 'read store', applicationId: 0x4321 }), /is not this program's read store/);
});

/** As a release of this format and version would leave it, closed. */
function markAs(format: number, version: string): void {
  const database = new Sqlite(file);
  database.pragma(`user_version = ${formatNumber({ format, version })}`);
  database.close();
}

test('refuses a newer data format by the release that wrote it, and leaves it alone', () => {
  makeLog();
  markAs(DATA_FORMAT + 1, '12.34.56');
  assert.match(
    refusalOf(),
    /has data format \d+, and release \S+ reads \d+ only: run release 12\.34\.56 or a later one; it was left as it is/,
  );
  assert.match(
    refusalOf({ kind: 'read store' }),
    /12\.34\.56 or a later one, or delete it with its -wal and -shm, it is rebuilt from the log/,
  );
  const { version } = FORMAT_MARK;
  markAs(DATA_FORMAT, '12.34.56');
  openDatabase(file, LOG).close();
  assert.match(version, /^\d{1,3}\.\d{1,3}\.\d{1,3}$/);
});

test('refuses a newer data format that stands in the WAL only', () => {
  makeLog();
  const later = new Sqlite(file);
  later.pragma(`user_version = ${formatNumber({ format: DATA_FORMAT + 1, version: '0.2.0' })}`);
  assert.throws(() => openDatabase(file, LOG), /has data format \d+, .*: run release 0\.2\.0 or a later one/);
  later.close();
});

test('refuses the state before the first release, and leaves it alone', () => {
  makeLog();
  const database = new Sqlite(file);
  database.pragma('user_version = 1');
  database.close();
  assert.match(
    refusalOf(),
    /was written by a state before 0\.1\.0, which no release reads: run the program that wrote it, or begin/,
  );
});

test('refuses a file cut short and leaves it alone', () => {
  makeLog();
  truncateSync(file, statSync(file).size - 4_096);
  assert.match(refusalOf(), /is damaged \(it is cut short\): restore it from a backup/);
  truncateSync(file, 50);
  assert.match(refusalOf(), /is damaged|is not/);
});

test('refuses damage at the ends of a table and leaves it alone', () => {
  makeLog();
  const whole = readFileSync(file);
  for (const page of [1, 2]) {
    const damaged = Buffer.from(whole);
    damaged.fill(0xa5, page === 1 ? 100 : 4_096, page * 4_096);
    writeFileSync(file, damaged);
    assert.match(refusalOf(), /is damaged \(.+\): restore it from a backup; it was left as it is/);
  }
});

test('refuses damage beneath a WAL, and does not write the WAL into it', () => {
  makeLog();
  const database = openDatabase(file, LOG);
  database.exec(`INSERT INTO things VALUES ('new')`);
  const copy = join(dir, 'copy.db');
  for (const suffix of ['', '-wal', '-shm']) cpSync(file + suffix, copy + suffix);
  database.close();
  rmSync(file);
  file = copy;
  const damaged = readFileSync(file);
  damaged.fill(0xa5, 4_096);
  writeFileSync(file, damaged);
  rmSync(`${file}-shm`);
  const before = [file, `${file}-wal`].map((name) => readFileSync(name));
  assert.throws(() => openDatabase(file, LOG), /is damaged/);
  assert.equal(
    [file, `${file}-wal`].map((name) => readFileSync(name)),
    before,
  );
});

test("reports a folder that can't be made", () => {
  writeFileSync(join(dir, 'file'), '');
  file = join(dir, 'file', 'log.db');
  assert.throws(
    () => openDatabase(file, LOG),
    (error: Error) => error instanceof DataFileError && /can't be made \((ENOTDIR|EEXIST)\)/.test(error.message),
  );
});

test('leaves a file empty when making it fails', () => {
  const fail = (): never => {
    throw new RangeError('no');
  };
  assert.throws(
    () => openDatabase(file, { ...LOG, create: fail }),
    (error: Error) => error instanceof RangeError,
  );
  assert.is(statSync(file).size, 0);
  openDatabase(file, LOG).close();
});

test('checks a file again that reads badly once before it calls it damaged', () => {
  openDatabase(file, LOG).close();
  for (const fault of DISK_FAULTS.filter(([code]) => code !== 'SQLITE_IOERR_READ')) {
    failReads(fault, [basename(file)], 2);
    openDatabase(file, LOG).close();
    failReads(fault, [basename(file)]);
    try {
      assert.throws(
        () => openDatabase(file, LOG),
        (error: Error) => error instanceof DataFileError && error.message.includes(fault[1]),
      );
    } finally {
      failReads();
    }
  }
});

test('throws errors of the engine as unavailable, apparent damage too, and others as they are', () => {
  for (const code of [
    'SQLITE_FULL',
    'SQLITE_IOERR_FSYNC',
    'SQLITE_BUSY',
    'SQLITE_BUSY_SNAPSHOT',
    'SQLITE_LOCKED',
    'SQLITE_CANTOPEN',
    'SQLITE_READONLY_DBMOVED',
    'SQLITE_NOMEM',
    'SQLITE_CORRUPT',
    'SQLITE_CORRUPT_INDEX',
    'SQLITE_NOTADB',
  ]) {
    const cause = new Sqlite.SqliteError('so it is', code);
    const error = unavailableOf(cause, file);
    assert.instance(error, UnavailableError);
    assert.is(error.message, `${file}: so it is (${code})`);
    assert.is(error.cause, cause);
    assert.is(error.outcomeUnknown, false);
  }
  for (const other of [new Sqlite.SqliteError('no such table', 'SQLITE_ERROR'), new TypeError('x'), 'text']) {
    try {
      unavailableOf(other, file);
      assert.unreachable();
    } catch (error) {
      assert.is(error, other);
    }
  }
});

test('plans no statement anew for each value that is bound to it', () => {
  const folder = fileURLToPath(new URL('../../../src/adapters/embedded/', import.meta.url));
  const bare = readdirSync(folder)
    .filter((name) => name.endsWith('.js'))
    .flatMap((name) =>
      readFileSync(join(folder, name), 'utf8')
        .split('\n')
        .filter((line) => /\b(?:LIMIT|OFFSET|[a-z_]+ [<>]=?) \?/.test(line))
        .map((line) => `${name}: ${line.trim()}`),
    );
  assert.equal(bare, [], 'see VALUE');
});

test.run();

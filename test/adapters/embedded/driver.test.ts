/** Which SQLite driver runs on which Node. */
import { createRequire } from 'node:module';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type DriverName, driversFor, firstInstalled, Sqlite } from '../../../src/adapters/embedded/driver.js';

const test = suite('the SQLite driver');
const require = createRequire(import.meta.url);

test("chooses the newest driver for the process's Node-API, or the older one where that is safe", () => {
  for (const versions of [{ node: '20.19.0', napi: '9' }, { node: '22.12.0', napi: '9' }, { node: '20.19.0' }])
    assert.equal(driversFor(versions), ['better-sqlite3']);
  for (const node of ['22.14.0', '24.18.9'])
    assert.equal(driversFor({ node, napi: '10' }), ['better-sqlite3-napi', 'better-sqlite3']);
  for (const node of ['24.19.0', '26.0.0']) assert.equal(driversFor({ node, napi: '10' }), ['better-sqlite3-napi']);
});

test('skips a missing driver, not a broken one, and says what to install without any', () => {
  const both = driversFor({ node: '22.14.0', napi: '10' });
  const missing = (what: string): never => {
    throw Object.assign(new Error(`Cannot find module '${what}'`), { code: 'MODULE_NOT_FOUND' });
  };
  const installed =
    (...names: DriverName[]) =>
    (name: DriverName): DriverName =>
      names.includes(name) ? name : missing(name);
  assert.is(firstInstalled(both, installed('better-sqlite3-napi', 'better-sqlite3')), 'better-sqlite3-napi');
  assert.is(firstInstalled(both, installed('better-sqlite3')), 'better-sqlite3');
  assert.throws(
    () => firstInstalled(both, installed()),
    /^better-sqlite3-napi or better-sqlite3 is not installed, and Node .* needs it for SQLite: run npm ci/,
  );
  assert.throws(
    () => firstInstalled(both, (name) => (name === 'better-sqlite3-napi' ? missing('bindings') : name)),
    /Cannot find module 'bindings'/,
  );
});

test('keeps statements that are collected from ending the process', async () => {
  const name = firstInstalled(driversFor(process.versions), (one) => {
    require.resolve(one);
    return one;
  });
  const { version } = require(`${name}/package.json`) as { readonly version: string };
  assert.is(version.split('.')[0], name === 'better-sqlite3-napi' ? '13' : '12');
  const database = new Sqlite(':memory:');
  for (let n = 0; n < 50_000; n++) database.prepare('SELECT 1').pluck().get();
  assert.is(database.prepare('SELECT 2').pluck().get(), 2);
  database.close();
});

test('has an SQLite whose WAL two connections may write and move at once', () => {
  const database = new Sqlite(':memory:');
  const version = database.prepare<[], string>('SELECT sqlite_version()').pluck().get() as string;
  database.close();
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  // https://www.sqlite.org/wal.html#walresetbug: before 3.51.3 that may damage the file.
  assert.ok(major * 1e6 + minor * 1e3 + patch >= 3_051_003, version);
});

test.run();

/** Which SQLite driver runs on which Node. */
import { createRequire } from 'node:module';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { driverFor, Sqlite } from '../../../src/adapters/embedded/driver.js';

const test = suite('the SQLite driver');
const require = createRequire(import.meta.url);

test('is the newest that the process has a Node-API for', () => {
  assert.equal([driverFor('9'), driverFor('10'), driverFor('11'), driverFor(undefined)], ['better-sqlite3', 'better-sqlite3-napi', 'better-sqlite3-napi', 'better-sqlite3']);
});

test('keeps statements that are collected from ending the process', async () => {
  const { version } = require(`${driverFor(process.versions.napi)}/package.json`) as { readonly version: string };
  assert.is(version.split('.')[0], Number(process.versions.napi) >= 10 ? '13' : '12');
  const database = new Sqlite(':memory:');
  for (let n = 0; n < 50_000; n++) database.prepare('SELECT 1').pluck().get();
  assert.is(database.prepare('SELECT 2').pluck().get(), 2);
  database.close();
});

test.run();

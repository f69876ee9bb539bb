import type { Database } from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../../src/adapters/embedded/driver.js';
import { openScrubbing, type Scrubbing } from '../../../../src/adapters/embedded/readStore/scrub.js';

const test = suite('scrubbing');

const ROWS = 20_000;

function filled(): { readonly database: Database; readonly scrubbing: Scrubbing } {
  const database = new Sqlite(':memory:');
  database.exec(`
    CREATE TABLE setting (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE record (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
    CREATE INDEX record_value ON record (value);
    CREATE TABLE doc_people_1 (id NOT NULL PRIMARY KEY, body TEXT NOT NULL);
  `);
  const add = database.prepare('INSERT INTO record (key, value) VALUES (?, ?)');
  database.transaction(() => {
    for (let n = 0; n < ROWS; n++) add.run(`k${n}`, 'a value of some length');
  })();
  database.exec(`INSERT INTO doc_people_1 SELECT key, value FROM record LIMIT 300`);
  const scrubbing = openScrubbing(database);
  scrubbing.markPersonal('doc_people_1');
  return { database, scrubbing };
}

const schema = (database: Database): unknown[] =>
  database.prepare('SELECT type, name, tbl_name FROM sqlite_master ORDER BY 1, 2').raw().all();

function untilDone(scrubbing: Scrubbing, owner: string, now: number): number {
  for (let steps = 1; ; steps++) {
    const outcome = scrubbing.step(owner, now);
    if (outcome === 'done') return steps;
    assert.is(outcome, 'more');
    assert.ok(steps < 10_000);
  }
}

test('leaves tables, indexes and rows as they were', () => {
  const { database, scrubbing } = filled();
  const before = schema(database);
  const rows = database.prepare('SELECT key, value FROM record ORDER BY key').raw();
  const stood = rows.all();
  untilDone(scrubbing, 'a', 1);
  assert.equal(schema(database), before);
  assert.equal(rows.all(), stood);
  assert.is(database.prepare('SELECT count(*) FROM doc_people_1').pluck().get(), 300);
});

test('goes anew where a process was killed while it scrubbed, after a while', () => {
  const { database, scrubbing } = filled();
  const before = schema(database);
  for (let step = 0; step < 4; step++) assert.is(scrubbing.step('killed', 1_000), 'more');
  assert.not.equal(schema(database), before);
  database.exec(`DELETE FROM record WHERE key = 'k1'`);
  assert.is(scrubbing.step('next', 5_000), 'busy');
  untilDone(scrubbing, 'next', 20_000);
  assert.equal(schema(database), before);
  assert.is(database.prepare('SELECT count(*) FROM record').pluck().get(), ROWS - 1);
});

test('starts anew where another process took over', () => {
  const { database, scrubbing } = filled();
  const before = schema(database);
  for (let step = 0; step < 3; step++) scrubbing.step('slow', 1_000);
  untilDone(scrubbing, 'other', 60_000);
  untilDone(scrubbing, 'slow', 61_000);
  assert.equal(schema(database), before);
  assert.is(database.prepare('SELECT count(*) FROM record').pluck().get(), ROWS);
});

test('copies a table anew that got another column meanwhile', () => {
  const { database, scrubbing } = filled();
  for (let step = 0; step < 3; step++) scrubbing.step('a', 1);
  database.exec(`ALTER TABLE record ADD COLUMN more; UPDATE record SET more = 7`);
  untilDone(scrubbing, 'a', 1);
  assert.is(database.prepare('SELECT count(*) FROM record WHERE more = 7').pluck().get(), ROWS);
});

test('takes only marked tables away, and wipes them in steps', () => {
  const { database, scrubbing } = filled();
  assert.not.ok(scrubbing.takeAway('record'));
  assert.ok(scrubbing.takeAway('doc_people_1'));
  assert.not.ok(scrubbing.takeAway('doc_people_1'));
  while (!scrubbing.wipe());
  assert.equal(
    schema(database).filter((row) => JSON.stringify(row).includes('"table"')),
    [
      ['table', 'record', 'record'],
      ['table', 'setting', 'setting'],
    ],
  );
});

test.run();

import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../../src/adapters/embedded/driver.js';
import { layoutOf } from '../../../../src/adapters/embedded/readStore/layout.js';
import { openPartitions } from '../../../../src/adapters/embedded/readStore/partitions.js';
import { pageOf, whereOf } from '../../../../src/adapters/embedded/readStore/query.js';
import { createReader } from '../../../../src/adapters/embedded/readStore/reader.js';
import { tablesOf, type Tables } from '../../../../src/adapters/embedded/readStore/tables.js';
import type { CollectionSpec, Query } from '../../../../src/ports/readStore.js';

const test = suite('Embedded read store: partitions');

type Database = InstanceType<typeof Sqlite>;

const PLAIN: CollectionSpec = { name: 'fed', version: 1, indexes: [{ fields: ['kind'] }] };
const FED: CollectionSpec = { name: 'fed', version: 1, indexes: [{ fields: ['holder'], partitioned: true }] };
const TABLE = '"doc_fed_1"';

const idOf = (n: number): string => `e:${String(n).padStart(5, '0')}`;

function opened(documentsAPartition?: number): { readonly database: Database; readonly tables: Tables } {
  const database = new Sqlite(':memory:');
  database.exec('CREATE TABLE checkpoint (projection TEXT PRIMARY KEY, position TEXT) WITHOUT ROWID');
  const scrubbing = { markPersonal: () => undefined, takeAway: () => false };
  return { database, tables: tablesOf(database, { scrubbing, secure: () => undefined, documentsAPartition }) };
}

function write(tables: Tables, numbers: readonly number[], spec = FED): void {
  const layout = layoutOf(spec);
  const rows = numbers.flatMap((n) => [
    idOf(n),
    idOf(n),
    '{}',
    ...(spec === FED ? [n % 7 === 0 ? null : `h${n % 3}`] : []),
  ]);
  tables.write({ layout, rows });
}

/** Rising on the whole. */
const nearlyRising = (count: number): number[] =>
  Array.from({ length: count }, (_, n) => n).sort((a, b) => a + ((a * 37) % 50) - b - ((b * 37) % 50));

const partitions = (database: Database): unknown[] =>
  database.prepare(`SELECT number, first_id, last_id FROM partitions ORDER BY number`).raw().all();

async function found(database: Database, query: Query): Promise<string[]> {
  return (await createReader(database).find(FED, query)).map(({ id }) => id);
}

test('names documents in another partition than queries look for them in', async () => {
  const { database, tables } = opened(10);
  const numbers = Array.from({ length: 40 }, (_, n) => n);
  const ids = numbers.map(idOf);
  const holder = (n: number): string | null => (n % 7 === 0 ? null : 'h');
  tables.write({
    layout: layoutOf(FED),
    rows: numbers.flatMap((n) => [idOf(n), idOf(n), JSON.stringify({ holder: holder(n) }), holder(n)]),
  });
  const reader = createReader(database);
  assert.equal(await reader.misindexed(FED, ids), []);
  const [none = '', wrong = '', valueless = ''] = [8, 25, 7].map(idOf);
  const move = database.prepare(`UPDATE ${TABLE} SET "partition" = ? WHERE id = ?`);
  move.run(null, none);
  move.run(0, wrong);
  move.run(1, valueless);
  assert.equal((await reader.misindexed(FED, ids)).toSorted(), [none, wrong, valueless].toSorted());
});

test('names every document with a value while a new index has no column yet', async () => {
  const { database, tables } = opened();
  const rows = [idOf(1), idOf(1), '{"holder":"h1"}', null, idOf(2), idOf(2), '{}', null];
  tables.write({ layout: layoutOf(PLAIN), rows });
  const reader = createReader(database);
  assert.equal(await reader.misindexed({ ...FED, indexes: [{ fields: ['holder'] }] }, [idOf(1), idOf(2)]), [idOf(1)]);
});

test('new ids fill one partition after the other, and late ones go to theirs', () => {
  const { database, tables } = opened(10);
  write(tables, [1, 2, 3, 4, 5, 6, 8, 9]);
  write(tables, [20, 22, 23, 24, 25]);
  // Before all, in the first partition, and between the two.
  write(tables, [0, 10, 19, 15]);
  assert.equal(partitions(database), [
    [0, '', idOf(22)],
    [1, idOf(23), idOf(25)],
  ]);
  write(tables, [100]);
  assert.equal(database.prepare(`SELECT "partition" FROM ${TABLE} WHERE id = ?`).pluck().get(idOf(100)), 1);
});

test('a document without values is in no partition, until it has one', () => {
  const { database, tables } = opened(10);
  write(tables, [7, 14, 15]);
  const numberOf = database.prepare(`SELECT "partition" FROM ${TABLE} WHERE id = ?`).pluck();
  assert.is(numberOf.get(idOf(14)), null);
  tables.write({ layout: layoutOf(FED), rows: [idOf(14), idOf(15), '{}', 'h1'] });
  assert.is(numberOf.get(idOf(14)), 0);
});

test('pages are right, whatever came when, and however often', async () => {
  const { database, tables } = opened(10);
  tables.ensure(layoutOf(FED), false);
  const numbers = nearlyRising(200);
  for (let start = 0; start < numbers.length; start += 30) write(tables, numbers.slice(start, start + 40));
  assert.ok(partitions(database).length > 5, `${partitions(database).length} partitions`);
  const all = numbers
    .filter((n) => n % 7 !== 0 && n % 3 === 1)
    .map(idOf)
    .sort();
  assert.equal(await found(database, { where: { holder: 'h1' }, sort: [['id', 1]] }), all);
  for (let after = 0; after < 200; after += 13) {
    const rest = all.filter((id) => id > idOf(after));
    assert.equal(
      await found(database, { where: { holder: 'h1', id: { gt: idOf(after) } }, limit: 9 }),
      rest.slice(0, 9),
    );
    const before = { where: { holder: 'h1', id: { lte: idOf(after) } }, sort: [['id', -1]], limit: 9 } as const;
    assert.equal(
      await found(database, before),
      all
        .filter((id) => id <= idOf(after))
        .reverse()
        .slice(0, 9),
    );
  }
});

test('ids are in the order of their bytes', async () => {
  const { database, tables } = opened(2);
  tables.ensure(layoutOf(FED), false);
  const ids = ['z', '\u{e000}', '\u{ffff}', '\u{10000}', '😀', '\u{10ffff}'];
  for (const id of [...ids].sort()) tables.write({ layout: layoutOf(FED), rows: [id, '1', '{}', 'h1'] });
  assert.equal(await found(database, { where: { holder: 'h1' } }), ids);
  for (const [index, gt] of ids.entries())
    assert.equal(await found(database, { where: { holder: 'h1', id: { gt } } }), ids.slice(index + 1));
});

test('SQLite reads a page from the index alone, and sorts nothing', () => {
  const { database, tables } = opened(10);
  tables.ensure(layoutOf(FED), false);
  write(tables, nearlyRising(100));
  for (const direction of [1, -1] as const) {
    const query: Query = {
      where: { holder: 'h1', id: { gt: idOf(3), lte: idOf(90) } },
      sort: [['id', direction]],
      limit: 9,
    };
    const where = whereOf(layoutOf(FED), query);
    const page = pageOf(layoutOf(FED), query, where);
    const plan = database
      .prepare<unknown[], { readonly detail: string }>(
        `EXPLAIN QUERY PLAN SELECT id, body FROM ${where.text}${page.text}`,
      )
      .all(...where.parameters, ...page.parameters)
      .map(({ detail }) => detail);
    assert.ok(
      plan.some((step) => step.includes('by partition (partition=? AND f:holder=? AND id>? AND id<?)')),
      plan.join('\n'),
    );
    assert.not(
      plan.some((step) => /SCAN|TEMP B-TREE/.test(step)),
      plan.join('\n'),
    );
  }
});

test('what was stored before its index was partitioned is one partition', async () => {
  const { database, tables } = opened(10);
  tables.write({ layout: layoutOf(PLAIN), rows: [1, 2, 4].flatMap((n) => [idOf(n), idOf(n), '{"holder":"h1"}', 'x']) });
  tables.forget();
  tables.ensure(layoutOf(FED), false);
  write(tables, [3, 5, 25]);
  assert.equal(partitions(database), [
    [0, '', idOf(4)],
    [1, idOf(5), idOf(25)],
  ]);
  const stored = [1, 2, 4, 25].map(idOf);
  assert.equal(await found(database, { where: { holder: 'h1' } }), stored);
});

test('a transaction that is rolled back leaves no partition behind', () => {
  const { database, tables } = opened(2);
  database.exec('BEGIN');
  write(tables, [1, 2, 3, 4]);
  database.exec('ROLLBACK');
  tables.forget();
  write(tables, [1, 2]);
  assert.equal(partitions(database), [[0, '', idOf(2)]]);
});

test('a dropped table leaves none, and a store without partitions needs none', () => {
  const { database, tables } = opened(2);
  tables.drop(layoutOf(PLAIN));
  write(tables, [1, 2, 3]);
  // As builds are dropped that no release knows.
  tables.drop(layoutOf({ ...FED, indexes: [] }));
  assert.equal(partitions(database), []);
  openPartitions(database).remove(TABLE);
});

test.run();

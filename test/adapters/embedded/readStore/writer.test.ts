import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openReader, openWriter, READ_STORE_FILE } from '../../../../src/adapters/embedded/readStore/file.js';
import { layoutOf } from '../../../../src/adapters/embedded/readStore/layout.js';
import type {
  Answer,
  Numbered,
  EncodedDocuments,
  WriterRequest,
} from '../../../../src/adapters/embedded/readStore/messages.js';
import { createWriter } from '../../../../src/adapters/embedded/readStore/writer.js';
import type { Checkpoint } from '../../../../src/ports/readStore.js';
import { at } from '../../../support/engines/readStoreDocuments.js';
import { newFolder } from '../../../support/engines/readStoreEmbedded.js';

/** A writer on this thread, and its answers. */
interface Bench {
  readonly database: Database;
  /** Another connection, as another process would have. */
  readonly other: Database;
  /** Requests that come while it works. */
  readonly meanwhile: Numbered[][];
  now: number;
  /** How often the WAL was to be moved. */
  checkpoints: number;
  /** Groups of answers since the last call. */
  run(...requests: readonly WriterRequest[]): Answer[][];
  count(table: string): number;
}

const test = suite<{ bench: Bench; dir: string }>('Embedded read store: the writer');

const LAYOUT = layoutOf({ name: 'things', version: 1, indexes: [{ fields: ['n'] }] });
const TABLE = 'doc_things_1';

interface Packed {
  readonly documents: EncodedDocuments;
  readonly checkpoints: readonly Checkpoint[];
}

function packed(from: number, count: number, checkpoint?: number): Packed {
  const rows = Array.from({ length: count }, (_, n) => [
    `d${from + n}`,
    at(from + n),
    JSON.stringify({ n, text: 'x'.repeat(300) }),
    n,
  ]).flat();
  return {
    documents: { layout: LAYOUT, rows },
    checkpoints: checkpoint === undefined ? [] : [{ projection: LAYOUT.name, position: at(checkpoint) }],
  };
}

function write(call: number, { documents, checkpoints }: Packed, last = true): WriterRequest {
  return { kind: 'write', call, last, documents: [documents], checkpoints };
}

function put(key: string, expiresAt?: number): WriterRequest {
  return { kind: 'put', key, value: '1', expected: undefined, expiresAt };
}

/** Requests as they come, numbered from 1; parts that are not the last are not answered. */
function numbered(requests: readonly WriterRequest[]): Numbered[] {
  return requests.map((request, index) => ({ id: request.kind === 'write' && !request.last ? 0 : index + 1, request }));
}

test.before.each(async (context) => {
  const dir = await newFolder();
  const file = join(dir, READ_STORE_FILE);
  const other = openReader(file);
  other.pragma('query_only = OFF');
  const database = openWriter(file);
  const groups: Answer[][] = [];
  const meanwhile: Numbered[][] = [];
  const bench: Bench = {
    database,
    other,
    meanwhile,
    now: 1_000,
    checkpoints: 0,
    run(...requests) {
      groups.length = 0;
      writer.take(numbered(requests));
      while (writer.work());
      return [...groups];
    },
    count: (table) => other.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() as number,
  };
  const port = {
    receive: () => meanwhile.shift() ?? [],
    answer: (answers: readonly Answer[]) => void groups.push([...answers]),
    checkpoint: () => void bench.checkpoints++,
  };
  const writer = createWriter(database, port, { now: () => bench.now, lockWaitMs: 50 });
  Object.assign(context, { bench, dir });
});

test.after.each(({ bench, dir }) => {
  bench.database.close();
  bench.other.close();
  rmSync(dir, { recursive: true });
});

test('adds requests to the group that come while it works', ({ bench }) => {
  bench.meanwhile.push([], numbered([put('a'), put('a')]));
  const groups = bench.run(write(1, packed(1, 2, 2)), write(2, packed(3, 2)), put('b'));
  assert.is(groups.length, 1);
  assert.is(groups[0]?.length, 5);
  assert.is(bench.count(TABLE), 4);
});

test('writes records before documents', ({ bench }) => {
  const order = bench
    .run(write(1, packed(1, 1)), { kind: 'activate', name: 'x', version: 1, expected: undefined }, put('a'))
    .flat()
    .map(({ id }) => id);
  assert.equal(order, [3, 1, 2]);
});

test('limits the size of a group', ({ bench }) => {
  const groups = bench.run(...Array.from({ length: 25 }, (_, k) => write(k + 1, packed(k * 1_000, 1_000))));
  assert.ok(groups.length >= 2, `${groups.length} groups`);
  assert.is(groups.flat().length, 25);
  assert.is(bench.count(TABLE), 25_000);
});

test('keeps a large cache while much is written at a time, and for a while after', ({ bench }) => {
  const room = (): unknown => bench.database.pragma('cache_size', { simple: true });
  const little = room();
  bench.run(write(1, packed(0, 900)));
  assert.is(room(), little);
  bench.run(write(2, packed(0, 1_000)));
  const much = room();
  assert.ok(Number(much) < Number(little), 'in KiB, negative');
  for (let n = 0; n < 999; n++) bench.run(put('a'));
  assert.is(room(), much, 'a rebuild writes in between');
  bench.run(put('a'));
  assert.is(room(), little);
});

test('fails a failing request alone', ({ bench }) => {
  bench.other.exec(
    "CREATE TRIGGER refuse BEFORE INSERT ON record WHEN NEW.key = 'bad' BEGIN SELECT RAISE(ABORT, 'refused'); END",
  );
  const answers = bench.run(put('a'), put('bad'), write(1, packed(1, 3, 3)), put('b')).flat();
  assert.equal(
    answers.map(({ id, fault }) => [id, fault?.message]),
    [
      [1, undefined],
      [2, 'refused'],
      [4, undefined],
      [3, undefined],
    ],
  );
  assert.equal([bench.count('record'), bench.count(TABLE), bench.count('checkpoint')], [2, 3, 1]);
});

test('writes nothing after a failed part of a write', ({ bench }) => {
  bench.run(write(1, packed(1, 1)));
  bench.other.exec(
    `CREATE TRIGGER refuse BEFORE INSERT ON ${TABLE} WHEN NEW.id = 'd15' BEGIN SELECT RAISE(ABORT, 'refused'); END`,
  );
  const together = bench
    .run(
      write(2, packed(10, 10), false),
      write(2, packed(20, 10), false),
      write(2, packed(30, 10, 39)),
      write(3, packed(50, 1)),
    )
    .flat();
  assert.equal(
    together.map(({ id, fault }) => [id, fault?.message]),
    [
      [3, 'refused'],
      [4, undefined],
    ],
  );
  bench.run(write(4, packed(10, 10), false));
  const apart = bench.run(write(4, packed(20, 10), false), write(4, packed(30, 10, 39))).flat();
  assert.equal(
    apart.map(({ id, fault }) => [id, fault?.message]),
    [[2, 'refused']],
  );
  assert.equal([bench.count(TABLE), bench.count('checkpoint')], [2, 0]);
  bench.other.exec('DROP TRIGGER refuse');
  assert.equal(
    bench.run(write(4, packed(10, 30, 39))).flat(),
    [{ id: 1 }],
    'it is forgotten once the last part has come',
  );
});

test('fails what does not fit on a full disk, and nothing else', ({ bench }) => {
  bench.run(write(1, packed(1, 100, 100)));
  bench.database.pragma(`max_page_count = ${(bench.database.pragma('page_count', { simple: true }) as number) + 20}`);
  const answers = bench
    .run(write(2, packed(1_000, 1_000), false), write(2, packed(2_000, 10, 2_010)), write(3, packed(101, 5, 105)))
    .flat();
  assert.equal(
    answers.map(({ id, fault }) => [id, fault?.code]),
    [
      [2, 'SQLITE_FULL'],
      [3, undefined],
    ],
  );
  assert.equal(
    [bench.count(TABLE), bench.other.prepare('SELECT position FROM checkpoint').pluck().get()],
    [105, at(105)],
  );
  bench.database.pragma('max_page_count = 1000000');
  assert.equal(bench.run(write(2, packed(1_000, 1_000, 1_999))).flat(), [{ id: 1 }]);
  assert.is(bench.count(TABLE), 1_105);
});

test('waits for a lock of another process, not for ever', ({ bench }) => {
  bench.other.exec('BEGIN IMMEDIATE');
  const started = performance.now();
  const answers = bench.run(put('a'), write(1, packed(1, 1), false), write(1, packed(2, 1, 2))).flat();
  const ms = performance.now() - started;
  assert.equal(
    answers.map(({ fault }) => fault?.code),
    ['SQLITE_BUSY', 'SQLITE_BUSY'],
  );
  assert.ok(ms >= 45, `${ms} ms`);
  bench.other.exec('ROLLBACK');
  assert.equal(bench.run(put('a'), write(1, packed(2, 1, 2))).flat(), [{ id: 1, value: 1 }, { id: 2 }]);
});

test('makes a table again that another process dropped or changed', ({ bench }) => {
  bench.run({ kind: 'ensure', layout: LAYOUT, deferIndexes: false }, write(1, packed(1, 5)));
  bench.other.exec(`DROP TABLE ${TABLE}`);
  assert.equal(bench.run(put('a'), write(2, packed(1, 2))).flat(), [{ id: 1, value: 1 }, { id: 2 }]);
  assert.is(bench.count(TABLE), 2);
});

test('deletes expired records while others are written', ({ bench }) => {
  bench.run(put('first'));
  bench.run(...Array.from({ length: 450 }, (_, n) => put(`k${n}`, 2_000 + n)), put('stays', 1e9), put('for ever'));
  bench.now = 2_100;
  bench.run(put('b'));
  assert.is(bench.count('record'), 454, 'only so often');
  bench.now = 30_000;
  for (const left of [254, 54, 4]) {
    bench.run(put('b'));
    assert.is(bench.count('record'), left);
  }
});

test('deletes expired records after a clock that was ahead has been set back, too', ({ bench }) => {
  bench.run(put('stays', 1e9), put('goes', 90_000));
  bench.now = 1e8;
  bench.run(put('b'));
  bench.now = 60_000;
  bench.run(put('late', 61_000));
  bench.now = 100_000;
  bench.run(put('b'));
  assert.is(bench.count('record'), 2);
});

test('moves the WAL after many small groups in a row, not between large ones', ({ bench }) => {
  bench.run(write(1, packed(0, 2_500)));
  bench.run(write(2, packed(2_500, 2_500)));
  bench.run(put('lease'));
  bench.run(write(3, packed(5_000, 2_500)));
  for (let n = 0; n < 9; n++) bench.run(put('a'));
  assert.is(bench.checkpoints, 0);
  bench.run(put('a'));
  assert.is(bench.checkpoints, 1);
  for (let n = 0; n < 45; n++) bench.run(write(n, packed(n * 100, 100)));
  assert.is(bench.checkpoints, 2);
});

test.run();

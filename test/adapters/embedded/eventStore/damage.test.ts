import { copyFileSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../../src/adapters/embedded/driver.js';
import { openEmbeddedEventStore } from '../../../../src/adapters/embedded/eventStore/eventStore.js';
import { eventLogFile } from '../../../../src/adapters/embedded/eventStore/log.js';
import { openEmbeddedReadStore } from '../../../../src/adapters/embedded/readStore/readStore.js';
import { DataFileError } from '../../../../src/adapters/embedded/sqlite.js';
import type { EventStore, Position } from '../../../../src/ports/eventStore.js';
import { AlteredEventError, UnavailableError } from '../../../../src/ports/unavailable.js';
import { batchesOf, event, events, failureOf } from '../../../support/engines/eventStoreEvents.js';
import { inFolder } from '../../../support/engines/eventStoreFolder.js';
import { DISK_FAULTS, failReads } from '../../../support/faults/sqliteFaults.js';
import { until } from '../../../support/assertions/until.js';

const test = suite('Embedded event store: damaged logs');

test('reports deep damage when it is read, and not before', () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    for (let n = 0; n < 40; n++) await store.append(`stream-${n}`, events(50), 'none');
    await store.close();
    const file = eventLogFile(dir);
    const bytes = readFileSync(file);
    // All but the root pages at the beginning and the last rows.
    bytes.fill(0xa5, 40 * 4_096, bytes.length - 40 * 4_096);
    writeFileSync(file, bytes);

    const damaged = await open();
    const isDamage = (error: unknown): void => {
      assert.instance(error, UnavailableError);
      assert.match((error as Error).message, /events\.db: .+ \(SQLITE_CORRUPT/);
      assert.is((error as UnavailableError).publicReason, 'what its disk gives is damaged');
    };
    isDamage(await failureOf(batchesOf(damaged.readAll(undefined))));
    isDamage(await failureOf(Promise.all(Array.from({ length: 40 }, (_, n) => damaged.read(`stream-${n}`)))));
    const ended = new AbortController();
    const told: unknown[] = [];
    const following = batchesOf(
      damaged.follow(undefined, {}, { signal: ended.signal, onTrouble: (error) => void told.push(error) }),
    );
    await until(() => told.length > 1, 'two tries');
    ended.abort();
    await following;
    for (const error of told) isDamage(error);
    isDamage(
      await failureOf(Promise.all(Array.from({ length: 40 }, (_, n) => damaged.append(`stream-${n}`, [event()], 49)))),
    );
  }));

test('fails one call after a read that failed once; a follower goes on and misses nothing', () =>
  inFolder(async ({ open }) => {
    const store = await open();
    const ended = new AbortController();
    const trouble: unknown[] = [];
    const following = batchesOf(
      store.follow(undefined, {}, { signal: ended.signal, onTrouble: (error) => void trouble.push(error) }),
    );
    const appended: string[] = [];
    for (const fault of DISK_FAULTS) {
      const before = trouble.length;
      failReads(fault);
      try {
        for (const ask of [
          () => store.end(),
          () => store.read('stream'),
          () => batchesOf(store.readAll(undefined)),
          () => store.ping(),
        ])
          assert.instance(await failureOf(ask()), UnavailableError, fault[0]);
        await until(
          () => trouble.slice(before).some((error) => error instanceof UnavailableError),
          'the follower to meet it',
        );
      } finally {
        failReads();
      }
      const one = event();
      appended.push(one.id);
      await store.append('stream', [one], 'any');
      await until(() => trouble.at(-1) === undefined, 'the follower to go on');
      assert.equal(
        (await store.read('stream')).map(({ id }) => id),
        appended,
      );
    }
    ended.abort();
    assert.equal(
      (await following).flatMap((batch) => batch.events.map(({ id }) => id)),
      appended,
    );
  }));

/** Two events in `stream`, then altered in the file. @returns the position of the last */
async function storeAndAlter(dir: string, open: () => Promise<EventStore>, sql: string): Promise<Position> {
  const store = await open();
  const { position } = await store.append('stream', events(2), 'none');
  await store.close();
  const database = new Sqlite(eventLogFile(dir));
  database.exec(sql);
  database.close();
  return position;
}

test('reports an event whose text is not JSON as damage', () =>
  inFolder(async ({ dir, open }) => {
    await storeAndAlter(dir, open, `UPDATE events SET data = 'x' || data WHERE position = 2`);
    const damaged = await open();
    assert.is((await damaged.read('stream', { limit: 1 })).length, 1);
    const error = (await failureOf(damaged.read('stream'))) as AlteredEventError;
    assert.instance(error, AlteredEventError);
    assert.match(
      error.message,
      /^the event at position 0{15}2 \(\w+, revision 1 of its stream\) can't be read: its data/,
    );
  }));

test('reports metadata that are not JSON, or no object, once they are asked for', () =>
  inFolder(async ({ dir, open }) => {
    await storeAndAlter(dir, open, `UPDATE events SET metadata = CASE position WHEN 1 THEN '{' ELSE 'null' END`);
    for (const one of await (await open()).read('stream')) {
      assert.throws(
        () => one.metadata,
        (error: unknown) => error instanceof AlteredEventError && error.message.includes(`position ${one.position}`),
      );
    }
  }));

for (const position of ['0', '9007199254740993'])
  test(`reads and counts no event at the position ${position}, and refuses to append over it`, () =>
    inFolder(async ({ dir, open }) => {
      const last = await storeAndAlter(
        dir,
        open,
        `INSERT INTO events SELECT ${position}, stream, 3, type, 'made up', at, data, metadata FROM events
          WHERE revision = 1`,
      );
      const forged = await open();
      assert.equal(
        (await forged.read('stream')).map(({ revision }) => revision),
        [0, 1],
      );
      assert.equal([await forged.end(), forged.local?.lastOf('stream')], [last, last]);
      assert.is((await batchesOf(forged.readAll(undefined))).flatMap((batch) => batch.events).length, 2);
      assert.is((await forged.append('stream', [event()], 1)).position, `${'0'.repeat(15)}3`);
      assert.instance(await failureOf(forged.append('stream', [event()], 2)), AlteredEventError);
      assert.is((await forged.append('other', [event()], 'none')).position, `${'0'.repeat(15)}4`);
      const { found, first } = await forged.unsequenced!(10);
      assert.equal([found, first.map(({ id, position: at }) => [id, at])], [1, [['made up', position]]]);
    }));

test('appends no further event than positions can name', () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    await store.append('stream', [event()], 'none');
    await store.close();
    const database = new Sqlite(eventLogFile(dir));
    database.exec(`UPDATE events SET position = ${Number.MAX_SAFE_INTEGER}`);
    database.close();
    const full = await open();
    assert.instance(await failureOf(full.append('other', [event()], 'none')), AlteredEventError);
    assert.equal(await full.read('other'), []);
  }));

test('is not ready once its file was removed or replaced, since appends would be lost', () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    await store.ping();
    const file = eventLogFile(dir);
    renameSync(file, `${file}.old`);
    assert.match(
      ((await failureOf(store.ping())) as Error).message,
      /events\.db was removed or replaced under the service: writes are refused until it is started again/,
    );
    copyFileSync(`${file}.old`, file);
    assert.instance(await failureOf(store.ping()), UnavailableError);
    rmSync(file);
    renameSync(`${file}.old`, file);
    await store.ping();
  }));

test('refuses a log without its id', () =>
  inFolder(async ({ dir, open }) => {
    await (await open()).close();
    const database = new Sqlite(eventLogFile(dir));
    database.exec('DELETE FROM meta');
    database.close();
    const error = await failureOf(openEmbeddedEventStore({ dir }));
    assert.instance(error, DataFileError);
    assert.match((error as Error).message, /has lost its log id: restore it from a backup/);
  }));

test('refuses a log that is gone or empty while its read models exist, and creates nothing', () =>
  inFolder(async ({ dir, open }) => {
    await (await open()).close();
    const reads = await openEmbeddedReadStore({ dir });
    await reads.close();
    const lose = [() => writeFileSync(eventLogFile(dir), ''), () => rmSync(eventLogFile(dir))];
    for (const [index, lost] of lose.entries()) {
      lost();
      const error = await failureOf(openEmbeddedEventStore({ dir }));
      assert.instance(error, DataFileError);
      assert.match(
        (error as Error).message,
        /events\.db is empty or gone, and read\.db beside it was made from a log: restore the log from a backup .* delete read\.db/,
      );
      assert.is(statSync(eventLogFile(dir), { throwIfNoEntry: false })?.size, [0, undefined][index]);
    }
    rmSync(join(dir, 'read.db'));
    await (await open()).close();
  }));

test('refuses a foreign file in place of the log', () =>
  inFolder(async ({ dir }) => {
    writeFileSync(eventLogFile(dir), 'not a log');
    const error = await failureOf(openEmbeddedEventStore({ dir }));
    assert.instance(error, DataFileError);
    assert.is(readFileSync(eventLogFile(dir), 'utf8'), 'not a log');
  }));

test.run();

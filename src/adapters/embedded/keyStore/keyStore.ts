/** The embedded key store: one SQLite file. The thread that opens it reads; another one writes. */
import { resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Statement } from 'better-sqlite3';
import { inSlices, slices } from '../../../lib/async/slices.js';
import type { KeyStore, SubjectRow } from '../../../ports/keyStore.js';
import { refuseInvalid, refuseLongSecret } from '../../keyStoreRules.js';
import { refuseUnlessInPlace } from '../openedFiles.js';
import type { EmbeddedStoreOptions } from '../options.js';
import { errorOfFault, readFailure, VALUE } from '../sqlite.js';
import { threadData } from '../thread.js';
import { openWriterClient } from '../writerClient.js';
import { KEY_STORE_FILE, openReader } from './file.js';
import type { KeyRequest } from './messages.js';

type Row = readonly [id: string, lookup: string, secret: string];

/** Rows read between two looks at the clock: less than 1 ms. */
const READ_ROWS = 256;
/** Rows of one message to the writer: making it takes some 2 ms. */
const WRITE_ROWS = 2_000;

/**
 * Opens the key store of a data folder, which several processes may share.
 * @throws DataFileError when the file is foreign, damaged or newer than this program; it is left as it was.
 * @throws UnavailableError when the disk is full or the file is locked.
 */
export async function openEmbeddedKeyStore({
  dir,
  openElsewhere = false,
  longLived = false,
}: EmbeddedStoreOptions): Promise<KeyStore> {
  const file = resolve(dir, KEY_STORE_FILE);
  const database = openReader(file, { openElsewhere });
  const data = threadData(file, longLived);
  const writer = openWriterClient<KeyRequest>({
    store: 'key store',
    start: () => new Worker(new URL('keyStoreWorker.js', import.meta.url), { workerData: data }),
    atOnce: longLived,
    errorOf: (fault) => errorOfFault(fault, file),
  });
  const rowsWhere = (table: string, rest: string): string =>
    `SELECT s.id, s.lookup, k.secret FROM ${table} CROSS JOIN secret AS k ON k.slot = s.slot ${rest}`;
  const wanted = 'json_each(?) AS wanted CROSS JOIN subject AS s ON';
  const byId = database.prepare<[string], Row>(rowsWhere(`${wanted} s.id = wanted.value`, '')).raw();
  const byLookup = database.prepare<[string], Row>(rowsWhere(`${wanted} s.lookup = wanted.value`, '')).raw();
  const after = database
    .prepare<[string, number], Row>(rowsWhere('subject AS s', `WHERE s.id > ${VALUE} ORDER BY s.id LIMIT ${VALUE}`))
    .raw();
  const version = database.prepare<[], number>('PRAGMA data_version').pluck();

  function read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw readFailure(error, database, file, 'key store');
    }
  }

  async function rowsOf(
    statement: Statement<[string], Row>,
    keys: readonly string[],
    keyOf: (row: SubjectRow) => string,
  ): Promise<ReadonlyMap<string, SubjectRow>> {
    const found = new Map<string, SubjectRow>();
    const time = slices();
    for (const some of parts(keys, READ_ROWS)) {
      if (time.due()) await time.rest();
      for (const row of read(() => statement.all(JSON.stringify(some)))) {
        const subject = subjectOf(row);
        found.set(keyOf(subject), subject);
      }
    }
    return found;
  }

  return {
    engine: 'embedded',
    async byId(ids) {
      return rowsOf(byId, ids, ({ id }) => id);
    },
    async byLookup(lookups) {
      return rowsOf(byLookup, lookups, ({ lookup }) => lookup);
    },
    async add(rows) {
      await inSlices(rows, refuseInvalid);
      const standing = new Map<string, SubjectRow>();
      for (const some of parts(rows, WRITE_ROWS)) {
        const others = await writer.call<readonly string[]>({
          kind: 'add',
          rows: some.flatMap(({ id, lookup, secret }) => [id, lookup, secret]),
        });
        for (const row of some) if (!standing.has(row.lookup)) standing.set(row.lookup, row);
        for (const other of parts(others, 3)) {
          const row = subjectOf(other as unknown as Row);
          standing.set(row.lookup, row);
        }
      }
      return standing;
    },
    async rewrap(rows) {
      await inSlices(rows, refuseLongSecret);
      for (const some of parts(rows, WRITE_ROWS))
        await writer.call<void>({ kind: 'rewrap', rows: some.flatMap(({ id, secret }) => [id, secret]) });
    },
    async page(last = '', limit) {
      const rows: SubjectRow[] = [];
      const time = slices();
      for (let from = last; rows.length < limit; from = rows.at(-1)?.id ?? from) {
        if (time.due()) await time.rest();
        const most = Math.min(READ_ROWS, limit - rows.length);
        const some = read(() => after.all(from, most));
        rows.push(...some.map(subjectOf));
        if (some.length < most) break;
      }
      return rows;
    },
    async remove(ids) {
      for (const some of parts(ids, WRITE_ROWS)) await writer.call<void>({ kind: 'remove', ids: some });
    },
    async ping() {
      await writer.loaded;
      read(() => version.get());
      read(() => refuseUnlessInPlace(file, data.opened));
      writer.ping();
    },
    async close() {
      await writer.close();
      database.close();
    },
  };
}

function subjectOf([id, lookup, secret]: Row): SubjectRow {
  return { id, lookup, secret };
}

function* parts<T>(all: readonly T[], size: number): Iterable<readonly T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}

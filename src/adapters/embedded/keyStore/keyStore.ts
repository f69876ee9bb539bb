/** The embedded key store: one SQLite file. The thread that opens it reads; another one writes. */
import { resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Database, Statement } from 'better-sqlite3';
import { inSlices, slices } from '../../../lib/async/slices.js';
import type { ErasureRow, KeyStore, SubjectRow } from '../../../ports/keyStore.js';
import { refuseInvalid, refuseInvalidErasure, refuseInvalidId, refuseLongSecret } from '../../keyStoreRules.js';
import { refuseIfAltered } from '../openedFiles.js';
import type { EmbeddedStoreOptions } from '../options.js';
import { errorOfFault, readFailure, VALUE } from '../sqlite.js';
import { threadData } from '../thread.js';
import { openWriterClient, type WriterClient } from '../writerClient.js';
import { KEY_STORE_FILE, openReader } from './file.js';
import { type Added, type KeyRequest, type Row, ROW_FIELDS } from './messages.js';

/** Rows read between two checks of the clock, in less than 1 ms. */
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
  const data = threadData(file, { longLived, openElsewhere });
  const writer = openWriterClient<KeyRequest>({
    store: 'key store',
    start: () => new Worker(new URL('keyStoreWorker.js', import.meta.url), { name: 'key writer', workerData: data }),
    atOnce: longLived,
    errorOf: (fault) => errorOfFault(fault, file),
  });
  const { byId, byLookup, after, removed, erasures, version } = statementsOf(database);

  function read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw readFailure(error, database, file, 'key store');
    }
  }

  return {
    engine: 'embedded',
    async byId(ids) {
      return rowsOf(read, byId, ids, ({ id }) => id);
    },
    async byLookup(lookups) {
      return rowsOf(read, byLookup, lookups, ({ lookup }) => lookup);
    },
    async add(rows) {
      await inSlices(rows, refuseInvalid);
      return added(writer, rows);
    },
    async rewrap(rows) {
      await inSlices(rows, refuseLongSecret);
      for (const some of parts(rows, WRITE_ROWS))
        await writer.call<void>({ kind: 'rewrap', rows: some.flatMap(({ id, secret }) => [id, secret]) });
    },
    async page(last, limit) {
      return pageOf(read, (from, most) => after.all(from, most).map(subjectOf), last, limit);
    },
    async fence(ids) {
      await inSlices(ids, refuseInvalidId);
      for (const some of parts(ids, WRITE_ROWS)) await writer.call<void>({ kind: 'fence', ids: some });
    },
    async unfence(ids) {
      await inSlices(ids, refuseInvalidId);
      for (const some of parts(ids, WRITE_ROWS)) await writer.call<void>({ kind: 'unfence', ids: some });
    },
    async remove(ids) {
      await inSlices(ids, refuseInvalidId);
      for (const some of parts(ids, WRITE_ROWS)) await writer.call<void>({ kind: 'remove', ids: some });
    },
    async removed(ids) {
      const found = new Set<string>();
      const time = slices();
      for (const some of parts(ids, READ_ROWS)) {
        if (time.due()) await time.rest();
        for (const id of read(() => removed.all(JSON.stringify(some)))) found.add(id);
      }
      return found;
    },
    async putErasure(row) {
      refuseInvalidErasure(row);
      await writer.call<void>({ kind: 'putErasure', row: { id: row.id, text: row.text } });
    },
    async erasures(last, limit) {
      return pageOf(read, (from, most) => erasures.all(from, most), last, limit);
    },
    async ping() {
      await writer.loaded;
      // The files are checked first: moved or altered files may be the reason why a read fails.
      read(() => refuseIfAltered(file, data.opened));
      read(() => version.get());
      writer.ping();
    },
    async close() {
      await writer.close();
      database.close();
    },
  };
}

/** The statements that read the file. */
function statementsOf(database: Database) {
  const rowsWhere = (table: string, rest: string): string =>
    `SELECT s.id, s.lookup, k.secret, e.id IS NOT NULL FROM ${table} CROSS JOIN secret AS k ON k.slot = s.slot
      LEFT JOIN ended AS e ON e.id = s.id ${rest}`;
  const joined = 'json_each(?) AS wanted CROSS JOIN subject AS s ON';
  const byId = database.prepare<[string], Row>(rowsWhere(`${joined} s.id = wanted.value`, '')).raw();
  const byLookup = database.prepare<[string], Row>(rowsWhere(`${joined} s.lookup = wanted.value`, '')).raw();
  const after = database
    .prepare<[string, number], Row>(rowsWhere('subject AS s', `WHERE s.id > ${VALUE} ORDER BY s.id LIMIT ${VALUE}`))
    .raw();
  const removed = database
    .prepare<[string], string>(
      'SELECT e.id FROM json_each(?) AS wanted CROSS JOIN ended AS e ON e.id = wanted.value WHERE e.removed = 1',
    )
    .pluck();
  const erasures = database.prepare<[string, number], ErasureRow>(
    `SELECT id, text FROM erasure WHERE id > ${VALUE} ORDER BY id LIMIT ${VALUE}`,
  );
  const version = database.prepare<[], number>('PRAGMA data_version').pluck();
  return { byId, byLookup, after, removed, erasures, version };
}

/** Adds the rows, where there are none of their lookups and ids. @returns the rows now stored, by lookup */
async function added(
  writer: WriterClient<KeyRequest>,
  rows: readonly SubjectRow[],
): Promise<ReadonlyMap<string, SubjectRow>> {
  const present = new Map<string, SubjectRow>();
  for (const some of parts(rows, WRITE_ROWS)) {
    const { removed, others } = await writer.call<Added>({
      kind: 'add',
      rows: some.flatMap(({ id, lookup, secret }) => [id, lookup, secret]),
    });
    const gone = new Set(removed);
    for (const { id, lookup, secret } of some)
      if (!present.has(lookup) && !gone.has(id)) present.set(lookup, { id, lookup, secret });
    for (const other of parts(others, ROW_FIELDS)) {
      const row = subjectOf(other as Row);
      present.set(row.lookup, row);
    }
  }
  return present;
}

/** Runs a synchronous read of the file. @throws what the file's fault means */
type Read = <T>(work: () => T) => T;

async function rowsOf(
  read: Read,
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

/** Reads a page of rows in slices. @param next reads at most `most` rows after a key */
async function pageOf<T extends { readonly id: string }>(
  read: Read,
  next: (from: string, most: number) => readonly T[],
  last = '',
  limit: number,
): Promise<readonly T[]> {
  const rows: T[] = [];
  const time = slices();
  for (let from = last; rows.length < limit; from = rows.at(-1)?.id ?? from) {
    if (time.due()) await time.rest();
    const most = Math.min(READ_ROWS, limit - rows.length);
    const some = read(() => next(from, most));
    rows.push(...some);
    if (some.length < most) break;
  }
  return rows;
}

function subjectOf([id, lookup, secret, fenced]: Row): SubjectRow {
  return fenced === 1 ? { id, lookup, secret, fenced: true } : { id, lookup, secret };
}

function* parts<T>(all: readonly T[], size: number): Iterable<readonly T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}

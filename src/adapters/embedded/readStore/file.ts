/** The file of the embedded read store, and how a process's connections to it are set up. */
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { openDatabase, standsThere } from '../sqlite.js';

/** Name of the file in the data folder. */
export const READ_STORE_FILE = 'read.db';

const FILE = { kind: 'read store', applicationId: 0x47665265, version: 1, create: createTables } as const;

/** Pages of 4 KB are kept in memory: inner pages of the indexes above all. In KiB. */
const READER_CACHE_KIB = 24_000;
/**
 * While a few documents are written at a time, the writer keeps little: where index pages were split, SQLite walks all
 * that is kept when it commits.
 */
const WRITER_CACHE_KIB = 4_000;
/** While whole collections are folded at full speed, what it keeps need not be read again. */
const FOLDING_CACHE_KIB = 32_000;
/**
 * At the latest after so many pages the WAL is moved into the file, before the next group; sooner while few documents
 * are written at a time.
 */
const CHECKPOINT_PAGES = 16_000;
/** After a long write the WAL shrinks to this, in bytes. */
const WAL_BYTES = 80_000_000;

/** Whether a read store stands in a data folder. */
export function hasReadStore(dir: string): boolean {
  return standsThere(join(dir, READ_STORE_FILE), FILE);
}

/**
 * A connection that reads; `openElsewhere`: the process has one already, on another thread. @throws DataFileError,
 * UnavailableError
 */
export function openReader(file: string, { openElsewhere = false } = {}): Database {
  const database = openDatabase(file, { ...FILE, readonly: true, openElsewhere });
  database.pragma(`cache_size = -${READER_CACHE_KIB}`);
  return database;
}

/**
 * The connection that writes, on the writer's thread; the reader is open already. @throws DataFileError,
 * UnavailableError
 */
export function openWriter(file: string): Database {
  const database = openDatabase(file, { ...FILE, openElsewhere: true });
  // Everything here can be made again from the log: a power cut may take the last moments, in order, and nothing else.
  database.pragma('synchronous = NORMAL');
  makeRoom(database, 'few');
  database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  database.pragma(`journal_size_limit = ${WAL_BYTES}`);
  // It waits for other processes in its own way.
  database.pragma('busy_timeout = 0');
  return database;
}

/** How much the connection that writes keeps in memory: for writes of few documents, or of many, at a time. */
export function makeRoom(database: Database, writes: 'few' | 'many'): void {
  database.pragma(`cache_size = -${writes === 'few' ? WRITER_CACHE_KIB : FOLDING_CACHE_KIB}`);
}

function createTables(database: Database): void {
  database.exec(`
    CREATE TABLE checkpoint (projection TEXT NOT NULL PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE pointer (name TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE setting (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE record (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL, expires_at REAL);
    CREATE INDEX record_expiry ON record (expires_at) WHERE expires_at IS NOT NULL;
  `);
}

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { syncFolder } from '../../../lib/files/syncFolder.js';
import { openDatabase, refuseForeign, isThere } from '../sqlite.js';

export const READ_STORE_FILE = 'read.db';

const FILE = { kind: 'read store', applicationId: 0x47665265, create: createTables } as const;

const READER_CACHE_KIB = 24_000;
/**
 * Page cache of the writer in KiB, kept small: SQLite walks all cached pages at a commit after an index page was split.
 */
const WRITER_CACHE_KIB = 4_000;
/** Page cache of the writer in KiB during rebuilds, which then read fewer pages again. */
const FOLDING_CACHE_KIB = 32_000;
/**
 * WAL length in pages at which SQLite moves pages at a commit: for rebuilds, since the checkpointer acts sooner after
 * small writes.
 */
const CHECKPOINT_PAGES = 16_000;
const WAL_BYTES = 80_000_000;

export function hasReadStore(dir: string): boolean {
  return isThere(join(dir, READ_STORE_FILE), FILE);
}

/** Refuses an existing read store that this program can't open; nothing is changed. @throws DataFileError */
export const refuseForeignReadStore = (dir: string): void => refuseForeign(join(dir, READ_STORE_FILE), FILE);

/** Deletes the read store, durably once it has returned. No process may have it open. */
export function removeReadStore(dir: string): void {
  // The file is removed first: SQLite applies no WAL to an empty file.
  for (const ending of ['', '-wal', '-shm']) rmSync(join(dir, READ_STORE_FILE + ending), { force: true });
  syncFolder(dir);
}

export function openReader(file: string, { openElsewhere = false } = {}): Database {
  const database = openDatabase(file, { ...FILE, readonly: true, openElsewhere });
  database.pragma(`cache_size = -${READER_CACHE_KIB}`);
  return database;
}

export function openWriter(file: string): Database {
  const database = openDatabase(file, { ...FILE, openElsewhere: true });
  // A power cut may lose the last writes, in order and nothing else; the log restores them.
  database.pragma('synchronous = NORMAL');
  makeRoom(database, 'few');
  database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  database.pragma(`journal_size_limit = ${WAL_BYTES}`);
  database.pragma('busy_timeout = 0');
  return database;
}

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

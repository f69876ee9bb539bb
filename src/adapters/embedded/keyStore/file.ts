/**
 * The file of the embedded key store. No byte of a removed row may remain in it. `secure_delete` zeroes deleted rows,
 * but not the copies of rows that SQLite (3.53) leaves in unused parts of pages, and that outlive them. So the layout
 * avoids both ways in which it makes such copies:
 * - `rebuildPage`, when a page's free space is in pieces: secrets, of any length, are stored in slots, which are
 * appended, overwritten by as many bytes, and never deleted. All rows of `subject`, and of its index, are of one
 * length, so that free space always fits.
 * - `editPage` moves the pointers to a page's rows together with up to as many bytes behind them. `FILLER` makes rows
 * so long that these bytes are never a row's.
 * `ended` and `erasure` hold no secrets that must be removed: rows there are of any length.
 */
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { openDatabase, refuseForeign } from '../sqlite.js';

export const KEY_STORE_FILE = 'keys.db';

const FILE = { kind: 'key store', applicationId: 0x47_66_4b_79, create: createTables } as const;

/** Slots are numbered from here: SQLite stores numbers from 2^31 to 2^47 in 6 bytes, which keeps rows of one length. */
const FIRST_SLOT = 2 ** 32;

/**
 * Filler of a row. With it a row of `subject` takes 122 bytes of a page, one of its index 115 (4 more on inner pages).
 * Of either length a full page of 4,096 bytes leaves at least 2 bytes a row free between its pointers and its rows.
 */
const FILLER = '0'.repeat(65);

const CACHE_KIB = 8_000;

/** Refuses an existing key store that this program can't open; nothing is changed. @throws DataFileError */
export const refuseForeignKeys = (dir: string): void => refuseForeign(join(dir, KEY_STORE_FILE), FILE);

/**
 * Opens the connection of a reader. `openElsewhere`: another thread of the process has the file open already.
 * @throws DataFileError, UnavailableError
 */
export function openReader(file: string, { openElsewhere = false } = {}): Database {
  const database = openDatabase(file, { ...FILE, readonly: true, openElsewhere });
  database.pragma(`cache_size = -${CACHE_KIB}`);
  database.pragma('temp_store = MEMORY');
  return database;
}

/** The writer's connection, on its thread; the reader is open already. @throws DataFileError, UnavailableError */
export function openWriter(file: string): Database {
  const database = openDatabase(file, { ...FILE, openElsewhere: true });
  database.pragma(`cache_size = -${CACHE_KIB}`);
  database.pragma('temp_store = MEMORY');
  database.pragma('secure_delete = ON');
  database.pragma('busy_timeout = 0');
  return database;
}

function createTables(database: Database): void {
  database.exec(`
    CREATE TABLE secret (slot INTEGER PRIMARY KEY, secret TEXT NOT NULL);
    INSERT INTO secret (slot, secret) VALUES (${FIRST_SLOT}, '');
    CREATE TABLE subject (
      id TEXT NOT NULL PRIMARY KEY,
      lookup TEXT NOT NULL,
      slot INTEGER NOT NULL,
      filler TEXT NOT NULL DEFAULT '${FILLER}'
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX subject_lookup ON subject (lookup, filler);
    -- A subject that is fenced (0), or an id that was removed (1) and is never added again.
    CREATE TABLE ended (id TEXT NOT NULL PRIMARY KEY, removed INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE erasure (id TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
  `);
}

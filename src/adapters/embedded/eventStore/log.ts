import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Database } from 'better-sqlite3';
import type { Position } from '../../../ports/eventStore.js';
import { hasReadStore, READ_STORE_FILE } from '../readStore/file.js';
import { DataFileError, openDatabase, refuseForeign, unavailableOf } from '../sqlite.js';
import { linkFile } from '../../../lib/files/folderErrors.js';
import { keepOwner } from '../../../lib/files/keepOwner.js';
import { syncFolder } from '../../../lib/files/syncFolder.js';

const FILE = { kind: 'event log', applicationId: 0x47_69_45_76, create } as const;
/** The greatest position: the greatest integer that JavaScript represents exactly. */
export const MAX_POSITION = Number.MAX_SAFE_INTEGER;
/**
 * SQL condition on rows of the log: no append stores an event at another position, so no reader may get such a row. The
 * plus sign keeps SQLite at the index of streams, whose entries have the position, too.
 */
export const IN_LOG = `+position BETWEEN 1 AND ${MAX_POSITION}`;
export const LAST_POSITION = `SELECT coalesce(max(position), 0) FROM events WHERE position BETWEEN 1 AND ${MAX_POSITION}`;

const POSITION_DIGITS = 16;
const ZEROS = '0'.repeat(POSITION_DIGITS);

export function eventLogFile(dir: string): string {
  return join(dir, 'events.db');
}

/**
 * Refuses to create a log alongside existing read models, which were made from a log that is lost. @throws
 * DataFileError
 */
export function refuseLostLog(file: string): void {
  // The order matters: a process that creates both files makes the log first.
  if (!hasReadStore(dirname(file)) || !isEmpty(file) || !isEmpty(`${file}-wal`)) return;
  throw new DataFileError(
    file,
    `is empty or gone, and ${READ_STORE_FILE} beside it was made from a log`,
    `restore the log from a backup (gift restore); to begin a new one, delete ${READ_STORE_FILE} with its -wal and -shm too`,
  );
}

function isEmpty(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Refuses an existing event log that this program can't open; nothing is changed. @throws DataFileError */
export const refuseForeignLog = (dir: string): void => refuseForeign(eventLogFile(dir), FILE);

export function openEventLog(file: string, mode: { readonly?: boolean; openElsewhere?: boolean }): Database {
  return openDatabase(file, { ...FILE, ...mode });
}

// Filter columns come before data, which SQLite then does not read for skipped rows. The writer assigns positions, so
// that a rolled back transaction leaves no gap.
function create(database: Database): void {
  database.exec(`
    CREATE TABLE events (
      position INTEGER PRIMARY KEY,
      stream TEXT NOT NULL,
      revision INTEGER NOT NULL,
      type TEXT NOT NULL,
      id TEXT NOT NULL,
      at TEXT NOT NULL,
      data TEXT NOT NULL,
      metadata TEXT NOT NULL
    );
    CREATE UNIQUE INDEX events_of_stream ON events (stream, revision);
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
  `);
  database.prepare(`INSERT INTO meta (name, value) VALUES ('logId', ?)`).run(randomUUID());
}

export function logIdOf(database: Database, file: string): string {
  const logId = database.prepare<[], string>(`SELECT value FROM meta WHERE name = 'logId'`).pluck().get();
  if (logId === undefined) throw new DataFileError(file, 'has lost its log id', 'restore it from a backup');
  return logId;
}

/**
 * Prepares the check whether the log is sealed, which reads the mark each time. To refuse an append, call it in the
 * append's transaction.
 */
export function sealMark(database: Database): () => boolean {
  const mark = database.prepare<[], string>(`SELECT value FROM meta WHERE name = 'sealedAt'`).pluck();
  return () => mark.get() !== undefined;
}

/** Seals the log permanently. This thread must have the file open. @throws UnavailableError, DataFileError */
export function sealEventLog(file: string): void {
  const database = openEventLog(file, { openElsewhere: true });
  try {
    database.prepare(`INSERT OR IGNORE INTO meta (name, value) VALUES ('sealedAt', ?)`).run(new Date().toISOString());
  } catch (error) {
    throw unavailableOf(error, file);
  } finally {
    database.close();
  }
}

export function positionOf(number: number): Position {
  const digits = String(number);
  return ZEROS.slice(digits.length) + digits;
}

export function isPosition(text: string): boolean {
  return /^[0-9]{16}$/.test(text) && Number(text) <= MAX_POSITION;
}

/**
 * The number of a position; `undefined`, the start before all events, is 0. @throws RangeError for another engine's
 * position
 */
export function numberOf(position: Position | undefined): number {
  if (position === undefined) return 0;
  if (!isPosition(position)) throw new RangeError(`not a position of the embedded event store: ${position}`);
  return Number(position);
}

/** Creates the folder in which a new log is made: within the data folder, so on the same disk. */
export function prepareEventLog(dataDir: string): { readonly dir: string; remove(): void } {
  const dir = mkdtempSync(join(dataDir, 'restoring-'));
  keepOwner(dir);
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/**
 * Moves the new log into the data folder, durably and as a whole, so that no process ever finds half of one.
 * @throws Error with the code EEXIST when the data folder now has a log, which stays
 */
export function putEventLog(dir: string, dataDir: string): void {
  const made = eventLogFile(dir);
  // When the last connection is closed, it has moved all pages into the file itself.
  if (existsSync(`${made}-wal`) && statSync(`${made}-wal`).size > 0) throw new Error(`${made} is still in use`);
  linkFile(made, eventLogFile(dataDir));
  syncFolder(dataDir);
}

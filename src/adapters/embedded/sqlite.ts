import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Database } from 'better-sqlite3';
import { blockThread } from '../../lib/async/blockThread.js';
import { exhausted, noInodes } from '../../lib/files/folderErrors.js';
import { keepOwner } from '../../lib/files/keepOwner.js';
import { makeFolder } from '../../lib/files/folders.js';
import { formatFault, type FormatFault } from '../../ports/dataFormat.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { Sqlite } from './driver.js';
import { formatMark, FORMAT_NUMBER } from './formatNumber.js';
import { FilesGoneError } from './openedFiles.js';

/**
 * A bound value in a range or a LIMIT. With a bare `?` this build of SQLite (SQLITE_ENABLE_STAT4) replans the statement
 * for each value, which takes longer than reading a short stream.
 */
export const VALUE = '+?';

export type DataFileKind = 'event log' | 'read store' | 'key store';

export interface DatabaseOptions {
  readonly kind: DataFileKind;
  /** The number in the file's header that marks the kind of file (SQLite's `application_id`, not 0). */
  readonly applicationId: number;
  readonly create: (database: Database) => void;
  /** Whether the connection refuses writes (`query_only`); a missing file is still created. */
  readonly readonly?: boolean;
  /**
   * Whether another thread of this process has the file open. Then reading its header would drop that thread's locks.
   */
  readonly openElsewhere?: boolean;
}

/** A foreign, newer or damaged data file. The message names file, fault and remedy. */
export class DataFileError extends Error {
  override readonly name = 'DataFileError';
  readonly file: string;
  constructor(file: string, problem: string, remedy: string, options?: ErrorOptions) {
    super(`${file} ${problem}: ${remedy}`, options);
    this.file = file;
  }
}

type SqliteError = InstanceType<typeof Sqlite.SqliteError>;

/** https://www.sqlite.org/fileformat2.html#application_id */
const APPLICATION_ID_AT = 68;
const BUSY_TIMEOUT_MS = 5_000;
/**
 * Attempts to read a file before it counts as damaged: a file being created, or one bad read, can look damaged for an
 * instant.
 */
const LOOKS = 4;
const TRY_AGAIN_MS = 25;

/**
 * Opens a data file, which is created (mode 0600, its folder 0700) where missing. Waits 5 s for a lock. Takes
 * milliseconds whatever the file's size: deep damage shows only when it is read.
 * @throws DataFileError when the file is foreign, damaged or of another data format; it is left unchanged
 * @throws UnavailableError when the disk is full, or another process holds the file locked
 */
export function openDatabase(file: string, options: DatabaseOptions): Database {
  if (!options.openElsewhere && !isOpen(file)) {
    makeFile(file);
    refuseUnlessOurs(file, options);
  }
  const database = openOrRefuse(file, options, { readonly: false });
  try {
    database.pragma('mmap_size = 0');
    database.pragma('cache_size = -2000');
    if (database.pragma('user_version', { simple: true }) === 0) create(database, options);
    // A later release may have raised the format number in the WAL, which the header does not show yet.
    const fault = faultOfFormat(database.pragma('user_version', { simple: true }) as number, options);
    if (fault !== undefined) throw refusal(file, fault);
    database.pragma('journal_mode = WAL');
    // SQLite opens the WAL and its index at the first read (openedFiles.ts).
    database.pragma('schema_version');
    database.pragma('synchronous = FULL');
    if (options.readonly) database.pragma('query_only = ON');
  } catch (error) {
    database.close();
    throw error instanceof DataFileError ? error : refusalOf(error, file, options);
  }
  const path = resolve(file);
  opened.set(path, [...(opened.get(path) ?? []), database]);
  return database;
}

/** Whether the file is this program's, judged by its header only; false where the header can't be read. */
export function isThere(file: string, { applicationId }: Pick<DatabaseOptions, 'applicationId'>): boolean {
  if (isOpen(file)) return true;
  try {
    return headerOf(file).readUInt32BE(APPLICATION_ID_AT) === applicationId;
  } catch {
    return false;
  }
}

/**
 * Full disk, lock, I/O error and damage may all pass: lasting damage is found when the file is opened.
 * @throws any error that isn't the engine's
 */
export function unavailableOf(error: unknown, file: string): UnavailableError {
  if (error instanceof FilesGoneError)
    return new UnavailableError(`${file}: ${error.message}`, { cause: error, publicReason: error.message });
  if (!(error instanceof Sqlite.SqliteError)) throw error;
  const publicReason = PUBLIC_REASONS.find(([code]) => code.test(error.code))?.[1];
  if (publicReason === undefined) throw error;
  // SQLite reports a lack of free inodes with these codes, too.
  const lacks = /^SQLITE_(FULL|CANTOPEN|IOERR)/.test(error.code) ? noInodes(dirname(file)) : undefined;
  if (lacks !== undefined)
    return new UnavailableError(`${file}: ${error.message}; ${lacks}`, {
      publicReason: 'no inodes are free on its disk',
      cause: Object.assign(new Error(error.message, { cause: error }), { code: 'ENOSPC' }),
    });
  return new UnavailableError(`${file}: ${error.message} (${error.code})`, { cause: error, publicReason });
}

const PUBLIC_REASONS: readonly (readonly [code: RegExp, words: string])[] = [
  [/^SQLITE_FULL/, 'its disk is full'],
  [/^SQLITE_IOERR/, 'its disk fails, or takes no more'],
  [/^SQLITE_(CORRUPT|NOTADB)/, 'what its disk gives is damaged'],
  [/^SQLITE_(CANTOPEN|READONLY|PERM)/, 'its files can not be opened or written'],
  [/^SQLITE_(BUSY|LOCKED|PROTOCOL)/, 'another process keeps it locked'],
  [/^SQLITE_NOMEM/, 'there is no memory left'],
];

/** Empties SQLite's page cache after apparent damage: cached pages may come from a bad read. */
export function forgetPages(database: Database, error: unknown): void {
  if (!isDamage(error) || !database.open) return;
  try {
    database.exec('PRAGMA shrink_memory');
  } catch (late) {
    // The caller reports its own error.
    if (!(late instanceof Sqlite.SqliteError)) throw late;
  }
}

/** The error that callers of a port get for a failed read. */
export function readFailure(error: unknown, database: Database, file: string, kind: DataFileKind): UnavailableError {
  forgetPages(database, error);
  return database.open ? unavailableOf(error, file) : new UnavailableError(`the ${kind} is closed`, { cause: error });
}

/** An error that crosses threads, with the error code where SQLite or the check of the open files raised it. */
export interface ThreadFault {
  readonly message: string;
  readonly code?: string;
}

export function faultOf(error: unknown): ThreadFault {
  const { message } = error as Error;
  return error instanceof Sqlite.SqliteError || error instanceof FilesGoneError
    ? { message, code: error.code }
    : { message };
}

/** The error of a fault, as it would have been thrown on this thread. */
export function errorOfFault({ message, code }: ThreadFault, file: string): Error {
  if (code === undefined) return new Error(message);
  try {
    return unavailableOf(
      code === FilesGoneError.code ? new FilesGoneError(message) : new Sqlite.SqliteError(message, code),
      file,
    );
  } catch (error) {
    return error as Error;
  }
}

export function isDamage(error: unknown): error is SqliteError {
  return error instanceof Sqlite.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code);
}

/**
 * Creates the file with mode 0600, where SQLite would use the umask's mode. The -wal and -shm take mode and owner of
 * the file.
 */
function makeFile(file: string): void {
  try {
    makeFolder(dirname(file));
    if (statSync(file, { throwIfNoEntry: false }) === undefined) {
      closeSync(openSync(file, 'wx', 0o600));
      keepOwner(file);
    }
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && syscall === 'open') return;
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new UnavailableError(`${file} can't be made (${code}): ${exhausted(dirname(file)) ?? 'no room is left'}`, {
        cause: error,
      });
    throw new DataFileError(
      file,
      `can't be made (${code})`,
      exhausted(dirname(file)) ?? 'check that its folder can be made and that this user may write there',
      { cause: error },
    );
  }
}

function create(database: Database, options: DatabaseOptions): void {
  database
    .transaction(() => {
      // Another process may have created the tables first.
      if (database.pragma('user_version', { simple: true }) !== 0) return;
      database.pragma(`application_id = ${options.applicationId}`);
      options.create(database);
      database.pragma(`user_version = ${FORMAT_NUMBER}`);
    })
    .immediate();
}

const opened = new Map<string, Database[]>();

/**
 * An open file must not be read directly: closing its descriptor would drop the POSIX locks of all connections of this
 * process.
 */
function isOpen(file: string): boolean {
  const path = resolve(file);
  const open = (opened.get(path) ?? []).filter((database) => database.open);
  if (open.length === 0) opened.delete(path);
  else opened.set(path, open);
  return open.length > 0;
}

/**
 * Refuses an existing file that is not this program's, judged by its header and, where it has a WAL, a read of its
 * tables.
 * @throws DataFileError
 */
export function refuseForeign(file: string, options: DatabaseOptions): void {
  if (!isOpen(file) && existsSync(file)) refuseUnlessOurs(file, options);
}

function refuseUnlessOurs(file: string, options: DatabaseOptions): void {
  for (let attempt = 1; ; attempt++) {
    const fault = faultOfHeader(file, options);
    if (fault === undefined) break;
    if (attempt === LOOKS) throw refusal(file, fault);
    blockThread(TRY_AGAIN_MS);
  }
  // A writable connection would move the WAL into a damaged file when closed.
  if (hasWal(file)) {
    const view = openOrRefuse(file, options, { readonly: true });
    view.close();
  }
}

/** Opens the file and reads the ends of its tables. Apparent damage is read again, since a bad read may pass. */
function openOrRefuse(file: string, options: DatabaseOptions, mode: { readonly: boolean }): Database {
  for (let attempt = 1; ; attempt++) {
    const database = new Sqlite(file, { timeout: BUSY_TIMEOUT_MS, readonly: mode.readonly });
    try {
      database.pragma('cell_size_check = ON');
      database.pragma('trusted_schema = OFF');
      touchEnds(database);
      return database;
    } catch (error) {
      database.close();
      if (attempt === LOOKS || !isDamage(error)) throw refusalOf(error, file, options);
      blockThread(TRY_AGAIN_MS);
    }
  }
}

function refusalOf(error: unknown, file: string, { kind }: DatabaseOptions): Error {
  if (isDamage(error)) return refusal(file, { problem: `is damaged (${error.message})`, remedy: remedyOf(kind) });
  return unavailableOf(error, file);
}

/** https://www.sqlite.org/fileformat2.html#the_database_header */
function faultOfHeader(file: string, options: DatabaseOptions): FormatFault | undefined {
  const moveAway = 'move it away, or name another folder in DATA_DIR';
  let header: Buffer;
  let size: number;
  try {
    header = headerOf(file);
    // The WAL is checked first: during a checkpoint the file may not have grown yet.
    size = hasWal(file) ? Number.POSITIVE_INFINITY : statSync(file).size;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return {
      problem: `can't be read (${code})`,
      remedy: code === 'EIO' ? 'see that its disk is well, and start again' : 'check what it is and whose it is',
    };
  }
  if (size === 0) return undefined;
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0')
    return { problem: 'is not an SQLite file', remedy: moveAway };
  if (header.readUInt32BE(APPLICATION_ID_AT) !== options.applicationId)
    return { problem: `is not this program's ${options.kind}`, remedy: moveAway };
  const other = faultOfFormat(header.readUInt32BE(60), options);
  if (other !== undefined) return other;
  const pageSize = header.readUInt16BE(16);
  const pages = header.readUInt32BE(28);
  if (size < pages * (pageSize === 1 ? 65_536 : pageSize))
    return { problem: 'is damaged (it is cut short)', remedy: remedyOf(options.kind) };
  return undefined;
}

function faultOfFormat(number: number, { kind }: DatabaseOptions): FormatFault | undefined {
  const fault = formatFault(formatMark(number));
  if (fault === undefined || kind !== 'read store') return fault;
  return { ...fault, remedy: `${fault.remedy}, or ${remedyOf(kind)}` };
}

/** The first 100 bytes of the file, padded with zeros. The file must not be open in this process: see `isOpen`. */
function headerOf(file: string): Buffer {
  const header = Buffer.alloc(100);
  const descriptor = openSync(file, 'r');
  try {
    readSync(descriptor, header, 0, header.length, 0);
  } finally {
    closeSync(descriptor);
  }
  return header;
}

function remedyOf(kind: DataFileKind): string {
  return kind === 'read store'
    ? 'delete it with its -wal and -shm, it is rebuilt from the log'
    : 'restore it from a backup';
}

function refusal(file: string, fault: FormatFault): DataFileError {
  return new DataFileError(file, fault.problem, `${fault.remedy}; it was left as it is`);
}

function hasWal(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function touchEnds(database: Database): void {
  const tables = database
    .prepare<[], { name: string; wr: number }>(
      `SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'`,
    )
    .all();
  for (const { name, wr } of tables) {
    const table = `"${name.replaceAll('"', '""')}"`;
    database.prepare(`SELECT * FROM ${table} LIMIT 1`).get();
    if (wr === 0) database.prepare(`SELECT * FROM ${table} ORDER BY rowid DESC LIMIT 1`).get();
  }
}

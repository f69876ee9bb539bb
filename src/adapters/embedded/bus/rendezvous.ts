/**
 * Where the processes of one data folder meet: the socket's path, and who may open it. The hub is whoever holds the
 * exclusive lock of `bus.lock` (an empty SQLite file: the operating system frees its lock with the process), so only
 * one process at a time ever removes or binds the socket, and a stale one is taken over safely.
 */
import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exhausted } from '../../../lib/files/folderErrors.js';
import { keepOwner } from '../../../lib/files/keepOwner.js';
import { makeFolder } from '../../../lib/files/folders.js';
import { EngineError } from '../../../lib/engineError.js';
import { Sqlite } from '../driver.js';
import { type FileLock, openFileLock } from '../fileLock.js';
import { DataFileError, isDamage, unavailableOf } from '../sqlite.js';

/** Socket addresses hold 104 bytes on some systems, the closing zero included. */
const MAX_SOCKET_PATH = 100;

/** The meeting place of one data folder, as one process sees it. */
export interface Place {
  /** Tries to become the hub. @returns whether this process now is. */
  claim(): boolean;
  /** Gives the claim up. */
  release(): void;
  /**
   * For the hub: where to bind, with anything left by an earlier hub removed. @throws DataFileError when something else
   * than a socket stands there; EngineError when there is no place with a short path
   */
  prepare(): string;
  /** For the others: where the hub is, or was. */
  address(): string;
  close(): void;
}

/**
 * Opens the place. @throws DataFileError when the folder can't be written; `claim` throws one when `bus.lock` is
 * something else.
 */
export function openPlace(dir: string): Place {
  const file = join(dir, 'bus.lock');
  const lock = openLock(dir, file);
  // Links followed: whichever path leads to the folder, all meet at one place.
  const folder = realpathSync(dir);
  const near = join(folder, 'bus.sock');
  const record = join(dir, 'bus.path');

  return {
    claim() {
      try {
        return lock.claim();
      } catch (error) {
        // A full or read-only disk says nothing of the file; to move away a lock that is held would make two buses of
        // one.
        if (error instanceof Sqlite.SqliteError && !isDamage(error)) throw unavailableOf(error, file);
        throw new DataFileError(file, "is not the bus's lock file", 'move it away', { cause: error });
      }
    },
    release: lock.release,

    prepare() {
      if (Buffer.byteLength(near) <= MAX_SOCKET_PATH) {
        rmSync(record, { force: true });
        return cleared(near);
      }
      const far = join(shortFolder(folder), 'bus.sock');
      writeFileSync(record, far, { mode: 0o600 });
      keepOwner(record);
      return cleared(far);
    },

    address() {
      if (Buffer.byteLength(near) <= MAX_SOCKET_PATH) return near;
      try {
        return readFileSync(record, 'utf8');
      } catch {
        return near;
      }
    },

    close: lock.close,
  };
}

function openLock(dir: string, file: string): FileLock {
  try {
    makeFolder(dir);
    return openFileLock(file);
  } catch (error) {
    throw new DataFileError(
      file,
      `can't be made (${(error as Error).message})`,
      exhausted(dir) ?? 'check that the folder exists and that this user may write there',
      { cause: error },
    );
  }
}

/** The path without a dead socket. */
function cleared(path: string): string {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isSocket())
    throw new DataFileError(path, "is not the bus's socket", 'move it away');
  rmSync(path, { force: true });
  return path;
}

/**
 * A folder with a short path for the socket of a data folder: below TMPDIR, or where that is no better, below /tmp.
 * @throws EngineError where there can be none
 */
function shortFolder(dir: string): string {
  // Not `userInfo`, which fails for a user without a name.
  const uid = process.getuid?.() ?? -1;
  const name = `gift-${createHash('sha256').update(dir).digest('hex').slice(0, 16)}-${uid}`;
  const faults: string[] = [];
  for (const base of new Set([tmpdir(), '/tmp'])) {
    const folder = join(base, name);
    try {
      if (Buffer.byteLength(join(folder, 'bus.sock')) > MAX_SOCKET_PATH) throw new Error('its path is too long, too');
      return madePrivate(folder, uid);
    } catch (error) {
      faults.push(`${base} (${(error as Error).message})`);
    }
  }
  throw new EngineError(
    'DATA_DIR',
    `the path of ${dir} is too long for a socket (${MAX_SOCKET_PATH} bytes with /bus.sock), and none can be in ${faults.join(', nor in ')}: name a folder with a shorter path, or set TMPDIR to one`,
  );
}

/** The folder, which nobody else can have put there or look into. */
function madePrivate(folder: string, uid: number): string {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const found = lstatSync(folder);
  if (!found.isDirectory() || (uid !== -1 && found.uid !== uid))
    throw new DataFileError(folder, 'belongs to someone else', 'move it away');
  chmodSync(folder, 0o700);
  return folder;
}

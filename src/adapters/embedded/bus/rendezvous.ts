/**
 * The broker holds the exclusive lock of `bus.lock`, which the operating system frees with the process. So only one
 * process at a time removes or binds the socket.
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

/** Longest path of a socket, in bytes: some systems allow 104, including the closing zero. */
const MAX_SOCKET_PATH = 100;

export interface Rendezvous {
  /** @returns whether this process is now the broker */
  claim(): boolean;
  release(): void;
  /**
   * For the broker: the path to bind, after an earlier broker's socket is removed.
   * @throws DataFileError when another file has that name; EngineError when no short path is free
   */
  prepare(): string;
  address(): string;
  close(): void;
}

/** @throws DataFileError when the folder can't be written; from `claim` when `bus.lock` is another file */
export function openRendezvous(dir: string): Rendezvous {
  const file = join(dir, 'bus.lock');
  const lock = openLock(dir, file);
  // Links are resolved, so that all paths to the folder share one rendezvous.
  const folder = realpathSync(dir);
  const near = join(folder, 'bus.sock');
  const record = join(dir, 'bus.path');

  return {
    claim() {
      try {
        return lock.claim();
      } catch (error) {
        // A full or read-only disk does not make it a foreign file. Moving a held lock away would split the bus.
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
        // A broker that is just writing it has emptied it.
        return readFileSync(record, 'utf8') || near;
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

function cleared(path: string): string {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isSocket())
    throw new DataFileError(path, "is not the bus's socket", 'move it away');
  rmSync(path, { force: true });
  return path;
}

function shortFolder(dir: string): string {
  // `userInfo` fails for a user without a name.
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

import { closeSync, openSync } from 'node:fs';
import { keepOwner } from '../../lib/files/keepOwner.js';
import { Sqlite } from './driver.js';

export interface FileLock {
  /** @throws the engine's error where the file is no such lock or can't be written */
  claim(): boolean;
  release(): void;
  close(): void;
}

/**
 * An empty SQLite file (mode 0600, so that no other user can hold it) as a lock between processes of one machine. The
 * operating system frees it with the process.
 * @throws the engine's error
 */
export function openFileLock(file: string): FileLock {
  makeFile(file);
  const lock = new Sqlite(file, { timeout: 0 });
  let claimed = false;

  const release = (): void => {
    if (claimed) lock.exec('ROLLBACK');
    claimed = false;
  };

  return {
    claim() {
      if (claimed) return true;
      try {
        lock.exec('BEGIN EXCLUSIVE');
        claimed = true;
      } catch (error) {
        if (!((error as { code?: string }).code ?? '').startsWith('SQLITE_BUSY')) throw error;
      }
      return claimed;
    },
    release,
    close() {
      release();
      lock.close();
    },
  };
}

/** SQLite would use the umask's mode. It also reports a file that can't be made. */
function makeFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
    keepOwner(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
}

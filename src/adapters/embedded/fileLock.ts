/** Locks between the processes of one machine: the operating system frees them with the process, however that ends. */
import { closeSync, openSync } from 'node:fs';
import { keepOwner } from '../../lib/files/keepOwner.js';
import { Sqlite } from './driver.js';

/** A lock, as one process sees it. */
export interface FileLock {
  /**
   * Tries to take it. @returns whether this process now has it. @throws the engine's error where the file is none of
   * these locks or may not be written
   */
  claim(): boolean;
  /** Gives it up. */
  release(): void;
  /** Gives it up, too. */
  close(): void;
}

/**
 * Opens the lock of a file, an empty SQLite file that is made (mode 0600: whoever may read it could hold it against us)
 * where it is not there.
 * @throws the engine's error where it can't be
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

/** SQLite would give it the umask's mode. What can't be made, SQLite tells of. */
function makeFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
    keepOwner(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
}

/** Locks between the processes of one machine: the operating system frees them with the process, however that ends. */
import { Sqlite } from './driver.js';

/** A lock, as one process sees it. */
export interface FileLock {
  /** Tries to take it. @returns whether this process now has it. @throws the engine's error where the file is none of these locks or may not be written */
  claim(): boolean;
  /** Gives it up. */
  release(): void;
  /** Gives it up, too. */
  close(): void;
}

/** Opens the lock of a file, an empty SQLite file that is made where it is not there. @throws the engine's error where it can't be */
export function openFileLock(file: string): FileLock {
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

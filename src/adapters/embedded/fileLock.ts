import { closeSync, openSync } from 'node:fs';
import { keepOwner } from '../../lib/files/keepOwner.js';
import { Sqlite } from './driver.js';

export interface FileLock {
  /**
   * Takes the lock exclusively. A share that this lock had is released then, also where it returns false.
   * @throws the engine's error where the file is no such lock or can't be written
   */
  claim(): boolean;
  /** Shares the lock: any number of processes may while no process has claimed it. @throws as `claim` */
  share(): boolean;
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
  let held: 'claimed' | 'shared' | undefined;

  const release = (): void => {
    if (lock.inTransaction) lock.exec('ROLLBACK');
    held = undefined;
  };
  const take = (how: 'claimed' | 'shared', statements: string): boolean => {
    if (held === how) return true;
    release();
    try {
      lock.exec(statements);
      held = how;
    } catch (error) {
      release();
      if (!((error as { code?: string }).code ?? '').startsWith('SQLITE_BUSY')) throw error;
    }
    return held === how;
  };

  return {
    claim: () => take('claimed', 'BEGIN EXCLUSIVE'),
    // The first read of a transaction takes the lock.
    share: () => take('shared', 'BEGIN; SELECT count(*) FROM sqlite_master'),
    release,
    close() {
      release();
      lock.close();
    },
  };
}

/**
 * Creates the file with mode 0600, where SQLite would use the umask's mode. SQLite reports a file that can't be made.
 */
function makeFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
    keepOwner(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
}

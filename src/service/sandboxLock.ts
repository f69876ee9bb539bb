/** Whether other processes use the data folder of a sandbox (docs/decisions.md#resetting-a-sandbox). */
import { join } from 'node:path';
import { openFileLock } from '../adapters/embedded/fileLock.js';
import { unavailableOf } from '../adapters/embedded/sqlite.js';
import { UnavailableError } from '../ports/unavailable.js';

const LOCK_FILE = 'sandbox.lock';

export interface SandboxLock {
  /** False where another process shares the lock, as this one goes on to do. @throws UnavailableError */
  claim(): boolean;
  /** @throws UnavailableError while another process has claimed the lock */
  share(): void;
  close(): void;
}

/** Shared by this process from now on. @throws as `share` */
export function shareSandbox(dataDir: string): SandboxLock {
  const file = join(dataDir, LOCK_FILE);
  const done = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw unavailableOf(error, file);
    }
  };
  const lock = done(() => openFileLock(file));
  const share = (): void => {
    if (!done(() => lock.share())) throw new UnavailableError('another process resets the sandbox of this data folder');
  };
  try {
    share();
  } catch (error) {
    lock.close();
    throw error;
  }
  return {
    claim() {
      if (done(() => lock.claim())) return true;
      share();
      return false;
    },
    share,
    close: () => lock.close(),
  };
}

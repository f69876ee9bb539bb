/** A lock that shows whether other processes use a sandbox's data folder (docs/design.md#resetting-a-sandbox). */
import { join } from 'node:path';
import { openFileLock } from '../adapters/embedded/fileLock.js';
import { unavailableOf } from '../adapters/embedded/sqlite.js';
import { UnavailableError } from '../ports/unavailable.js';

const LOCK_FILE = 'sandbox.lock';

export interface SandboxLock {
  /**
   * Makes the lock exclusive. False where another process shares it, as this one then still does.
   * @throws UnavailableError
   */
  claim(): boolean;
  /** Shares the lock with other processes. @throws UnavailableError while another process has claimed it */
  share(): void;
  close(): void;
}

/** Opens the lock, which this process shares from now on. @throws as `share` */
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

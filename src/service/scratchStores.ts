/**
 * Temporary read stores, for example for a verification's copy. Separate files, so that they and the store in use never
 * wait for each other.
 */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type FileLock, openFileLock } from '../adapters/embedded/fileLock.js';
import { READ_STORE_FILE } from '../adapters/embedded/readStore/file.js';
import { openEmbeddedReadStore } from '../adapters/embedded/readStore/readStore.js';
import type { Background } from '../adapters/embedded/background.js';
import { unavailableOf } from '../adapters/embedded/sqlite.js';
import { EngineError } from '../lib/engineError.js';
import { resources } from '../lib/async/resources.js';
import { exhausted } from '../lib/files/folderErrors.js';
import { keepOwner } from '../lib/files/keepOwner.js';
import { systemMs } from '../lib/world.js';
import { makeDataDir } from './dataDir.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { MaintenanceOptions } from '../runtime/readmodels/index.js';

const PREFIX = 'verify-';
/** Lock file in a temporary store's folder. The process that made the folder holds the lock until it ends. */
const LOCK = 'in-use.lock';
/** Milliseconds after a folder's creation by which its maker holds the lock; younger folders are not removed. */
const CLAIMED_MS = 10_000;

type Scratch = Awaited<ReturnType<MaintenanceOptions['openScratch']>>;

/**
 * Opens an empty store in a new folder of the data folder, and removes folders of killed processes. `close` deletes it.
 * @param background thread that is loaded already, for long-running processes
 * @throws UnavailableError on a full disk; EngineError if the folder or file can't be made
 */
export async function openScratch(dataDir: string, background?: Background): Promise<Scratch> {
  makeDataDir(dataDir);
  for (const name of readdirSync(dataDir)) if (name.startsWith(PREFIX)) removeIfLeft(join(dataDir, name));
  const dir = makeFolder(dataDir);
  const open = resources();
  open.add(dir, async () => rmSync(dir, { recursive: true, force: true }));
  try {
    open.add(claimedLock(join(dir, LOCK)));
    const store = open.add(await openEmbeddedReadStore({ dir, scratchWriter: background }));
    return { store, close: () => open.close() };
  } catch (error) {
    // Errors of closing are ignored, so that the first error is thrown.
    await open.close().catch(() => undefined);
    throw error;
  }
}

/** Opens a lock file and claims it. @throws UnavailableError, also on a full disk */
function claimedLock(file: string): FileLock {
  try {
    const lock = openFileLock(file);
    try {
      lock.claim();
      return lock;
    } catch (error) {
      lock.close();
      throw error;
    }
  } catch (error) {
    throw unavailableOf(error, file);
  }
}

function makeFolder(dataDir: string): string {
  try {
    const folder = mkdtempSync(join(dataDir, PREFIX));
    keepOwner(folder);
    return folder;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new UnavailableError(`no copy can be made in ${dataDir}: ${exhausted(dataDir) ?? code}`, { cause: error });
    throw new EngineError(
      'DATA_DIR',
      `no copy can be made in ${dataDir} (${code}): see that this user may write there, and that it is not mounted read-only`,
      error,
    );
  }
}

/** Removes a folder whose maker has ended. Keeps it if it has other files, or belongs to another user. */
function removeIfLeft(dir: string): void {
  const made = lstatSync(dir, { throwIfNoEntry: false });
  if (made?.isDirectory() !== true || systemMs() - made.mtimeMs < CLAIMED_MS) return;
  try {
    if (!readdirSync(dir).every((name) => name.startsWith(LOCK) || name.startsWith(READ_STORE_FILE))) return;
    const lock = openFileLock(join(dir, LOCK));
    try {
      if (lock.claim()) rmSync(dir, { recursive: true, force: true });
    } finally {
      lock.close();
    }
  } catch (error) {
    const { code = '' } = error as { code?: string };
    if (code !== 'EACCES' && code !== 'ENOENT' && !code.startsWith('SQLITE_')) throw error;
  }
}

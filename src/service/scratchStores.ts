/**
 * Read stores for a short time: a verification's copy is made beside what serves, in files of its own, so that neither
 * waits for the other.
 */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type FileLock, openFileLock } from '../adapters/embedded/fileLock.js';
import { READ_STORE_FILE } from '../adapters/embedded/readStore/file.js';
import { openEmbeddedReadStore } from '../adapters/embedded/readStore/readStore.js';
import { unavailableOf } from '../adapters/embedded/sqlite.js';
import { EngineError } from '../lib/engineError.js';
import { resources } from '../lib/async/resources.js';
import { exhausted } from '../lib/files/folderErrors.js';
import { keepOwner } from '../lib/files/keepOwner.js';
import { makeDataDir } from './dataDir.js';
import type { ReadStore } from '../ports/readStore.js';
import { UnavailableError } from '../ports/unavailable.js';

const PREFIX = 'verify-';
/** Whoever makes a copy holds this lock in its folder, for as long as it lives. */
const LOCK = 'in-use.lock';
/** So long after a folder was made its maker holds the lock, in ms. */
const CLAIMED_MS = 10_000;

/** A read store that goes when it is closed. */
export interface Scratch {
  readonly store: ReadStore;
  close(): Promise<void>;
}

/**
 * Opens an empty one in a folder of its own in the data folder, and removes what killed processes have left there: a
 * copy is as large as what it is of.
 * @throws UnavailableError when the disk is full; EngineError when there can be no such folder, or nothing can be made
 * there
 */
export async function openScratch(dataDir: string): Promise<Scratch> {
  makeDataDir(dataDir);
  for (const name of readdirSync(dataDir)) if (name.startsWith(PREFIX)) removeIfLeft(join(dataDir, name));
  const dir = makeFolder(dataDir);
  const open = resources();
  open.add(dir, async () => rmSync(dir, { recursive: true, force: true }));
  try {
    open.add(claimedLock(join(dir, LOCK)), async (one) => one.close());
    const store = open.add(await openEmbeddedReadStore({ dir }), (one) => one.close());
    return { store, close: () => open.close() };
  } catch (error) {
    // What went wrong first is what is told.
    await open.close().catch(() => undefined);
    throw error;
  }
}

/** The lock, taken. A full disk is no other thing here than it is to the store beside it. @throws UnavailableError */
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

/** A folder of its own. */
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

/**
 * Removes a folder whose maker is gone. One that this user may not look into is another's, and so is one that holds
 * anything else than a copy does.
 */
function removeIfLeft(dir: string): void {
  const made = lstatSync(dir, { throwIfNoEntry: false });
  if (made?.isDirectory() !== true || Date.now() - made.mtimeMs < CLAIMED_MS) return;
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

import { existsSync, mkdirSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { exhausted } from './folderErrors.js';
import { EngineError } from '../engineError.js';

/** Name prefixes of this program's folders in the system's folder for temporary files. */
export const TEMPORARY_FOLDERS = ['gift-look-', 'gift-dry-run-', 'gift-demo-'] as const;

/** Makes a temporary folder, which the caller removes. @throws EngineError naming TMPDIR */
export function temporaryFolder(prefix: (typeof TEMPORARY_FOLDERS)[number]): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix));
  } catch (error) {
    throw new EngineError(
      'TMPDIR',
      `no folder can be made in ${tmpdir()} (${(error as NodeJS.ErrnoException).code}): ${exhausted(tmpdir()) ?? 'set it to one that this user may write to'}`,
      error,
    );
  }
}

/**
 * Makes a folder (mode 0700) and its missing parents. Node's own `recursive` option never ends where the parent accepts
 * no folders, as in /proc.
 * @returns whether the folder was missing
 */
export function makeFolder(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 });
    return true;
  } catch (error) {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return false;
    const above = dirname(folder);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || existsSync(above)) throw error;
    makeFolder(above);
    return makeFolder(folder);
  }
}

import { existsSync, mkdirSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { exhausted } from './folderErrors.js';
import { EngineError } from '../engineError.js';

/** What names of folders in the system's folder for temporary files start with. */
export const TEMPORARY_FOLDERS = ['gift-look-', 'gift-dry-run-', 'gift-demo-'] as const;

/** The caller removes it. @throws EngineError naming TMPDIR */
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
 * Mode 0700. Node's own `recursive` never ends where the parent takes no folders, as in /proc.
 * @returns whether it was missing
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

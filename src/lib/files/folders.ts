import { existsSync, mkdirSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { exhausted } from './folderErrors.js';
import { EngineError } from '../engineError.js';

/** The caller removes it. @throws EngineError naming TMPDIR */
export function temporaryFolder(prefix: string): string {
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

import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from '../../lib/files/syncFolder.js';
import { randomBytes } from '../../lib/world.js';

export class BackupExistsError extends Error {
  override readonly name = 'BackupExistsError';
}

/**
 * Writes a draft file alongside `path`, checks it, then renames it to `path` (mode 0600). A process killed in that last
 * step leaves an empty file.
 * @param check gets the path of the closed draft
 * @throws BackupExistsError, the file system's errors, those of `fill` and `check`; no file is left then
 */
export async function writeDraft<T>(
  path: string,
  fill: (file: FileHandle) => Promise<void>,
  check: (draft: string) => Promise<T>,
): Promise<T> {
  // A process id repeats in containers, where a killed process may have left its draft, so the name is random.
  const draft = `${path}.${randomBytes(4).toString('hex')}.part`;
  const file = await open(draft, 'wx', 0o600);
  try {
    try {
      await fill(file);
    } finally {
      await file.close();
    }
    const checked = await check(draft);
    await renameUnlessTaken(draft, path);
    return checked;
  } finally {
    await rm(draft, { force: true });
  }
}

/**
 * Renames a file without overwriting another. It creates the target first, which works on shares without hard links,
 * too.
 */
async function renameUnlessTaken(draft: string, path: string): Promise<void> {
  try {
    await (await open(path, 'wx')).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw new BackupExistsError(`${path} is there already`);
    throw error;
  }
  try {
    await rename(draft, path);
  } catch (error) {
    // The target is still the empty file that was created above.
    await rm(path, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

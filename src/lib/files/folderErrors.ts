/** Explains faults where the system's error says too little. */
import { linkSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { EngineError } from '../engineError.js';

/** Statistics of a folder's file system, read at its nearest existing parent: a new folder would be on the same one. */
function fileSystemOf(
  folder: string,
): { readonly files: number; readonly ffree: number; readonly blocks: number; readonly bavail: number } | undefined {
  for (let at = folder; ; at = dirname(at)) {
    try {
      return statfsSync(at);
    } catch {
      if (dirname(at) === at) return undefined;
    }
  }
}

export function noInodes(folder: string): string | undefined {
  const system = fileSystemOf(folder);
  // File systems that do not count inodes report 0 for both numbers.
  if (system === undefined || system.files === 0 || system.ffree > 0) return undefined;
  return `no inodes are free on the file system of ${folder} (df -i shows it): remove files there that nobody needs`;
}

export function exhausted(folder: string): string | undefined {
  const system = fileSystemOf(folder);
  return (
    noInodes(folder) ??
    (system !== undefined && system.blocks > 0 && system.bavail === 0
      ? `no room is left on the file system of ${folder}: make some`
      : undefined)
  );
}

/**
 * Explains what a full file system lacks for `file`. To be called at once, since the cleanup after a failure may free
 * it.
 * @returns other errors unchanged
 */
export function fullOr(error: unknown, file: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  const lack = exhausted(dirname(file)) ?? 'see that there is room on its disk';
  return new EngineError('DATA_DIR', `${file} can't be made (${code}): ${lack}`, error);
}

const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * Makes a hard link. The new name must not exist yet.
 * @throws EngineError naming DATA_DIR where the file system has no hard links; else the system's error, such as EEXIST
 */
export function linkFile(from: string, to: string, link = linkSync): void {
  try {
    link(from, to);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!NO_LINKS.has(code)) throw error;
    throw new EngineError(
      'DATA_DIR',
      `the file system of ${dirname(to)} makes no hard link (${code}), by which files are put there whole: name a folder on another one, as ext4, XFS or APFS are`,
      error,
    );
  }
}

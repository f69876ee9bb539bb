/** The file that `gift backup` and `gift keys backup` write. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { BackupExistsError } from '../ops/backup/draftFile.js';
import { CommandFailure, interrupted } from './terminal.js';

/**
 * Refuses a file that exists, or whose folder does not, before anything is recorded or written.
 * @throws CommandFailure
 */
export function refuseUnlessNew(file: string): void {
  const path = resolve(file);
  if (existsSync(path)) throw new CommandFailure(`${file} is there already: name another file`);
  if (!existsSync(dirname(path)))
    throw new CommandFailure(`there is no folder ${dirname(path)}: make it, or name another file`);
}

/** Turns a failed write into a message of what the user can do; other errors are returned as they are. */
export function backupFailureOf(error: unknown, file: string, signal: AbortSignal): unknown {
  if (signal.aborted) return interrupted('interrupted; nothing was left behind');
  if (error instanceof BackupExistsError) return new CommandFailure(`${error.message}: name another file`);
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
    return new CommandFailure(`no space left for ${file}: name a file on another disk; nothing was left behind`);
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return new CommandFailure(`this user may not write ${file}: name another file`);
  return error;
}

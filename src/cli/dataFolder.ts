import { readdirSync, statSync } from 'node:fs';
import { eventLogFile } from '../adapters/embedded/eventStore/log.js';
import { CommandFailure } from './terminal.js';

/** @throws CommandFailure where this user may not read the folder, which must not count as empty */
export function hasEventLog(dataDir: string): boolean {
  return looking(dataDir, () => statSync(eventLogFile(dataDir), { throwIfNoEntry: false }) !== undefined);
}

/**
 * Names of the folder's entries; empty for a missing folder.
 * @throws CommandFailure where this user may not read it, or it is a file
 */
export function namesIn(dataDir: string): readonly string[] {
  return looking(dataDir, () =>
    statSync(dataDir, { throwIfNoEntry: false }) === undefined ? [] : readdirSync(dataDir),
  );
}

/** Runs `look`, and explains a refused access: a data folder is only for its owner (0700). */
function looking<T>(dataDir: string, look: () => T): T {
  try {
    return look();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM')
      throw new CommandFailure(`this user may not look into ${dataDir}: run the command as the service's user`);
    if (code === 'ENOTDIR')
      throw new CommandFailure(`${dataDir} is not a folder: set DATA_DIR to the service's data folder`);
    throw error;
  }
}

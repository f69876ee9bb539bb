/** Looks into a data folder before anything is opened: a folder that may not be read is not taken for an empty one. */
import { readdirSync, statSync } from 'node:fs';
import { eventLogFile } from '../adapters/embedded/eventStore/log.js';
import { CommandFailure } from './terminal.js';

/** @throws CommandFailure where this user may not look */
export function hasEventLog(dataDir: string): boolean {
  return looking(dataDir, () => statSync(eventLogFile(dataDir), { throwIfNoEntry: false }) !== undefined);
}

/**
 * The names in it; none where there is no such folder.
 * @throws CommandFailure where this user may not look, or it is a file
 */
export function namesIn(dataDir: string): readonly string[] {
  return looking(dataDir, () =>
    statSync(dataDir, { throwIfNoEntry: false }) === undefined ? [] : readdirSync(dataDir),
  );
}

/** Data folders are for their owner alone (0700): other users can't see what is in them. */
function looking<T>(dataDir: string, look: () => T): T {
  try {
    return look();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM')
      throw new CommandFailure(`this user may not look into ${dataDir}: run the command as the service's user`);
    if (code === 'ENOTDIR')
      throw new CommandFailure(`${dataDir} is no folder: set DATA_DIR to the service's data folder`);
    throw error;
  }
}

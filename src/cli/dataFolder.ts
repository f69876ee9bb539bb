/**
 * What stands in a data folder, for subcommands that look before they open anything: a folder that may not be looked
 * into is not taken for an empty one.
 */
import { readdirSync, statSync } from 'node:fs';
import { eventLogFile } from '../adapters/embedded/eventStore/log.js';
import { CommandFailure } from './terminal.js';

/** Whether it holds an event log. @throws CommandFailure where this user may not look */
export function hasEventLog(dataDir: string): boolean {
  return looking(dataDir, () => statSync(eventLogFile(dataDir), { throwIfNoEntry: false }) !== undefined);
}

/**
 * The names in it; none where there is no such folder. @throws CommandFailure where this user may not look, or a file
 * stands there
 */
export function namesIn(dataDir: string): readonly string[] {
  return looking(dataDir, () =>
    statSync(dataDir, { throwIfNoEntry: false }) === undefined ? [] : readdirSync(dataDir),
  );
}

/** Data folders are made for their owner alone (0700): who asks as somebody else learns nothing of what is in them. */
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

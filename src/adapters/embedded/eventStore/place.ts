/** A new event log appears in a data folder as a whole, so that no process ever finds half of one. */
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { linkFile } from '../../../lib/files/folderErrors.js';
import { keepOwner } from '../../../lib/files/keepOwner.js';
import { syncFolder } from '../../../lib/files/syncFolder.js';
import { eventLogFile } from './log.js';

/** Creates the folder in which a new log is made: within the data folder, so on the same disk. */
export function prepareEventLog(dataDir: string): { readonly dir: string; remove(): void } {
  const dir = mkdtempSync(join(dataDir, 'restoring-'));
  keepOwner(dir);
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/**
 * Moves the new log into the data folder, durably. @throws Error with the code EEXIST when the data folder now has a
 * log, which stays
 */
export function placeEventLog(dir: string, dataDir: string): void {
  const made = eventLogFile(dir);
  // When the last connection is closed, it has moved all pages into the file itself.
  if (existsSync(`${made}-wal`) && statSync(`${made}-wal`).size > 0) throw new Error(`${made} is still in use`);
  linkFile(made, eventLogFile(dataDir));
  syncFolder(dataDir);
}

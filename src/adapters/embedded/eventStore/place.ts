/** A new event log is made beside its place and put there whole, so that nobody ever finds half of one. */
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { linkFile } from '../../../lib/files/folderErrors.js';
import { keepOwner } from '../../../lib/files/keepOwner.js';
import { syncFolder } from '../../../lib/files/syncFolder.js';
import { eventLogFile } from './log.js';

/**
 * A folder within a data folder (on its disk) for a log in the making; `remove` takes it away with whatever it holds.
 */
export function prepareEventLog(dataDir: string): { readonly dir: string; remove(): void } {
  const dir = mkdtempSync(join(dataDir, 'restoring-'));
  keepOwner(dir);
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/**
 * Puts the closed log of `dir` into the data folder, on disk when it returns.
 * @throws Error with the code EEXIST when the data folder has a log meanwhile: that one stays
 */
export function placeEventLog(dir: string, dataDir: string): void {
  const made = eventLogFile(dir);
  // Whoever closed it last has brought everything into the file itself.
  if (existsSync(`${made}-wal`) && statSync(`${made}-wal`).size > 0) throw new Error(`${made} is still in use`);
  linkFile(made, eventLogFile(dataDir));
  syncFolder(dataDir);
}

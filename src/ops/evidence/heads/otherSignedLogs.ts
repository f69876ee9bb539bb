/**
 * Signed heads of other logs, which SEAL_DIR holds alongside this log's tree. Where a log was given another id, its own
 * last head is among them.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { MalformedEvidenceError } from '../format/errors.js';
import { tileFolder } from '../tree/tileFolder.js';
import type { VerifiersOf } from './headKeys.js';
import { type HeadToCheck, headToCheck } from './headsToCheck.js';

export interface OtherSignedLog {
  readonly log_id: string;
  readonly events: number;
  /** Folder of the log's last head. */
  readonly folder: string;
}

/**
 * Other logs in SEAL_DIR with a signed head that this log does not continue.
 * @param dir has a folder for each log, named by its id
 * @param continued heads that this log continues
 * @throws the file system's errors
 */
export async function otherSignedLogs(
  dir: string,
  logId: string,
  continued: readonly HeadToCheck[],
  verifiersOf: VerifiersOf,
): Promise<readonly OtherSignedLog[]> {
  const found: OtherSignedLog[] = [];
  for (const name of (await foldersIn(dir)).toSorted()) {
    if (name === logId) continue;
    const folder = join(dir, name);
    const head = await headIn(folder, verifiersOf);
    if (head === undefined || head.verified === false || head.fault !== undefined) continue;
    if (
      continued.some(({ origin, size, root }) => origin === head.origin && size === head.size && root.equals(head.root))
    )
      continue;
    found.push({ log_id: name, events: head.size, folder });
  }
  return found;
}

async function foldersIn(dir: string): Promise<string[]> {
  try {
    const entries = await readdir(dir, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** The published head in a folder; `undefined` where there is none, or it is unreadable. */
async function headIn(folder: string, verifiersOf: VerifiersOf): Promise<HeadToCheck | undefined> {
  const note = await tileFolder(folder).head();
  if (note === undefined) return undefined;
  try {
    return headToCheck({ from: folder, note }, verifiersOf);
  } catch (error) {
    if (error instanceof MalformedEvidenceError) return undefined;
    throw error;
  }
}

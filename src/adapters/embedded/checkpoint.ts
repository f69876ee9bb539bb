import type { Database } from 'better-sqlite3';
import { Sqlite } from './driver.js';

export interface Moved {
  readonly log: number;
  /** Pages of the log now in the file: fewer while a reader needs the old ones. */
  readonly checkpointed: number;
}

/** Waits for no reader. `undefined` on a disk fault, which the next write reports. */
export function moveNow(database: Database): Moved | undefined {
  try {
    const [moved] = database.pragma('wal_checkpoint(PASSIVE)') as [Moved];
    return moved;
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error;
    return undefined;
  }
}

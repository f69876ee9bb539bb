/** Moves a WAL's pages into their file. */
import type { Database } from 'better-sqlite3';
import { Sqlite } from './driver.js';

export interface Moved {
  readonly log: number;
  /** Of these, pages in the file now: fewer where a reader still needs the old ones. */
  readonly checkpointed: number;
}

/**
 * Moves as many pages as no reader holds back, without waiting. `undefined`: a fault of the disk, which the next write
 * reports.
 */
export function moveNow(database: Database): Moved | undefined {
  try {
    const [moved] = database.pragma('wal_checkpoint(PASSIVE)') as [Moved];
    return moved;
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error;
    return undefined;
  }
}

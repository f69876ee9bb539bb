/** Moves a WAL's pages into their file. */
import type { Database } from 'better-sqlite3';
import { Sqlite } from './driver.js';

/** What came of moving pages. */
export interface Moved {
  /** Pages in the WAL. */
  readonly log: number;
  /** Of these, how many stand in the file now: fewer where a reader still needs what was there. */
  readonly checkpointed: number;
}

/**
 * Moves pages on this connection, as many as nobody needs where they are; waits for nobody. `undefined`: none, for
 * trouble with the disk, which whoever writes next is told of.
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

import type { Database } from 'better-sqlite3';
import { Sqlite } from './driver.js';
import { blockThread } from '../../lib/async/blockThread.js';

interface Moved {
  readonly log: number;
  /** WAL pages that are now in the file: fewer than `log` while a reader needs the old ones. */
  readonly checkpointed: number;
}

/**
 * Moves WAL pages into the file without waiting for readers. `undefined` on a disk fault, which the next write reports.
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

const RETRY_MS = 1;

/**
 * Moves all pages and cuts the WAL to nothing, so that it holds no earlier content. Blocks the thread while another
 * connection reads or writes.
 * @param until by `performance.now()`
 * @throws the engine's error: SQLITE_BUSY after `until`, any other at once
 */
export function emptyWal(database: Database, until: number): void {
  for (;;) {
    const [{ busy }] = database.pragma('wal_checkpoint(TRUNCATE)') as [{ readonly busy: number }];
    if (busy === 0) return;
    if (performance.now() >= until) throw new Sqlite.SqliteError('the WAL is still being read', 'SQLITE_BUSY');
    blockThread(RETRY_MS);
  }
}

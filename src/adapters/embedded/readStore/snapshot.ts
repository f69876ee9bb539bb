/**
 * Reads of one turn of the event loop share a snapshot: to begin and to end one costs SQLite more than to read a
 * document in it. A snapshot lasts until the turn ends or `renew` is called, whichever is first; so nobody waits for
 * it, and it hides nothing for longer.
 */
import type { Database } from 'better-sqlite3';
import { Sqlite } from '../driver.js';

/** The snapshot of a connection that only reads. */
export interface Snapshot {
  /** Every read until the end of this turn sees the same state. @returns whether it is a new one. */
  hold(): boolean;
  /**
   * The next read sees what is stored by then: to be called before anybody is told of something newer than the
   * snapshot.
   */
  renew(): void;
}

/** @param database the reader's connection; nothing else begins transactions on it. */
export function readSnapshot(database: Database): Snapshot {
  const begin = database.prepare('BEGIN');
  const end = database.prepare('COMMIT');
  let held = false;
  const renew = (): void => {
    if (!held) return;
    held = false;
    if (!database.open || !database.inTransaction) return;
    try {
      end.run();
    } catch (error) {
      // A damaged file, or a disk that fails. Nothing was written, so nothing is lost: the next read meets the same and
      // tells its caller.
      if (!(error instanceof Sqlite.SqliteError)) throw error;
    }
  };
  return {
    hold() {
      if (held) return false;
      if (!database.inTransaction) begin.run();
      held = true;
      setImmediate(renew);
      return true;
    },
    renew,
  };
}

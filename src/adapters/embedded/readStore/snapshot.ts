/**
 * Reads of one turn of the event loop share a snapshot, which costs SQLite more than reading a document. It ends with
 * the turn or with `renew`, so that it never hides newer data for longer.
 */
import type { Database } from 'better-sqlite3';
import { Sqlite } from '../driver.js';

interface Snapshot {
  /** Takes a snapshot unless one is held. @returns whether the snapshot is new */
  hold(): boolean;
  /** Call it before newer data is announced: the next read takes a new snapshot. */
  renew(): void;
}

/** @param database the reader's connection, without other transactions */
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
      // A damaged file or failing disk. The next read meets the same error and throws it.
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

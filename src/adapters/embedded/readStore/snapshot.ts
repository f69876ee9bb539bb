/**
 * Reads of one turn of the event loop share a snapshot: beginning and ending one costs SQLite more than reading a
 * document. It lasts until the turn ends or `renew` is called, so that it never hides newer data for longer.
 */
import type { Database } from 'better-sqlite3';
import { Sqlite } from '../driver.js';

export interface Snapshot {
  /** Reads share a snapshot until the turn ends. @returns whether it is a new one. */
  hold(): boolean;
  /** The next read takes a new snapshot: to be called before newer data is announced. */
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
      // A damaged file or a failing disk. Nothing was written; the next read meets the same error and throws it.
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

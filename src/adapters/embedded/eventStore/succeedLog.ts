/**
 * Replaces a log with another one, which has an id of its own and begins with some of its events. The old log no longer
 * exists then. No event of a log is ever changed: the remaining events are another log.
 */
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import type { Database } from 'better-sqlite3';
import { removeReadStore } from '../readStore/file.js';
import { unavailableOf } from '../sqlite.js';
import { eventLogFile, IN_LOG, logIdOf, openEventLog } from './log.js';

/** Milliseconds that other connections may still have the log open. */
const OTHERS_MS = 1_000;

export interface SucceedOptions {
  /** Whether the new log begins with this event. */
  readonly keeps: (stream: string, type: string) => boolean;
  /** Called with each event of the new log; `texts` are its data and metadata, JSON. */
  readonly onRetained?: (stream: string, ...texts: readonly string[]) => void;
  /** ISO 8601, UTC, milliseconds: no event of the new log has a later time. */
  readonly now: string;
}

interface Succession {
  /** The old log's id. */
  readonly from: string;
  readonly to: string;
  /**
   * Removes every byte of the old log from the file. @throws UnavailableError, such as for a full disk: the new log is
   * in effect
   */
  shrink(): void;
  /** Closes the connection, so that others can open the log. */
  close(): void;
}

/**
 * Replaces the log in one transaction, so that a kill at any moment leaves the old log or the new one, whole. The read
 * store is deleted just before the commit: it is rebuilt from either log. Blocks the thread, a few seconds for a
 * million events.
 * @throws UnavailableError where another connection has the log open (a second later), or the disk is full: then the
 * old log remains; DataFileError
 */
export function succeedEventLog(dir: string, options: SucceedOptions): Succession {
  const file = eventLogFile(resolve(dir));
  const database = openEventLog(file, {});
  try {
    database.pragma(`busy_timeout = ${OTHERS_MS}`);
    // Keeps every other connection out until it is closed: https://www.sqlite.org/pragma.html#pragma_locking_mode
    database.pragma('locking_mode = EXCLUSIVE');
    database.pragma('temp_store = MEMORY');
    const from = logIdOf(database, file);
    const to = randomUUID();
    const succeed = database.transaction(() => {
      keepOnly(database, options);
      database.prepare(`UPDATE meta SET value = ? WHERE name = 'logId'`).run(to);
      database.exec(`DELETE FROM meta WHERE name = 'sealedAt'`);
      removeReadStore(dir);
    });
    succeed.immediate();
    return { from, to, shrink: () => shrink(database, file), close: () => database.close() };
  } catch (error) {
    database.close();
    throw unavailableOf(error, file);
  }
}

function shrink(database: Database, file: string): void {
  try {
    database.exec('VACUUM');
    database.pragma('wal_checkpoint(TRUNCATE)');
  } catch (error) {
    throw unavailableOf(error, file);
  }
}

/** Keeps only the events of the new log, renumbered without gaps: neither between positions nor within streams. */
function keepOnly(database: Database, { keeps, onRetained = () => undefined, now }: SucceedOptions): void {
  database.function('keeps', { deterministic: true }, (stream, type) => (keeps(String(stream), String(type)) ? 1 : 0));
  database.exec(`CREATE TEMP TABLE kept AS SELECT * FROM events WHERE keeps(stream, type) AND ${IN_LOG}`);
  database.exec('DELETE FROM events');
  database
    .prepare(
      `INSERT INTO events (position, stream, revision, type, id, at, data, metadata)
      SELECT row_number() OVER (ORDER BY position), stream,
        row_number() OVER (PARTITION BY stream ORDER BY revision) - 1, type, id, min(at, ?), data, metadata
      FROM kept ORDER BY position`,
    )
    .run(now);
  const retained = database.prepare<[], [stream: string, data: string, metadata: string]>(
    'SELECT stream, data, metadata FROM kept',
  );
  for (const event of retained.raw().iterate()) onRetained(...event);
}

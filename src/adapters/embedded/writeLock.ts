/**
 * The write lock of a file that processes share, without starvation: SQLite itself retries ever more rarely, and a busy
 * writer releases the lock only for an instant.
 */
import type { Statement } from 'better-sqlite3';
import { blockThread } from '../../lib/async/blockThread.js';
import { Sqlite } from './driver.js';

export const LOCK_WAIT_MS = 5_000;
const RETRY_MS = 1;
/** Duration of a transaction, in ms, after which other processes get `BREATH_MS` to take the lock. */
const LONG_MS = 25;
/** Milliseconds between two transactions: more than `RETRY_MS`, so that a waiting process tries in that time. */
const BREATH_MS = 2;

/**
 * Begins a write transaction, and blocks the thread until it has the lock.
 * @param begin BEGIN IMMEDIATE, with busy_timeout 0
 * @param until by `performance.now()`
 * @throws the engine's error: SQLITE_BUSY after `until`, any other at once
 */
export function beginWriting(begin: Statement, until: number): void {
  for (;;) {
    try {
      begin.run();
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() >= until) throw error;
      blockThread(RETRY_MS);
    }
  }
}

export function breathe(heldMs: number, agoMs = 0): void {
  if (heldMs > LONG_MS && agoMs < BREATH_MS) blockThread(BREATH_MS - agoMs);
}

export function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY');
}

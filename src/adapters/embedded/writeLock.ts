/**
 * The lock of a file that several processes write, taken so that none of them starves: SQLite's own way of waiting
 * tries the more rarely the longer it has waited, and a process that writes one transaction after the other gives the
 * lock back for an instant only.
 */
import type { Statement } from 'better-sqlite3';
import { Sqlite } from './driver.js';

/** How long the lock is waited for, ms, unless told otherwise. */
export const LOCK_WAIT_MS = 5_000;
/** How often it is tried again, ms. */
const RETRY_MS = 1;
/** After a transaction of more than this, ms, the others that wait for the lock are left some time. */
const LONG_MS = 25;
/** So much, ms: more than they wait between two tries. */
const BREATH_MS = 2;

const pause = new Int32Array(new SharedArrayBuffer(4));

function sleep(ms: number): void {
  Atomics.wait(pause, 0, 0, ms);
}

/**
 * Begins a transaction that writes; blocks the thread meanwhile. `begin`: BEGIN IMMEDIATE on a connection that does not
 * wait by itself (busy_timeout 0). `until`, by `performance.now()`: when it is given up.
 * @throws the engine's error: SQLITE_BUSY where others kept the lock, any other at once
 */
export function beginWriting(begin: Statement, until: number): void {
  for (;;) {
    try {
      begin.run();
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() >= until) throw error;
      sleep(RETRY_MS);
    }
  }
}

/** Leaves the others time to take the lock, after a transaction of `heldMs` that ended `agoMs` ago. */
export function breathe(heldMs: number, agoMs = 0): void {
  if (heldMs > LONG_MS && agoMs < BREATH_MS) sleep(BREATH_MS - agoMs);
}

function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY');
}

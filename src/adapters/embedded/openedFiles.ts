/**
 * SQLite goes on writing a removed or replaced file, and a write-ahead log (WAL) without a name is lost with the last
 * process that has it open
 * (https://www.sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use).
 */
import { statSync } from 'node:fs';
import { basename } from 'node:path';
import type { Database } from 'better-sqlite3';
import { moveNow } from './checkpoint.js';

/** The file, its WAL, and the WAL's index, which holds the locks between processes. */
const ENDINGS = ['', '-wal', '-shm'] as const;

/** Inode numbers in the order of `ENDINGS`, unique while the database is open. */
export type OpenedFiles = readonly (number | undefined)[];

export class FilesGoneError extends Error {
  override readonly name = 'FilesGoneError';
  static readonly code = 'GIFT_FILES_GONE';
  readonly code = FilesGoneError.code;
}

export function openedFiles(file: string): OpenedFiles {
  return ENDINGS.map((ending) => inodeOf(file + ending));
}

export function refuseUnlessInPlace(file: string, opened: OpenedFiles): void {
  const gone = ENDINGS.find((ending, index) => opened[index] !== undefined && inodeOf(file + ending) !== opened[index]);
  if (gone !== undefined)
    throw new FilesGoneError(
      `${basename(file)}${gone} was removed or replaced under the service: writes are refused until it is started again`,
    );
}

export interface WriteGuard {
  /** Before a transaction; checks only where the last check failed. @throws FilesGoneError */
  refuse(): void;
  /** After a commit, before its answer. @throws FilesGoneError where the committed data may be lost */
  confirm(): void;
  close(): void;
}

/** ms between checks without writes: saves a removed WAL before the process can be killed. */
const LOOK_MS = 250;

export function guardWrites(database: Database, file: string, opened: OpenedFiles): WriteGuard {
  let amiss = false;

  function look(): void {
    try {
      refuseUnlessInPlace(file, opened);
      amiss = false;
    } catch (error) {
      amiss = true;
      throw error;
    }
  }

  /** @returns false where another process has started a new WAL, whose pages count */
  function bringHome(): boolean {
    if (inodeOf(file) !== opened[0] || (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0)
      return false;
    const moved = moveNow(database);
    return moved !== undefined && moved.log === moved.checkpointed;
  }

  const timer = setInterval(() => {
    try {
      look();
    } catch {
      bringHome();
    }
  }, LOOK_MS).unref();

  return {
    refuse() {
      if (amiss) look();
    },
    confirm() {
      try {
        look();
      } catch (error) {
        if (!bringHome()) throw error;
      }
    },
    close: () => clearInterval(timer),
  };
}

/** For a connection whose files can't be lost. */
export const UNGUARDED: Pick<WriteGuard, 'refuse' | 'confirm'> = { refuse: () => undefined, confirm: () => undefined };

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}

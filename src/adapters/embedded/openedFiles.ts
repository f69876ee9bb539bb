/**
 * Whether the files of an open database still stand under their names. SQLite goes on with a file that was removed or
 * replaced under it, as any program does, and a write-ahead log (WAL) that has lost its name is gone with the last
 * process that has it open: what was acknowledged with it would be, too
 * (https://www.sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use).
 */
import { statSync } from 'node:fs';
import { basename } from 'node:path';
import type { Database } from 'better-sqlite3';
import { moveNow } from './checkpoint.js';

/** The file itself, its WAL, and its index of the WAL, which holds the locks between processes. */
const ENDINGS = ['', '-wal', '-shm'] as const;

/**
 * Inode numbers of an open database's files, in the order of `ENDINGS`: no other file gets one of them while it is
 * open. Plain data, so that threads are told which files the process opened.
 */
export type OpenedFiles = readonly (number | undefined)[];

/** A file of an open database was removed or replaced: what is written now is lost at the next start. */
export class FilesGoneError extends Error {
  override readonly name = 'FilesGoneError';
  /** As errors of the engine have one: it crosses threads with the message. */
  static readonly code = 'GIFT_FILES_GONE';
  readonly code = FilesGoneError.code;
}

/** The files as they are found right after the database was opened, when SQLite has made all three. */
export function openedFiles(file: string): OpenedFiles {
  return ENDINGS.map((ending) => inodeOf(file + ending));
}

/** @throws FilesGoneError naming the first file that is no longer the one that was opened */
export function refuseUnlessInPlace(file: string, opened: OpenedFiles): void {
  const gone = ENDINGS.find((ending, index) => opened[index] !== undefined && inodeOf(file + ending) !== opened[index]);
  if (gone !== undefined)
    throw new FilesGoneError(
      `${basename(file)}${gone} was removed or replaced under the service: writes are refused until it is started again`,
    );
}

/** Keeps a connection from writing what nobody would find again. */
export interface WriteGuard {
  /** Before a transaction. Looks only where something was amiss at the last look. @throws FilesGoneError */
  refuse(): void;
  /**
   * After a commit, before anybody learns of it. Returns where what was committed will be found again. @throws
   * FilesGoneError where it may not be
   */
  confirm(): void;
  /** Ends the looks from time to time. */
  close(): void;
}

/**
 * How often it is looked without a write, ms: what stands in a WAL that was removed is brought into the file before
 * anybody kills the process.
 */
const LOOK_MS = 250;

/** Guards the connection that writes `file`; `opened`: its files as the process opened them. */
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

  /**
   * Brings everything that stands in a WAL without a name into the file. @returns whether all of it is there. Not where
   * another process has begun a WAL of its own: its pages count then.
   */
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
      // Told to who writes next, and to who asks whether the service is ready.
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

/** For a connection that nobody else can have lost the files of. */
export const UNGUARDED: Pick<WriteGuard, 'refuse' | 'confirm'> = { refuse: () => undefined, confirm: () => undefined };

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}

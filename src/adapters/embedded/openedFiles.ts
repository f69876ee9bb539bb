/**
 * SQLite goes on writing a removed or replaced file, and a write-ahead log (WAL) without a name is lost with the last
 * process that has it open
 * (https://www.sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use).
 */
import { statSync, closeSync, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { basename } from 'node:path';
import type { Database } from 'better-sqlite3';
import { moveNow } from './checkpoint.js';
import { Sqlite } from './driver.js';

/** The file, its WAL, and the WAL's index, which holds the locks between processes. */
const ENDINGS = ['', '-wal', '-shm'] as const;

/** Identity and state of the files behind an open database; each list is in the order of `ENDINGS`. */
export interface OpenedFiles {
  /** Inode numbers of the files: unique while the database is open, `undefined` for a file that did not exist. */
  readonly inodes: readonly (number | undefined)[];
  /** Flags of the files: 1 for one that was altered in place. Shared by the threads that have this object. */
  readonly altered: Int32Array<SharedArrayBuffer>;
}

export class FilesGoneError extends Error {
  override readonly name = 'FilesGoneError';
  static readonly code = 'GIFT_FILES_GONE';
  readonly code = FilesGoneError.code;
}

export function openedFiles(file: string): OpenedFiles {
  return {
    inodes: statedFiles(file).map((stats) => stats?.ino),
    altered: new Int32Array(new SharedArrayBuffer(ENDINGS.length * Int32Array.BYTES_PER_ELEMENT)),
  };
}

const statedFiles = (file: string): StatedFiles =>
  ENDINGS.map((ending) => statSync(file + ending, { throwIfNoEntry: false }));

export function refuseIfAltered(file: string, { inodes, altered }: OpenedFiles, stated = statedFiles(file)): void {
  // Content that an altered file has lost can't be restored.
  const lost = ENDINGS.find((_, index) => Atomics.load(altered, index) !== 0);
  if (lost !== undefined) throw refusal(file + lost, 'altered in place');
  const gone = ENDINGS.find((_, index) => inodes[index] !== undefined && stated[index]?.ino !== inodes[index]);
  if (gone !== undefined) throw refusal(file + gone, 'removed or replaced');
}

function refusal(file: string, what: string): FilesGoneError {
  return new FilesGoneError(
    `${basename(file)} was ${what} under the service: writes are refused until it is started again`,
  );
}

export interface WriteGuard {
  /** Checks the files before a transaction, unless that was done just now. @throws FilesGoneError */
  refuse(): void;
  /** Checks the files after a commit, before its answer. @throws FilesGoneError where the committed data may be lost */
  confirm(): void;
  close(): void;
}

/**
 * Milliseconds between checks without writes: often enough to save a removed WAL before a person can kill the process.
 */
const POLL_MS = 500;
/**
 * Milliseconds for which a check counts for the next transaction: a writer under load checks the files once for each
 * group, after its commit. That check finds what was altered after the last one, as long as nothing is answered.
 */
const CHECKED_MS = 2;

interface GuardedFile {
  readonly file: string;
  readonly opened: OpenedFiles;
  /** Whether another guard of this process checks the file between writes. */
  readonly openElsewhere: boolean;
}

export function guardWrites(database: Database, { file, opened, openElsewhere }: GuardedFile): WriteGuard {
  const alteration = alterationsOf(database, file);
  let checkedAt = Number.NEGATIVE_INFINITY;

  function check(): void {
    checkedAt = Number.NEGATIVE_INFINITY;
    const stated = statedFiles(file);
    refuseIfAltered(file, opened, stated);
    const ending = alteration(stated);
    if (ending !== undefined) {
      Atomics.store(opened.altered, ENDINGS.indexOf(ending), 1);
      refuseIfAltered(file, opened, stated);
    }
    checkedAt = performance.now();
  }

  /**
   * Moves the pages of a removed WAL into the file.
   * @returns whether all of them are in the file; false where another process has started a new WAL, whose pages count
   */
  function bringHome(): boolean {
    if (
      opened.altered.includes(1) ||
      statSync(file, { throwIfNoEntry: false })?.ino !== opened.inodes[0] ||
      (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
    )
      return false;
    const moved = moveNow(database);
    return moved !== undefined && moved.log === moved.checkpointed;
  }

  function refuse(): void {
    try {
      check();
    } catch (error) {
      bringHome();
      throw error;
    }
  }

  const watched = openElsewhere ? undefined : betweenWrites(file, refuse);

  return {
    refuse() {
      if (performance.now() - checkedAt >= CHECKED_MS) refuse();
    },
    confirm() {
      try {
        check();
      } catch (error) {
        if (!bringHome()) throw error;
      }
    },
    close: () => watched?.(),
  };
}

/**
 * Checks the files between writes.
 * @param refuse must throw where a file was removed or altered
 * @returns ends the checks
 */
function betweenWrites(file: string, refuse: () => void): () => void {
  /** The state of the files as of the last check that found nothing. */
  let checked = '';
  const timer = setInterval(() => {
    try {
      const state = stateOf(file);
      if (state === checked) return;
      refuse();
      checked = state;
    } catch {
      // The next write reports the fault.
    }
  }, POLL_MS).unref();
  return () => clearInterval(timer);
}

/** The guard of a connection whose files can't be lost: it checks nothing. */
export const UNGUARDED: Pick<WriteGuard, 'refuse' | 'confirm'> = { refuse: () => undefined, confirm: () => undefined };

/** What the system says of the files, which every removal and alteration changes. */
function stateOf(file: string): string {
  return statedFiles(file)
    .map((one) => (one === undefined ? '' : `${one.ino} ${one.size} ${one.ctimeMs}`))
    .join();
}

/** https://www.sqlite.org/fileformat2.html#the_write_ahead_log */
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** The magic number of a WAL header without its last bit, which is the byte order of checksums. */
const WAL_MAGIC = 0x377f0682;

/** Attempts of one check: between its steps another process may have emptied the WAL, and filled it as far again. */
const LOOKS = 3;

/** State on disk of a data file, its WAL and the WAL's index; `undefined` for a file that does not exist. */
type StatedFiles = readonly (Stats | undefined)[];

/**
 * Prepares the check of a connection that is between transactions: finds a data file or a WAL that was altered in place
 * while it is open. SQLite does not notice: it goes on writing behind the end of a WAL that was cut, and no later start
 * finds those writes. A file overwritten by one of the same or a greater size is not found: that looks like a checkpoint
 * of another process.
 * @returns checks the files, whose state on disk was read just now, and returns the ending of the altered file's name
 */
function alterationsOf(database: Database, file: string): (stated: StatedFiles) => '' | '-wal' | undefined {
  const pageSize = database.pragma('page_size', { simple: true }) as number;
  // Reads the WAL's index, which all connections share: the frames that they have committed, and that were not cut off
  // since.
  const checkpoint = database.prepare<[], { readonly log: number }>('PRAGMA wal_checkpoint(NOOP)');
  const pageCount = database.prepare<[], number>('PRAGMA page_count').pluck();
  const schemaVersion = database.prepare<[], number>('PRAGMA schema_version').pluck();
  // In one transaction, since each takes and frees the file's locks.
  const schemaAndPages = database.transaction(() => [schemaVersion.get(), pageCount.get()] as const);
  let schema = 0;
  /** Expected size of the file, without the pages that a VACUUM has left to the next checkpoint to cut. */
  let bytes = 0;

  /** Frames in the WAL; 0 where another connection keeps the index from being read. */
  function frames(): number {
    return read(() => checkpoint.get()?.log) ?? 0;
  }

  function walIsCut(size: number | undefined): boolean {
    const first = frames();
    // An older size than the number of frames is no proof of a cut.
    if (first <= 0 || (size !== undefined && holdsFrames(`${file}-wal`, first, pageSize, size))) return false;
    for (let attempt = 1; attempt <= LOOKS; attempt++) {
      const written = frames();
      if (written <= 0 || holdsFrames(`${file}-wal`, written, pageSize) || frames() !== written) return false;
    }
    return true;
  }

  /** Whether the file was cut. Only a VACUUM makes it shorter, which raises the version of its schema. */
  function fileIsCut(now: number | undefined): boolean {
    if (now === undefined) return false;
    const [version = schema, pages] = read(schemaAndPages) ?? [];
    if (now < bytes && version <= schema) return true;
    schema = version;
    if (pages !== undefined) bytes = Math.min(now, pages * pageSize);
    return false;
  }

  fileIsCut(statSync(file, { throwIfNoEntry: false })?.size);
  return ([main, wal]) => (walIsCut(wal?.size) ? '-wal' : fileIsCut(main?.size) ? '' : undefined);
}

/**
 * Whether the WAL has at least so many frames. Also true where the WAL was removed: openedFiles.ts finds that.
 * @param stated the WAL's size, if it was read just now
 */
function holdsFrames(wal: string, frames: number, pageSize: number, stated?: number): boolean {
  const header = Buffer.alloc(WAL_HEADER_BYTES);
  let descriptor: number;
  try {
    descriptor = openSync(wal, 'r');
  } catch {
    return true;
  }
  try {
    const size = stated ?? fstatSync(descriptor).size;
    readSync(descriptor, header, 0, header.length, 0);
    // A commit that was in progress fills the part that was cut with zeros.
    const isWal = (header.readUInt32BE(0) & ~1) === WAL_MAGIC;
    return isWal && size >= WAL_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + pageSize);
  } finally {
    closeSync(descriptor);
  }
}

/** The value of `work`, or `undefined` on a fault of the engine, which the next read or write finds. */
function read<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error;
    return undefined;
  }
}

/**
 * Finds a data file or a WAL that was altered in place while it is open. SQLite does not notice: it goes on writing
 * behind the end of a WAL that was cut, and no later start finds those writes. A file overwritten by one of the same or
 * a greater size is not found: that looks like a checkpoint of another process.
 */
import { closeSync, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { Sqlite } from './driver.js';

/** https://www.sqlite.org/fileformat2.html#the_write_ahead_log */
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** The magic number of a WAL header without its last bit, which is the byte order of checksums. */
const WAL_MAGIC = 0x377f0682;

/** Attempts of one check: between its steps another process may have emptied the WAL, and filled it as far again. */
const LOOKS = 3;

/** State on disk of a data file, its WAL and the WAL's index; `undefined` for a file that does not exist. */
export type StatedFiles = readonly (Stats | undefined)[];

/**
 * Prepares the check of a connection that is between transactions.
 * @returns checks the files, whose state on disk was read just now, and returns the ending of the altered file's name
 */
export function alterationsOf(database: Database, file: string): (stated: StatedFiles) => '' | '-wal' | undefined {
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

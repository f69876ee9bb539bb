/**
 * Finds a data file or a WAL that was altered in place while it is open. SQLite does not notice: behind the end of a
 * WAL that was cut it goes on writing, and no later start finds anything of that. A file that was overwritten by one of
 * the same or a greater size is not found: that looks like a checkpoint of another process.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { Sqlite } from './driver.js';

/** https://www.sqlite.org/fileformat2.html#the_write_ahead_log */
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** Without the last bit, which is the byte order of checksums. */
const WAL_MAGIC = 0x377f0682;

/** Between the steps of a look another process may have emptied the WAL, and filled it as far again. */
const LOOKS = 3;

/**
 * Of a connection between transactions.
 * @returns looks, and gives the ending of the altered file's name
 */
export function alterationsOf(database: Database, file: string): () => '' | '-wal' | undefined {
  const pageSize = database.pragma('page_size', { simple: true }) as number;
  // By the index of the WAL, which all connections share: what they have committed, and not cut off since.
  const checkpoint = database.prepare<[], { readonly log: number }>('PRAGMA wal_checkpoint(NOOP)');
  const pageCount = database.prepare<[], number>('PRAGMA page_count').pluck();
  const schemaVersion = database.prepare<[], number>('PRAGMA schema_version').pluck();
  let schema = 0;
  /** Of the file, without what a VACUUM has left to the next checkpoint to cut. */
  let bytes = 0;

  /** 0 where another connection keeps it from being read. */
  function frames(): number {
    return read(() => checkpoint.get()?.log) ?? 0;
  }

  function walIsCut(): boolean {
    for (let look = 1; look <= LOOKS; look++) {
      const written = frames();
      if (written <= 0 || holdsFrames(`${file}-wal`, written, pageSize) || frames() !== written) return false;
    }
    return true;
  }

  /** Only a VACUUM makes it shorter, which raises the version of its schema. */
  function fileIsCut(): boolean {
    const now = statSync(file, { throwIfNoEntry: false })?.size;
    if (now === undefined) return false;
    const version = read(() => schemaVersion.get()) ?? schema;
    if (now < bytes && version <= schema) return true;
    schema = version;
    const pages = read(() => pageCount.get());
    if (pages !== undefined) bytes = Math.min(now, pages * pageSize);
    return false;
  }

  fileIsCut();
  return () => (walIsCut() ? '-wal' : fileIsCut() ? '' : undefined);
}

/** Also true where the WAL was removed: openedFiles.ts finds that. */
function holdsFrames(wal: string, frames: number, pageSize: number): boolean {
  const header = Buffer.alloc(WAL_HEADER_BYTES);
  let descriptor: number;
  try {
    descriptor = openSync(wal, 'r');
  } catch {
    return true;
  }
  try {
    const { size } = fstatSync(descriptor);
    readSync(descriptor, header, 0, header.length, 0);
    // A commit that was under way fills what was cut with zeros.
    const isWal = (header.readUInt32BE(0) & ~1) === WAL_MAGIC;
    return isWal && size >= WAL_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + pageSize);
  } finally {
    closeSync(descriptor);
  }
}

/** A fault of the engine is found by the next read or write. */
function read<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error;
    return undefined;
  }
}

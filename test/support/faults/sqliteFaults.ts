/** Lets SQLite's reads of this thread fail as a disk does, beneath the engines' code. */
import { basename } from 'node:path';
import { Sqlite } from '../../../src/adapters/embedded/driver.js';

/** Errors of a disk that gives nothing, or nonsense, in SQLite's words. */
export const DISK_FAULTS = [
  ['SQLITE_IOERR_READ', 'disk I/O error'],
  ['SQLITE_NOTADB', 'file is not a database'],
  ['SQLITE_CORRUPT', 'database disk image is malformed'],
] as const;

/** A fault, and the names of the files whose reads it hits. */
interface Fault {
  readonly code: string;
  readonly message: string;
  readonly files: readonly string[];
  readonly times: number;
}

let fault: Fault | undefined;
let met = 0;
patch();

/**
 * Has every read of these files fail from now on, until it is called without a fault, or so many `times`. @returns how
 * many have failed since the call before
 */
export function failReads(
  [code, message]: (typeof DISK_FAULTS)[number] | readonly [] = [],
  files: readonly string[] = ['events.db', 'read.db'],
  times = Number.POSITIVE_INFINITY,
): number {
  const failed = met;
  met = 0;
  fault = code === undefined || message === undefined ? undefined : { code, message, files, times };
  return failed;
}

/** Once for all statements of this thread. */
function patch(): void {
  const database = new Sqlite(':memory:');
  const prototype = Object.getPrototypeOf(database.prepare('SELECT 1')) as Record<
    'get' | 'all' | 'iterate',
    (...requested: unknown[]) => unknown
  >;
  database.close();
  for (const name of ['get', 'all', 'iterate'] as const) {
    const original = prototype[name];
    prototype[name] = function read(this: { readonly database: { readonly name: string } }, ...requested) {
      if (fault !== undefined && met < fault.times && fault.files.includes(basename(this.database.name))) {
        met += 1;
        throw new Sqlite.SqliteError(fault.message, fault.code);
      }
      return original.apply(this, requested);
    };
  }
}

/**
 * The SQLite driver. better-sqlite3 13 speaks Node-API 10, which Node has from 22.14 on; 12 runs on Node 20, but ends the process on Node 24.19 and later
 * when a statement is collected (`RemoveEnvironmentCleanupHook … (env) != nullptr`). Both write the same files and have the same interface.
 */
import { createRequire } from 'node:module';
import type BetterSqlite3 from 'better-sqlite3';

const require = createRequire(import.meta.url);

/** The name of the driver that this version of Node wants. @param nodeApi `process.versions.napi` */
export function driverFor(nodeApi: string | undefined): 'better-sqlite3' | 'better-sqlite3-napi' {
  return Number(nodeApi) >= 10 ? 'better-sqlite3-napi' : 'better-sqlite3';
}

/** better-sqlite3, in the version that this process can run. */
export const Sqlite = require(driverFor(process.versions.napi)) as typeof BetterSqlite3;

/**
 * better-sqlite3 13 needs Node-API 10 (Node 22.14). Version 12 runs on Node 20, but ends the process on Node 24.19 and
 * later when a statement is collected (`RemoveEnvironmentCleanupHook … (env) != nullptr`). Both have the same interface
 * and file format.
 */
import { createRequire } from 'node:module';
import type BetterSqlite3 from 'better-sqlite3';

const require = createRequire(import.meta.url);

/** Package names of version 13, which `npm ci` may leave out, and of version 12. */
export type DriverName = 'better-sqlite3-napi' | 'better-sqlite3';

interface NodeVersions {
  readonly node: string;
  /** Node-API version of the running Node; absent where a build has no Node-API. */
  readonly napi?: string | undefined;
}

export function driversFor({ node, napi }: NodeVersions): readonly [DriverName, ...DriverName[]] {
  if (!(Number(napi) >= 10)) return ['better-sqlite3'];
  const [major = 0, minor = 0] = node.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 19)
    ? ['better-sqlite3-napi']
    : ['better-sqlite3-napi', 'better-sqlite3'];
}

export function firstInstalled<T>(drivers: readonly DriverName[], load: (name: DriverName) => T): T {
  for (const name of drivers) {
    try {
      return load(name);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // An installed driver that lacks a part is broken, not absent.
      if (code !== 'MODULE_NOT_FOUND' || !message.includes(`'${name}'`)) throw error;
    }
  }
  throw new Error(
    `${drivers.join(' or ')} is not installed, and Node ${process.versions.node} needs it for SQLite: run npm ci with optional dependencies`,
  );
}

export const Sqlite = firstInstalled(driversFor(process.versions), (name) => require(name) as typeof BetterSqlite3);

/** Why the service did not start, for whoever started it. */
import { DataFileError } from './adapters/embedded/sqlite.js';
import { EngineError } from './adapters/engineError.js';
import type { Config } from './config.js';
import { UnavailableError } from './ports/unavailable.js';

/** What to change, in a sentence; `undefined` for what was not foreseen. */
export function startFailure(error: unknown, config: Pick<Config, 'dataDir' | 'host' | 'port' | 'roles'>): string | undefined {
  if (error instanceof DataFileError || error instanceof EngineError) return error.message;
  const { code, port, path } = error as NodeJS.ErrnoException & { readonly port?: number };
  const portSetting = config.roles.has('api') && port === config.port ? 'PORT' : 'METRICS_PORT';
  if (code === 'EADDRINUSE') return `port ${port} of ${config.host} is taken: set ${portSetting} to a free one`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `HOST ${config.host} is not an address of this machine`;
  if (code === 'EACCES' && port !== undefined) return `no permission to listen on port ${port}: set ${portSetting} to another one`;
  if (code === 'EACCES') return `no permission${path === undefined ? '' : ` for ${path}`}: check DATA_DIR (${config.dataDir})`;
  // Of the disk: a file of ours that can't be used, in the engine's words or the system's.
  const engine = error instanceof UnavailableError ? ((error.cause as { readonly code?: unknown } | undefined)?.code ?? '') : code;
  if (typeof engine === 'string' && engine.startsWith('SQLITE_')) return `${(error as Error).message}: ${remedyOf(engine)} (DATA_DIR is ${config.dataDir})`;
  if (path?.startsWith(config.dataDir) === true) return `${(error as Error).message}: check DATA_DIR (${config.dataDir})`;
  return undefined;
}

function remedyOf(code: string): string {
  if (/^SQLITE_(FULL|IOERR)/.test(code)) return 'see that there is room on its disk, and that the disk is well';
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(code)) return 'see that this user may write all files there, and that it is not mounted read-only';
  return 'see that nothing else uses it, and start again';
}

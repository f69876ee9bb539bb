/** Why the service did not start, for whoever started it. */
import { DataFileError } from './adapters/embedded/sqlite.js';
import { EngineError } from './adapters/engineError.js';
import type { Config } from './config.js';

/** What to change, in a sentence; `undefined` for what was not foreseen. */
export function startFailure(error: unknown, config: Pick<Config, 'dataDir' | 'host' | 'port' | 'roles'>): string | undefined {
  if (error instanceof DataFileError || error instanceof EngineError) return error.message;
  const { code, port } = error as NodeJS.ErrnoException & { readonly port?: number };
  const portSetting = config.roles.has('api') && port === config.port ? 'PORT' : 'METRICS_PORT';
  if (code === 'EADDRINUSE') return `port ${port} of ${config.host} is taken: set ${portSetting} to a free one`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `HOST ${config.host} is not an address of this machine`;
  if (code === 'EACCES') return port === undefined ? `no permission: check DATA_DIR (${config.dataDir})` : `no permission to listen on port ${port}: set ${portSetting} to another one`;
  return undefined;
}

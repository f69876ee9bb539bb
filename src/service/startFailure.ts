import { DataFileError } from '../adapters/embedded/sqlite.js';
import { EngineError } from '../lib/engineError.js';
import type { Config } from './config.js';
import { diskRemedy } from './diskRemedy.js';
import { exhausted } from '../lib/files/folderErrors.js';
import { UnavailableError } from '../ports/unavailable.js';

/** Why the service did not start, and what to change; `undefined` for an unforeseen error. */
export function startFailure(
  error: unknown,
  config: Pick<Config, 'dataDir' | 'host' | 'port' | 'roles'>,
): string | undefined {
  if (error instanceof DataFileError || error instanceof EngineError) return error.message;
  const { code, port, path } = error as NodeJS.ErrnoException & { readonly port?: number };
  const portSetting = config.roles.has('api') && port === config.port ? 'PORT' : 'METRICS_PORT';
  if (code === 'EADDRINUSE') return `port ${port} of ${config.host} is taken: set ${portSetting} to a free one`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `HOST ${config.host} is not an address of this machine`;
  if (code === 'EACCES' && port !== undefined)
    return `no permission to listen on port ${port}: set ${portSetting} to another one`;
  if (code === 'EACCES')
    return `no permission${path === undefined ? '' : ` for ${path}`}: check DATA_DIR (${config.dataDir})`;
  if ((code === 'ENOSPC' || code === 'EDQUOT') && (error as Error).message.includes(config.dataDir))
    return `${(error as Error).message}: ${exhausted(config.dataDir) ?? 'see that this user has room on its disk'}`;
  const remedy = diskRemedy(error);
  if (remedy !== undefined) return `${(error as Error).message}: ${remedy} (DATA_DIR is ${config.dataDir})`;
  if (error instanceof UnavailableError)
    return `${error.message}: see that the servers named in the settings run and answer in time (ENGINES_WAIT_MS is how long a start waits for them)`;
  if (path?.startsWith(config.dataDir) === true)
    return `${(error as Error).message}: check DATA_DIR (${config.dataDir})`;
  return undefined;
}

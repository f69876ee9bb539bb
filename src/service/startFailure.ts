/** Failures of a start: which ones a start waits out, and what to change after the others. */
import type { Logger } from 'pino';
import { DataFileError } from '../adapters/embedded/sqlite.js';
import { pause } from '../lib/async/pause.js';
import { EngineError, NoAnswerError } from '../lib/engineError.js';
import { exhausted } from '../lib/files/folderErrors.js';
import { ticks } from '../lib/world.js';
import { AlteredEventError, UnavailableError } from '../ports/unavailable.js';
import type { Config } from './config.js';

/** Milliseconds between two attempts, each of which leaves a line in the log. */
const BETWEEN_MS = 2_000;

interface RetryPolicy {
  readonly waitMs: number;
  readonly betweenMs?: number;
  /** Ends the attempts. */
  readonly signal?: AbortSignal;
}

/**
 * Tries again while a server does not answer, for up to `waitMs`.
 * @param start releases what it opened when it fails
 * @throws the last attempt's error; at once, errors that waiting does not change: refused credentials, a damaged file,
 * a full disk
 */
export async function startWithRetries<T>(
  start: () => Promise<T>,
  logger: Logger,
  { waitMs, betweenMs = BETWEEN_MS, signal = new AbortController().signal }: RetryPolicy,
): Promise<T> {
  const until = ticks() + waitMs;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const left = until - ticks();
      if (!maySettle(error) || left <= 0 || signal.aborted) throw error;
      logger.warn({ leftSeconds: Math.ceil(left / 1_000) }, `not started yet, trying again: ${error.message}`);
      await pause(Math.min(betweenMs, left), signal);
      if (signal.aborted) throw error;
    }
  }
}

function maySettle(error: unknown): error is Error {
  return error instanceof NoAnswerError || (error instanceof UnavailableError && diskRemedy(error) === undefined);
}

/** Why the service did not start, and what to change; `undefined` for an unforeseen error. */
export function startFailure(
  error: unknown,
  config: Pick<Config, 'dataDir' | 'host' | 'port' | 'opsPort' | 'roles'>,
): string | undefined {
  if (error instanceof DataFileError || error instanceof EngineError) return error.message;
  const { code, port, path } = error as NodeJS.ErrnoException & { readonly port?: number };
  const portSetting = portSettingOf(port, config);
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

/** The setting of a port. A process without the role `api` listens on METRICS_PORT only. */
function portSettingOf(at: number | undefined, { port, opsPort, roles }: Pick<Config, 'port' | 'opsPort' | 'roles'>) {
  if (roles.has('api') && at === port) return 'PORT';
  return roles.has('api') && at === opsPort ? 'OPS_PORT' : 'METRICS_PORT';
}

/** The remedy, as text, where a file of the embedded engines can't be used; `undefined` for other errors. */
export function diskRemedy(error: unknown): string | undefined {
  if (error instanceof AlteredEventError) return 'gift audit verify names what was altered';
  const waits = error instanceof UnavailableError;
  const { code } = ((waits ? error.cause : error) ?? {}) as { readonly code?: unknown };
  if (typeof code !== 'string' || !(code.startsWith('SQLITE_') || (waits && /^(ENOSPC|EDQUOT)$/.test(code))))
    return undefined;
  if (/^(SQLITE_(FULL|IOERR)|E)/.test(code)) return 'see that there is room on its disk, and that the disk is well';
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code))
    return 'try again: a bad read may pass; where it fails in the same way each time, the file is damaged (see the chapter Failing part of the runbook)';
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(code))
    return 'see that this user may write all files there, and that it is not mounted read-only';
  return 'see that nothing else uses it, and try again';
}

/** A sandbox's reset (docs/api/sandbox.md#starting-again). `serve` carries it out between two starts of the roles. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { succeedEventLog } from '../adapters/embedded/eventStore/succeedLog.js';
import { type FileLock, openFileLock } from '../adapters/embedded/fileLock.js';
import { openEmbeddedKeyStore } from '../adapters/embedded/keyStore/keyStore.js';
import { unavailableOf } from '../adapters/embedded/sqlite.js';
import { health } from '../api/health.js';
import { HttpError } from '../api/pipeline/errors.js';
import { application } from '../api/pipeline/server.js';
import { resetClock, systemTime } from '../lib/clock.js';
import { forgetSubjects, namedSubjects } from '../ops/sandbox/forgetSubjects.js';
import { survivesReset } from '../ops/sandbox/survivesReset.js';
import { UnavailableError } from '../ports/unavailable.js';
import { type Config, ROLES } from './config.js';
import { makeDataDir } from './dataDir.js';
import { isEmbedded } from './personal.js';
import { treeDir } from './tree.js';

/** File whose lock shows whether other processes use a sandbox's data folder. */
const LOCK_FILE = 'sandbox.lock';
/**
 * File whose lock is held by the process that tries to claim the folder. It has to end its own share for that: of two
 * that did so at once, one would claim a folder that the other still uses.
 */
const CLAIM_FILE = 'sandbox-claim.lock';

/** The data folder of a sandbox, which its processes share until one of them resets it. */
export interface SandboxFolder {
  /** Shares the folder with other processes. @throws UnavailableError while another process resets the sandbox */
  share(): void;
  /**
   * Claims the folder for a reset, so that no other process can start. Safe to repeat.
   * @throws HttpError `reset_refused`; UnavailableError
   */
  claim(): void;
}

/** Opens the folder, which nobody shares yet. A service that is not a sandbox, or is on servers, shares none. */
export function sandboxFolder(config: Config): SandboxFolder {
  const { sandbox, dataDir, eventStoreUrl, mongodbUrl, natsUrl, roles } = config;
  const isAllEmbedded = [eventStoreUrl, mongodbUrl, natsUrl].every((url) => url === undefined) && isEmbedded(config);
  const locks = new Map<string, FileLock>();
  const take = (name: string, how: 'share' | 'claim'): boolean => {
    const file = join(dataDir, name);
    try {
      const lock = locks.get(name) ?? openFileLock(file);
      locks.set(name, lock);
      return lock[how]();
    } catch (error) {
      throw unavailableOf(error, file);
    }
  };
  const share = (): void => {
    if (!sandbox || !isAllEmbedded) return;
    makeDataDir(dataDir);
    if (!take(LOCK_FILE, 'share')) throw new UnavailableError('another process resets the sandbox of this data folder');
  };
  return {
    share,
    claim() {
      if (!isAllEmbedded) throw resetRefused('only a sandbox on embedded engines can be reset.');
      if (ROLES.some((role) => !roles.has(role)))
        throw resetRefused('only a sandbox with all roles in one process can be reset.');
      try {
        if (take(CLAIM_FILE, 'claim')) {
          if (take(LOCK_FILE, 'claim')) return;
          share();
        }
      } finally {
        locks.get(CLAIM_FILE)?.release();
      }
      throw resetRefused('another process uses the data folder of this sandbox.');
    },
  };
}

export const resetRefused = (message: string): HttpError => new HttpError('reset_refused', { message });

/** Answers requests while no role runs: with 503, except for `/healthz`. */
export function whileReset(
  { corsOrigins }: Config,
  logger: Logger,
): ReturnType<ReturnType<typeof application>['callback']> {
  const parts = { sandbox: { ready: false, detail: 'is being reset' } };
  const refuse = (): never => {
    throw new HttpError('unavailable');
  };
  return application(logger, [health(async () => ({ parts, simulated: ['payments', 'notifications'] })), refuse], {
    corsOrigins,
  }).callback();
}

/**
 * Resets a sandbox's data. No other process may use the data folder. Once it has resolved, the log is another one,
 * without purchases.
 * @returns the new log's id @throws UnavailableError, DataFileError: then the log is as before
 */
export async function resetData(config: Config, logger: Logger): Promise<string> {
  const named = namedSubjects();
  const { from, to, shrink, close } = succeedEventLog(config.dataDir, {
    keeps: survivesReset,
    onRetained: named.add,
    now: systemTime(),
  });
  resetClock();
  try {
    shrink();
    const keys = await openEmbeddedKeyStore({ dir: config.dataDir });
    try {
      await forgetSubjects(keys, named);
    } finally {
      await keys.close();
    }
    await rm(join(treeDir(config), from), { recursive: true, force: true });
  } catch (error) {
    logger.error(
      { err: error, log: from },
      'the sandbox is reset, but something of its old log is left: reset it again',
    );
  } finally {
    close();
  }
  return to;
}

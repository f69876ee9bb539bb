/** The changes of a reset in the data folder of a sandbox (docs/api/sandbox.md#starting-again). */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { succeedEventLog } from '../adapters/embedded/eventStore/succeedLog.js';
import { openEmbeddedKeyStore } from '../adapters/embedded/keyStore/keyStore.js';
import { resetClock, systemTime } from '../lib/clock.js';
import { forgetSubjects, namedSubjects } from '../ops/sandbox/forgetSubjects.js';
import { keptByReset } from '../ops/sandbox/keptByReset.js';
import type { Config } from './config.js';
import { treeDir } from './tree.js';

/**
 * Resets a sandbox's data. No other process may use the data folder. Once it has resolved, the log is another one,
 * without purchases.
 * @returns the new log's id @throws UnavailableError, DataFileError: then the log is as before
 */
export async function resetData(config: Config, logger: Logger): Promise<string> {
  const named = namedSubjects();
  const { from, to, shrink, close } = succeedEventLog(config.dataDir, {
    keeps: keptByReset,
    onKept: named.add,
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

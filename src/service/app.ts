/** A service inside of another program, such as the demo. `serve` runs it as a process of its own. */
import type { Logger } from 'pino';
import { resources } from '../lib/async/resources.js';
import type { Config } from './config.js';
import { openListeners, type Urls, urlsOf } from './listeners.js';
import { startRoles } from './roles.js';
import { resetRefused } from './sandboxReset.js';
import type { Overrides } from './shared.js';

export interface App extends Urls {
  readonly logId: string;
  /** Refuses new connections, finishes open requests, releases everything: within 10 s. */
  close(): Promise<void>;
}

/**
 * Starts the service in this process. A failure closes everything. `startFailure` explains most errors.
 * @throws DataFileError, EngineError, UnavailableError, errors of the listener (a taken port), of SQLite or of the file
 * system
 */
export async function startApp(config: Config, logger: Logger, overrides: Overrides = {}): Promise<App> {
  const open = resources();
  const reset = (): never => {
    throw resetRefused('only a sandbox in a process of its own can be reset.');
  };
  try {
    // The listeners are opened first, so that a taken port is found before any work starts.
    const listeners = await openListeners(config, logger, open);
    const { logId } = open.add(await startRoles({ config, logger, listeners, reset, ...overrides }));
    return { ...urlsOf(config, listeners), logId, close: open.close };
  } catch (error) {
    await open.close().catch((late: unknown) => logger.error({ err: late }, 'closing failed'));
    throw error;
  }
}

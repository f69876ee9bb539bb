import { writeSync } from 'node:fs';
import type { Logger } from 'pino';
import { startApp } from './app.js';
import { type Config, ConfigError, loadConfig } from './config.js';
import { createLogger } from '../lib/logging/logger.js';
import { VERSION } from '../lib/version.js';
import { startWithRetries } from './startWithRetries.js';
import { startFailure } from './startFailure.js';
import { startTelemetry } from '../tracing/telemetry.js';

export type StopSignal = 'SIGTERM' | 'SIGINT';

/** Milliseconds that a stop may take; then the process ends, without losing anything acknowledged. */
const STOP_MS = 10_000;

interface Closing {
  readonly app?: { close(): Promise<void> } | undefined;
  readonly telemetry?: { close(): Promise<void> } | undefined;
}

/**
 * Starts the service with this process's environment. A failure is explained, and ends the process with exit code 1.
 * @param started receives the function that stops the service; until then the process may just end
 */
export async function serve(started: (stop: (signal: StopSignal) => void) => void): Promise<void> {
  const config = settings();
  const logger = createLogger({ level: config.logLevel });
  let telemetry: Closing['telemetry'];
  try {
    telemetry = await startTelemetry({ version: VERSION, logger });
    const onLost = (error: unknown): void => void fail(error, config, logger, telemetry);
    const app = await startWithRetries(async () => startApp(config, logger, { onLost }), logger, {
      waitMs: config.enginesWaitMs,
    });
    started(stopping({ app, telemetry }, logger));
    logger.info(
      {
        url: app.url,
        health: app.healthUrl,
        ops: app.opsUrl,
        roles: [...config.roles],
        dataDir: config.dataDir,
        log: app.logId,
        payments: config.payments,
        notifications: config.notifications,
      },
      'started',
    );
  } catch (error) {
    await fail(error, config, logger, telemetry);
  }
}

async function fail(error: unknown, config: Config, logger: Logger, telemetry: Closing['telemetry']): Promise<void> {
  const cause = startFailure(error, config);
  if (cause === undefined) logger.fatal({ err: error }, 'could not start');
  else explain(cause);
  await telemetry?.close();
  process.exit(1);
}

function settings(): Config {
  try {
    return loadConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    explain(error.message);
    process.exit(1);
  }
}

/** Writes to standard error. If that is closed, the process must end nevertheless. */
function explain(text: string): void {
  try {
    writeSync(2, `${text}\n`);
  } catch {
    // No reader is left.
  }
}

/**
 * Stops the service once, and ends the process despite remaining work, such as traces to a collector that does not
 * answer.
 */
function stopping(running: Closing, logger: Logger): (signal: StopSignal) => void {
  let called = false;
  return (signal) => {
    if (called) return;
    called = true;
    logger.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), STOP_MS).unref();
    end(running).then(
      () => {
        logger.info('stopped');
        process.exit(0);
      },
      (error: unknown) => {
        logger.error({ err: error }, 'stopping failed');
        process.exit(1);
      },
    );
  };
}

async function end({ app, telemetry }: Closing): Promise<void> {
  try {
    await app?.close();
  } finally {
    await telemetry?.close();
  }
}

#!/usr/bin/env node
/** The service's process: reads the settings, starts, and stops on SIGTERM or SIGINT. */
import { constants } from 'node:os';
import { type Config, ConfigError, loadConfig } from './config.js';
import { type App, VERSION, startApp } from './app.js';
import { createLogger } from './logging/logger.js';
import { startFailure } from './startFailure.js';
import { startTelemetry } from './tracing/telemetry.js';

/** Stopping takes at most so long; then the process ends all the same: nothing acknowledged is lost by that. */
const STOP_MS = 10_000;

function settings(): Config {
  try {
    return loadConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

const config = settings();
const logger = createLogger({ level: config.logLevel });
let telemetry: Awaited<ReturnType<typeof startTelemetry>>;
let app: App | undefined;
let stopping = false;
// Before it starts: as the first process of a container it would not hear of a signal otherwise.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop);
try {
  telemetry = await startTelemetry({ version: VERSION, logger });
  app = await startApp(config, logger);
  logger.info(
    { url: app.url, health: app.healthUrl, roles: [...config.roles], dataDir: config.dataDir, log: app.logId, payments: config.payments, notifications: config.notifications },
    'started',
  );
} catch (error) {
  const cause = startFailure(error, config);
  if (cause === undefined) logger.fatal({ err: error }, 'could not start');
  else process.stderr.write(`${cause}\n`);
  process.exitCode = 1;
  await telemetry?.close();
}

function stop(signal: 'SIGTERM' | 'SIGINT'): void {
  // What it may have begun already is finished by whoever starts next, as after any kill.
  if (app === undefined) process.exit(128 + constants.signals[signal]);
  if (stopping) return;
  stopping = true;
  logger.info({ signal }, 'stopping');
  setTimeout(() => process.exit(1), STOP_MS).unref();
  end(app).then(
    () => {
      logger.info('stopped');
      process.exitCode = 0;
    },
    (error: unknown) => {
      logger.error({ err: error }, 'stopping failed');
      process.exitCode = 1;
    },
  );
}

async function end(running: App): Promise<void> {
  try {
    await running.close();
  } finally {
    await telemetry?.close();
  }
}

/** The service as a process of its own: it starts the roles, and starts them again after a sandbox's reset. */
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import type { Logger } from 'pino';
import { resources } from '../lib/async/resources.js';
import { createLogger } from '../lib/logging/logger.js';
import { VERSION } from '../lib/version.js';
import { after } from '../lib/world.js';
import { startTelemetry } from '../tracing/telemetry.js';
import { type Config, ConfigError, loadConfig } from './config.js';
import { type Listeners, openListeners, urlsOf } from './listeners.js';
import { startRoles } from './roles.js';
import { resetData, type SandboxFolder, sandboxFolder, whileReset } from './sandboxReset.js';
import { HttpError } from '../api/pipeline/errors.js';
import { type Member, memberOf } from './processes/member.js';
import { supervise } from './processes/supervisor.js';
import { startFailure, startWithRetries } from './startFailure.js';
import { STOP_MS, type StopSignal } from './stopping.js';

/**
 * Runs the service with this process's environment, and ends the process. A failed start is explained, with exit code
 * 1. Where several processes are to serve, this one supervises them.
 * @param started receives the function that stops the service; until then the process may just end
 */
export async function serve(started: (stop: (signal: StopSignal) => void) => void): Promise<void> {
  const config = settings();
  const member = memberOf(process.env);
  if (member !== undefined && member.version !== VERSION)
    refuse(
      `this is release ${VERSION}, the processes beside it are of release ${member.version}: restart the service, whose release folder was replaced`,
    );
  const logger = createLogger({ level: config.logLevel, processNumber: member?.number });
  const open = resources();
  const stopping = new AbortController();
  const stop = (signal: StopSignal): void => {
    if (stopping.signal.aborted) return;
    logger.info({ signal }, 'stopping');
    // The process ends despite remaining work, such as traces to a collector that does not answer.
    after(STOP_MS, () => process.exit(1)).unref();
    stopping.abort();
  };
  try {
    if (config.processes > 1 && member === undefined) return await supervise(config, logger, started);
    const telemetry = await startTelemetry({ version: VERSION, logger });
    if (telemetry !== undefined) open.add(telemetry);
    // The listeners are opened first, so that a taken port is found before any work starts.
    const listeners = await openListeners(config, logger, open, member?.late);
    const folder = sandboxFolder(config);
    while (!stopping.signal.aborted)
      await serveOnce({
        config,
        logger,
        listeners,
        folder,
        member,
        stopping: stopping.signal,
        started: () => started(stop),
      });
    await open.close();
    logger.info('stopped');
    process.exit(0);
  } catch (error) {
    const cause = startFailure(error, config);
    if (stopping.signal.aborted) logger.error({ err: error }, 'stopping failed');
    else if (cause === undefined) logger.fatal({ err: error }, 'could not start');
    else explain(cause);
    await open.close().catch((late: unknown) => logger.error({ err: late }, 'closing failed'));
    process.exit(1);
  }
}

interface Serving {
  readonly config: Config;
  readonly logger: Logger;
  readonly listeners: Listeners;
  readonly folder: SandboxFolder;
  readonly member: Member | undefined;
  /** Aborted when the process is to stop. */
  readonly stopping: AbortSignal;
  readonly started: () => void;
}

/** Serves until the process is to stop, or until its sandbox is reset. @throws as `startApp` */
async function serveOnce({ config, logger, listeners, folder, member, stopping, started }: Serving): Promise<void> {
  const resetting = new AbortController();
  const reset = (): void => {
    if (stopping.aborted) throw new HttpError('unavailable');
    folder.claim();
    resetting.abort();
  };
  const start = async (): ReturnType<typeof startRoles> => {
    folder.share();
    return startRoles({ config, logger, listeners, member, reset });
  };
  const roles = await startWithRetries(start, logger, { waitMs: config.enginesWaitMs, signal: stopping }).catch(
    (error: unknown) => {
      if (!stopping.aborted) throw error;
      logger.warn({ err: error }, 'stopped before it had started again');
    },
  );
  if (roles === undefined) return;
  const { logId, close } = roles;
  started();
  const { url, healthUrl: health, opsUrl: ops } = urlsOf(config, listeners);
  const { dataDir, payments, notifications } = config;
  logger.info({ url, health, ops, roles: [...config.roles], dataDir, log: logId, payments, notifications }, 'started');
  member?.serving({ url, health, ops });

  const ended = AbortSignal.any([stopping, resetting.signal]);
  if (!ended.aborted) await once(ended, 'abort');
  if (stopping.aborted) return close();
  logger.info({ log: logId }, 'resetting the sandbox');
  const meanwhile = whileReset(config, logger);
  for (const one of Object.values(listeners)) one?.serve(meanwhile);
  try {
    await close({ keepListening: true });
    logger.info({ log: await resetData(config, logger) }, 'the sandbox is reset');
  } catch (error) {
    logger.error({ err: error, log: logId }, 'the sandbox could not be reset: its data is as before');
  }
}

function settings(): Config {
  try {
    return loadConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    refuse(error.message);
  }
}

function refuse(text: string): never {
  explain(text);
  process.exit(1);
}

/** Writes to standard error. If that is closed, the process must end nevertheless. */
function explain(text: string): void {
  try {
    writeSync(2, `${text}\n`);
  } catch {
    // No reader is left.
  }
}

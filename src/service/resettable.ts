/**
 * The service around its roles: it has the listeners, and starts the roles again where a sandbox is reset
 * (docs/api/sandbox.md#starting-again).
 */
import type { Logger } from 'pino';
import { peerNetwork } from '../api/auth/address.js';
import { health } from '../api/health.js';
import { connectionLimits, FEW_CONNECTIONS } from '../api/listener/admission.js';
import { type Listener, listen } from '../api/listener/listener.js';
import { HttpError } from '../api/pipeline/errors.js';
import { application } from '../api/pipeline/server.js';
import type { SandboxReset } from '../api/sandbox/reset.js';
import { resources } from '../lib/async/resources.js';
import { type Config, ROLES } from './config.js';
import { makeDataDir } from './dataDir.js';
import { isEmbedded } from './personal.js';
import { addressOf } from '../lib/urls.js';
import { resetData } from './resetData.js';
import { type SandboxLock, shareSandbox } from './sandboxLock.js';
import { startWithRetries } from './startWithRetries.js';

export interface App {
  /** Address of the API; `undefined` without the role `api`. */
  readonly url: string | undefined;
  /** The address for health and metrics only; `undefined` without METRICS_PORT. */
  readonly healthUrl: string | undefined;
  /** The address for `/ops` only; `undefined` without OPS_PORT. */
  readonly opsUrl: string | undefined;
  readonly logId: string;
  /** Refuses new connections, finishes open requests, releases everything: within 10 s. */
  close(): Promise<void>;
}

/** The listeners, and the means of a reset, that the roles use; they stay the same over a reset. */
export interface Stage {
  readonly listener: Listener | undefined;
  readonly healthListener: Listener | undefined;
  readonly opsListener: Listener | undefined;
  readonly reset: SandboxReset;
}

export interface RunningRoles {
  readonly logId: string;
  /** Closes the roles and the listeners. */
  close(): Promise<void>;
  /** Finishes open requests and releases everything but the listeners, which another handler uses: within 10 s. */
  handOver(): Promise<void>;
}

export interface ResettableDeps {
  readonly config: Config;
  readonly logger: Logger;
  /** Called with the error when the roles could not start again after a reset. */
  readonly onLost?: ((error: unknown) => void) | undefined;
}

const RETRY = { headers: { 'Retry-After': '1' } };

/** Opens the listeners and starts the roles. @throws as `start`, and the listener's errors */
export async function startResettable(
  { config, logger, onLost }: ResettableDeps,
  start: (stage: Stage) => Promise<RunningRoles>,
): Promise<App> {
  const open = resources();
  let running: RunningRoles;
  let resetting: Promise<void> | undefined;
  let closing = false;
  try {
    const networkOf = peerNetwork(config.trustedProxies);
    const listening = async (port: number, limits = FEW_CONNECTIONS): Promise<Listener> => {
      const onError = (err: Error): void => logger.error({ err, port }, 'the listener met an error');
      return open.add(await listen(port, config.host, onError, { limits, networkOf }));
    };
    // The listeners are opened first, so that a taken port is found before any work starts.
    const listener = config.roles.has('api') ? await listening(config.port, connectionLimits()) : undefined;
    const healthListener = config.metricsPort === undefined ? undefined : await listening(config.metricsPort);
    const opsListener =
      listener === undefined || config.opsPort === undefined ? undefined : await listening(config.opsPort);
    const lock = config.sandbox && isAllEmbedded(config) ? open.add(sharedBy(config)) : undefined;
    const stage: Stage = { listener, healthListener, opsListener, reset: { begin } };
    running = await start(stage);

    function begin(): { readonly logId: string } {
      if (closing) throw new HttpError('unavailable', RETRY);
      resetting ??= reset(claimed(lock, config)).finally(() => (resetting = undefined));
      return { logId: running.logId };
    }

    async function reset(alone: SandboxLock): Promise<void> {
      const { logId } = running;
      logger.info({ log: logId }, 'resetting the sandbox');
      const meanwhile = whileReset(config, logger);
      for (const one of [listener, healthListener, opsListener]) one?.serve(meanwhile);
      try {
        await running.handOver();
        const to = await resetData(config, logger);
        logger.info({ log: to }, 'the sandbox is reset');
      } catch (error) {
        logger.error({ err: error, log: logId }, 'the sandbox could not be reset: its data is as before');
      }
      if (closing) return;
      const again = async (): Promise<RunningRoles> => {
        alone.share();
        return start(stage);
      };
      try {
        running = await startWithRetries(again, logger, { waitMs: config.enginesWaitMs });
      } catch (error) {
        logger.fatal({ err: error }, 'the sandbox could not start again after its reset');
        onLost?.(error);
      }
    }

    return {
      url: listener === undefined ? undefined : addressOf(config.host, listener.port),
      healthUrl: healthListener === undefined ? undefined : addressOf(config.host, healthListener.port),
      opsUrl: opsListener === undefined ? undefined : addressOf(config.host, opsListener.port),
      get logId() {
        return running.logId;
      },
      async close() {
        closing = true;
        await resetting;
        try {
          await running.close();
        } finally {
          await open.close();
        }
      },
    };
  } catch (error) {
    await open.close().catch((late: unknown) => logger.error({ err: late }, 'closing failed'));
    throw error;
  }
}

const isAllEmbedded = (config: Config): boolean =>
  config.eventStoreUrl === undefined &&
  config.mongodbUrl === undefined &&
  config.natsUrl === undefined &&
  isEmbedded(config);

function sharedBy({ dataDir }: Config): SandboxLock {
  makeDataDir(dataDir);
  return shareSandbox(dataDir);
}

/** Claims the lock, so that no other process can start. @throws HttpError `reset_refused`; UnavailableError */
function claimed(lock: SandboxLock | undefined, { roles }: Config): SandboxLock {
  const refused = (message: string): HttpError => new HttpError('reset_refused', { message });
  if (lock === undefined) throw refused('only a sandbox on embedded engines can be reset.');
  if (ROLES.some((role) => !roles.has(role)))
    throw refused('only a sandbox with all roles in one process can be reset.');
  if (!lock.claim()) throw refused('another process uses the data folder of this sandbox.');
  return lock;
}

/** Answers requests while no role runs: with 503, except for `/healthz`. */
function whileReset({ corsOrigins }: Config, logger: Logger): ReturnType<ReturnType<typeof application>['callback']> {
  const parts = { sandbox: { ready: false, detail: 'is being reset' } };
  const refuse = (): never => {
    throw new HttpError('unavailable', RETRY);
  };
  return application(logger, [health(async () => ({ parts, simulated: ['payments', 'notifications'] })), refuse], {
    corsOrigins,
  }).callback();
}

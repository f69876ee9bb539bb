/** The listeners of a process. They stay open while a sandbox is reset. */
import type { Logger } from 'pino';
import { peerNetwork } from '../api/auth/address.js';
import { connectionLimits, FEW_CONNECTIONS } from '../api/listener/admission.js';
import { type Listener, type ListenerOptions, listen } from '../api/listener/listener.js';
import type { Resources } from '../lib/async/resources.js';
import { addressOf } from '../lib/urls.js';
import type { Config } from './config.js';

export interface Listeners {
  /** The listener of the API; `undefined` without the role `api`. */
  readonly api: Listener | undefined;
  /** The listener for health and metrics only; `undefined` without METRICS_PORT. */
  readonly health: Listener | undefined;
  /** The listener for `/ops` only; `undefined` without OPS_PORT. */
  readonly ops: Listener | undefined;
}

/** The addresses of the listeners. */
export interface Urls {
  readonly url: string | undefined;
  readonly healthUrl: string | undefined;
  readonly opsUrl: string | undefined;
}

/**
 * Opens the listeners, which answer 503 until roles serve them.
 * @param late connections are accepted only once roles serve: other processes do until then
 * @throws the listener's errors (a taken port)
 */
export async function openListeners(config: Config, logger: Logger, open: Resources, late = false): Promise<Listeners> {
  const { roles, host, port: apiPort, metricsPort, opsPort, requestWaitMs, corsOrigins } = config;
  const shedding = { requestWaitMs, corsOrigins };
  const networkOf = peerNetwork(config.trustedProxies);
  const listening = async (port: number, own: ListenerOptions = {}): Promise<Listener> => {
    const onError = (err: Error): void => logger.error({ err, port }, 'the listener met an error');
    return open.add(await listen(port, host, onError, { limits: FEW_CONNECTIONS, networkOf, late, ...own }));
  };
  const servesApi = roles.has('api');
  return {
    api: servesApi ? await listening(apiPort, { limits: connectionLimits(), ...shedding }) : undefined,
    health: metricsPort === undefined ? undefined : await listening(metricsPort),
    ops: servesApi && opsPort !== undefined ? await listening(opsPort, shedding) : undefined,
  };
}

export function urlsOf({ host }: Pick<Config, 'host'>, { api, health, ops }: Listeners): Urls {
  const urlOf = (one: Listener | undefined): string | undefined => one && addressOf(host, one.port);
  return { url: urlOf(api), healthUrl: urlOf(health), opsUrl: urlOf(ops) };
}

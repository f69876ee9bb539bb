/** Engines as the command line reaches them, and what a service at the settings' address says of itself. */
import type { PartHealth } from '../api/health.js';
import { addressOf } from '../lib/urls.js';
import { timeoutSignal } from '../lib/world.js';
import type { Config } from './config.js';
import type { DiagnosedEngines } from './diagnosis.js';
import { checkedPart, engineHealth } from './readiness.js';

/** Milliseconds that a service has to answer: its own checks end before. */
const ANSWER_MS = 5_000;
/** Addresses that stand for all of the machine, with one that can be reached. */
const REACHED: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

type Parts = Readonly<Record<string, PartHealth>>;

interface Reached extends DiagnosedEngines {
  /** Whether the log could be opened: the read store was not tried where it could not. */
  readonly isLogOpen: boolean;
  /** Whether it is known where the service's log is: else only the service itself can tell of it. */
  readonly isLogKnown: boolean;
}

/**
 * The engines, and the parts of a service that answers at `HOST` and `PORT`: it knows of files that were removed under
 * it, and of writes that fail, which a second process on the same engines can't see.
 */
export async function partsOf(config: Config, { log, read, isLogOpen, isLogKnown }: Reached): Promise<Parts> {
  const { natsUrl } = config;
  const unready = Object.entries(await partsOfService(config, log)).filter(([, { ready }]) => !ready);
  // Throws why nothing was looked at.
  if (!isLogKnown && unready.length === 0) log();
  if (!isLogKnown) return Object.fromEntries(unready);
  const own = await Promise.all([
    checkedPart('event store', async () => engineHealth(log().events)),
    ...(isLogOpen
      ? [
          checkedPart('read store', async () => engineHealth(read().store)),
          checkedPart('key store', async () => engineHealth(log().keys)),
        ]
      : []),
    ...(natsUrl === undefined ? [] : [checkedPart('bus', async () => natsHealth(natsUrl, log().events.logId))]),
  ]);
  return { ...Object.fromEntries(own), ...Object.fromEntries(unready) };
}

async function natsHealth(url: string, logId: string): Promise<PartHealth> {
  const { openNatsBus } = await import('../adapters/nats/bus.js');
  const bus = await openNatsBus({ url, logId, onError: () => undefined });
  try {
    return await engineHealth(bus);
  } finally {
    await bus.close();
  }
}

/** Empty where no service of this log answers there: whether one runs is seen by its leases. */
async function partsOfService(config: Config, log: Reached['log']): Promise<Parts> {
  const { parts = {}, log: served } = readinessIn(await shownBy(config, '/readyz'));
  return isOther(served, log) ? {} : parts;
}

/** The page `/metrics` of a service of this log that answers at `HOST` and `PORT`; empty where none does. */
export async function metricsOf(config: Config, log: Reached['log']): Promise<string> {
  const [text, page] = await Promise.all([shownBy(config, '/readyz'), shownBy(config, '/metrics')]);
  return isOther(readinessIn(text).log, log) ? '' : page;
}

function readinessIn(text: string): { readonly parts?: Parts; readonly log?: string } {
  try {
    return JSON.parse(text) as ReturnType<typeof readinessIn>;
  } catch {
    // What answers there is no service.
    return {};
  }
}

/** Whether the service that answers works on another log, as beside a copy of a data folder that was restored. */
function isOther(served: string | undefined, log: Reached['log']): boolean {
  if (served === undefined) return false;
  try {
    return log().events.logId !== served;
  } catch {
    // Where the log can't be opened, what answers at its address counts as its service.
    return false;
  }
}

async function shownBy({ host, port, metricsPort }: Config, path: string): Promise<string> {
  const shown = metricsPort ?? port;
  if (shown === 0) return '';
  try {
    const signal = timeoutSignal(ANSWER_MS);
    return await (await fetch(addressOf(REACHED[host] ?? host, shown) + path, { signal })).text();
  } catch {
    return '';
  }
}

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
  /** The error of an engine that can't be opened only now, at its first use, with a reason to show. */
  readonly refusedBy: (part: 'key store' | 'bus', error: unknown) => Error;
  /** Whether it is known where the service's log is: else only the service itself can tell of it. */
  readonly isLogKnown: boolean;
}

/**
 * The engines, and the parts of a service that answers at `HOST` and `PORT`: it knows of files that were removed under
 * it, and of writes that fail, which a second process on the same engines can't see.
 */
export async function partsOf(
  { natsUrl }: Config,
  service: DiagnosedService,
  { log, read, refusedBy, isLogOpen, isLogKnown }: Reached,
): Promise<Parts> {
  const unready = Object.entries(await service.parts()).filter(([, { ready }]) => !ready);
  // Throws why nothing was looked at.
  if (!isLogKnown && unready.length === 0) log();
  if (!isLogKnown) return Object.fromEntries(unready);
  const opened = (part: 'key store' | 'bus', check: () => Promise<PartHealth>) =>
    checkedPart(part, async () =>
      check().catch((error: unknown) => {
        throw refusedBy(part, error);
      }),
    );
  const own = await Promise.all([
    checkedPart('event store', async () => engineHealth(log().events)),
    ...(isLogOpen
      ? [
          checkedPart('read store', async () => engineHealth(read().store)),
          opened('key store', async () => engineHealth(log().keys)),
        ]
      : []),
    ...(natsUrl === undefined ? [] : [opened('bus', async () => natsHealth(natsUrl, log().events.logId))]),
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

/** A service of this log. Both are empty where none answers: whether one runs is seen by its leases. */
interface DiagnosedService {
  parts(): Promise<Parts>;
  /** The page `/metrics`. */
  metrics(): Promise<string>;
}

/** The service at `HOST` and `PORT`, which is asked once whether it is ready, and of which log. */
export function serviceOf(config: Config, log: Reached['log']): DiagnosedService {
  let asked: Promise<Shown> | undefined;
  const own = async (): Promise<Shown | undefined> => {
    const shown = await (asked ??= shownBy(config, '/readyz').then(readinessIn));
    return isOther(shown.log, log) ? undefined : shown;
  };
  return {
    parts: async () => (await own())?.parts ?? {},
    async metrics() {
      const [page, shown] = await Promise.all([shownBy(config, '/metrics'), own()]);
      return shown === undefined ? '' : page;
    },
  };
}

interface Shown {
  readonly parts?: Parts;
  readonly log?: string;
}

function readinessIn(text: string): Shown {
  try {
    return JSON.parse(text) as Shown;
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

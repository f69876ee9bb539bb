/** Engines as the command line reaches them, and what a service at the settings' address says of itself. */
import type { PartHealth } from '../api/health.js';
import { addressOf } from '../lib/urls.js';
import type { EventStore } from '../ports/eventStore.js';
import type { KeyStore } from '../ports/keyStore.js';
import type { ReadStore } from '../ports/readStore.js';
import type { Config } from './config.js';
import { checkedPart, engineHealth } from './readiness.js';

/** Milliseconds that a service has to answer: its own checks end before. */
const READYZ_MS = 5_000;
/** Addresses that stand for all of the machine, with one that can be reached. */
const REACHED: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

type Parts = Readonly<Record<string, PartHealth>>;

interface Reached {
  /** Throws why the log could not be opened. The others were not tried then. */
  readonly events: () => EventStore;
  /** Throws why the read store could not be opened. */
  readonly store: () => ReadStore;
  /** `undefined` where the log could not be opened. */
  readonly keys: KeyStore | undefined;
}

/**
 * The engines, and the parts of a service that answers at `HOST` and `PORT`: it knows of files that were removed under
 * it, and of writes that fail, which a second process on the same engines can't see.
 */
export async function partsOf(config: Config, { events, store, keys }: Reached): Promise<Parts> {
  const { natsUrl } = config;
  const own = await Promise.all([
    checkedPart('event store', async () => engineHealth(events())),
    ...(keys === undefined
      ? []
      : [
          checkedPart('read store', async () => engineHealth(store())),
          checkedPart('key store', async () => engineHealth(keys)),
        ]),
    ...(natsUrl === undefined ? [] : [checkedPart('bus', async () => natsHealth(natsUrl, events().logId))]),
  ]);
  const unready = Object.entries(await partsOfService(config)).filter(([, { ready }]) => !ready);
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

/** Empty where no service answers there: whether one runs is seen by its leases. */
async function partsOfService({ host, port, metricsPort }: Config): Promise<Parts> {
  const shown = metricsPort ?? port;
  if (shown === 0) return {};
  try {
    const answer = await fetch(`${addressOf(REACHED[host] ?? host, shown)}/readyz`, {
      signal: AbortSignal.timeout(READYZ_MS),
    });
    const { parts } = (await answer.json()) as { readonly parts?: Parts };
    return parts ?? {};
  } catch {
    return {};
  }
}

/** The engines that the settings choose. */
import { mkdirSync } from 'node:fs';
import type { Logger } from 'pino';
import { openEmbeddedBus } from './adapters/embedded/bus.js';
import { openEmbeddedEventStore } from './adapters/embedded/eventStore.js';
import { openEmbeddedReadStore } from './adapters/embedded/readStore.js';
import { openNatsBus } from './adapters/nats.js';
import type { Config } from './config.js';
import type { Bus } from './ports/bus.js';
import type { EventStore } from './ports/eventStore.js';
import type { ReadStore } from './ports/readStore.js';
import type { Resources } from './resources.js';

/** The engines of one process. */
export interface Engines {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly bus: Bus;
}

/** Opens them; `open` closes them. @throws DataFileError when a file in the data folder is foreign or damaged; EngineError when a server can't be used */
export async function openEngines(config: Pick<Config, 'dataDir' | 'natsUrl'>, logger: Logger, open: Resources): Promise<Engines> {
  const { dataDir: dir } = config;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const events = open.add(await openEmbeddedEventStore({ dir }), (store) => store.close());
  const store = open.add(await openEmbeddedReadStore({ dir }), (one) => one.close());
  const onError = (err: unknown): void => logger.warn({ err }, 'the bus met an error');
  const { natsUrl } = config;
  const bus = open.add(natsUrl === undefined ? await openEmbeddedBus({ dir, onError }) : await openNatsBus({ url: natsUrl, logId: events.logId, onError }), (one) => one.close());
  return { events, store, bus };
}

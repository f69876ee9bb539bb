/** Opens the engines of the settings. Clients of servers are large, and loaded only if their server is set. */
import { join } from 'node:path';
import { type Background, openBackground } from '../adapters/embedded/background.js';
import type { EmbeddedStoreOptions } from '../adapters/embedded/options.js';
import type { Logger } from 'pino';
import { openEmbeddedBus } from '../adapters/embedded/bus/bus.js';
import type { CommitLink } from '../adapters/embedded/eventStore/commitLink.js';
import { openEmbeddedEventStore } from '../adapters/embedded/eventStore/eventStore.js';
import { refuseForeignLog } from '../adapters/embedded/eventStore/log.js';
import { refuseForeignKeys } from '../adapters/embedded/keyStore/file.js';
import { READ_STORE_FILE, refuseForeignReadStore } from '../adapters/embedded/readStore/file.js';
import { openEmbeddedReadStore } from '../adapters/embedded/readStore/readStore.js';
import { AUTHORITY_IN_ADDRESS, certificateFault, EngineError, NoAnswerError } from '../lib/engineError.js';
import type { Resources } from '../lib/async/resources.js';
import type { Config } from './config.js';
import { makeDataDir } from './dataDir.js';
import type { Engines } from '../ports/engines.js';
import type { EventBatch, EventStore, RecordedEvent } from '../ports/eventStore.js';
import type { KeyStore } from '../ports/keyStore.js';
import type { ReadStore } from '../ports/readStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { lostAnchor } from '../runtime/log/logAnchor.js';
import type { MaintenanceOptions } from '../runtime/readmodels/index.js';
import { isEmbedded, type Log, type PersonalSettings, withPersonalData } from './personal.js';
import { changedTypes, dataUpToDate, type Upcaster, type Upcasters } from '../domain/upcasters.js';

type EngineSettings = Pick<Config, 'mongodbUrl' | 'natsUrl'> & PersonalSettings;

/** Engines that are open already, in place of those that the settings choose. They are closed with the service. */
export interface GivenEngines extends Engines, Pick<MaintenanceOptions, 'openScratch'> {
  /** The log as stored: neither decrypted nor upcast. */
  readonly events: EventStore;
  readonly keys: KeyStore;
}

/** For how long an embedded engine stays open, and which thread moves its WAL. */
type Lifetime = Pick<EmbeddedStoreOptions, 'longLived' | 'background'>;

type LogSettings = Pick<EngineSettings, 'dataDir' | 'eventStoreUrl'> &
  Lifetime & { readonly link?: CommitLink | undefined };

/**
 * Opens only the event log, with events upcast to this release and in the clear, as for the command line.
 * @throws as `openEngines`
 */
export async function openLog(settings: LogSettings & PersonalSettings, logger?: Logger): Promise<Log> {
  return readable(await openStoredEvents(settings, logger), settings, logger);
}

/** A log as commands and projections read it. `given`: as for `openPersonal`. */
export function readable(stored: EventStore, settings: PersonalSettings, logger?: Logger, given?: KeyStore): Log {
  const log = withPersonalData(stored, settings, logger, given);
  return { ...log, events: upcastEvents(log.events) };
}

/**
 * Checks the format of all files. Called before a folder is made or a file opened, so that nothing is changed.
 * @param logOnly not that of the read store, which is not opened
 * @throws DataFileError for a file of the data folder that this program can't open
 */
export function refuseForeignFiles(
  settings: Pick<EngineSettings, 'dataDir' | 'eventStoreUrl' | 'keysUrl' | 'mongodbUrl'>,
  { logOnly = false }: { readonly logOnly?: boolean } = {},
): void {
  const { dataDir, eventStoreUrl, mongodbUrl } = settings;
  if (eventStoreUrl === undefined) refuseForeignLog(dataDir);
  if (isEmbedded(settings)) refuseForeignKeys(dataDir);
  if (mongodbUrl === undefined && !logOnly) refuseForeignReadStore(dataDir);
}

/** Opens only the event log, with events as stored, for copies and backups. @throws as `openEngines` */
export async function openStoredEvents(
  { dataDir, eventStoreUrl, longLived = false, link, background }: LogSettings,
  logger?: Logger,
): Promise<EventStore> {
  if (eventStoreUrl === undefined) return openEmbeddedEventStore({ dir: dataDir, longLived, link, background });
  const { EventStoreDbError, openEventStoreDb, tlsErrorAt } = await import('../adapters/eventstoredb/eventStore.js');
  try {
    return await openEventStoreDb({ url: eventStoreUrl, logger });
  } catch (error) {
    if (error instanceof EventStoreDbError) throw new EngineError('EVENTSTORE_URL', error.message, error);
    if (error instanceof UnavailableError)
      throw (
        certificateFault(error, 'EVENTSTORE_URL', AUTHORITY_IN_ADDRESS) ??
        certificateFault(await tlsErrorAt(eventStoreUrl), 'EVENTSTORE_URL', AUTHORITY_IN_ADDRESS) ??
        new NoAnswerError(
          'EVENTSTORE_URL',
          'no EventStoreDB answers there: check the address, whether the server runs, and whether it has TLS (one without needs ?tls=false)',
          error,
        )
      );
    throw error;
  }
}

/**
 * Opens the read store, which must be empty or filled from this log, and not be ahead of it. An unavailable server
 * passes this check: processes that write to the store repeat it.
 * @throws DataFileError for a foreign or damaged file; EngineError when the server can't be used, or the store does not
 * fit the log
 */
export async function openReadStore(
  {
    dataDir: dir,
    mongodbUrl: url,
    longLived = false,
    background,
  }: Pick<EngineSettings, 'dataDir' | 'mongodbUrl'> & Lifetime,
  events: Pick<EventStore, 'logId' | 'read'>,
  logger?: Logger,
): Promise<ReadStore> {
  const store =
    url === undefined
      ? await openEmbeddedReadStore({ dir, logger, longLived, background })
      : await (await import('../adapters/mongodb/readStore.js')).openMongoReadStore({ url, logger });
  return refuseForeignTo(events, store, { dir, url });
}

/** The store, unless it does not fit the log. @throws as `openReadStore`, after closing the store */
async function refuseForeignTo(
  events: Pick<EventStore, 'logId' | 'read'>,
  store: ReadStore,
  { dir, url }: { readonly dir: string; readonly url: string | undefined },
): Promise<ReadStore> {
  const foreign = await foreignTo(store, events).catch(async (error: unknown) => {
    if (error instanceof UnavailableError) return undefined;
    await store.close();
    throw error;
  });
  if (foreign === undefined) return store;
  await store.close();
  const { problem, instead } = foreign;
  if (url === undefined)
    throw new EngineError(
      'DATA_DIR',
      `${join(dir, READ_STORE_FILE)} ${problem}: delete it while the service is stopped (it is built anew), or name the folder that belongs to this event store${instead}`,
    );
  throw new EngineError(
    'MONGODB_URL',
    `the database ${problem}: name an empty one (it is filled anew), or the one that belongs to this event store${instead}`,
  );
}

interface Foreign {
  /** Text that follows the store's name. */
  readonly problem: string;
  /** Text that follows the remedies. */
  readonly instead: string;
}

/** Why the store does not fit the log; `undefined`: it fits. @throws UnavailableError */
async function foreignTo(store: ReadStore, events: Pick<EventStore, 'logId' | 'read'>): Promise<Foreign | undefined> {
  const filledFrom = await store.boundTo(events.logId);
  if (filledFrom !== events.logId)
    return {
      problem: `was filled from the log ${filledFrom}, and the event store holds the log ${events.logId}`,
      // A log is made where there is none, so an event store without its data is told by its read models only.
      instead: '; where that has lost its data, its log is a new one: put its data back instead',
    };
  const lost = await lostAnchor(store.records, events);
  // The message omits the stream's name, which would identify a user.
  return lost === undefined
    ? undefined
    : {
        problem: `has seen the event ${lost.id} of the log ${events.logId}, which does not hold it: the log was put back to an earlier time`,
        instead: '',
      };
}

/** Engines, and what else is opened with them. */
interface OpenedEngines extends Engines, Pick<Log, 'subjects' | 'keys' | 'stored'> {
  /** Thread of the embedded engines, for work that no request waits for; absent where all engines are elsewhere. */
  readonly background?: Background | undefined;
}

/**
 * Opens all engines and adds them to `open`, which closes them.
 * @param link the way to the process that commits to the embedded log for several
 * @param given engines in place of those that the settings choose
 * @throws DataFileError for a foreign or damaged file in the data folder; EngineError when a server can't be used
 */
export async function openEngines(
  config: EngineSettings,
  logger: Logger,
  open: Resources,
  { link, given }: { readonly link?: CommitLink | undefined; readonly given?: GivenEngines | undefined } = {},
): Promise<OpenedEngines> {
  if (given !== undefined) return openGiven(given, config, open);
  const { dataDir: dir, natsUrl } = config;
  refuseForeignFiles(config);
  makeDataDir(dir);
  const background =
    config.eventStoreUrl === undefined || config.mongodbUrl === undefined
      ? open.add(
          openBackground({
            onDeath: (err) => logger.warn({ err }, 'the thread that moves WAL pages and writes copies ended'),
            atOnce: true,
          }),
        )
      : undefined;
  const lifetime = { longLived: true, background };
  const log = await openLog({ ...config, ...lifetime, link }, logger);
  const events = open.add(log.events);
  const store = open.add(await openReadStore({ ...config, ...lifetime }, events, logger));
  const onError = (err: unknown): void => logger.warn({ err }, 'the bus met an error');
  const bus = open.add(
    natsUrl === undefined
      ? await openEmbeddedBus({ dir, onError })
      : await (await import('../adapters/nats/bus.js')).openNatsBus({ url: natsUrl, logId: events.logId, onError }),
  );
  return { events, store, bus, subjects: log.subjects, keys: log.keys, stored: log.stored, background };
}

async function openGiven(
  { events: stored, keys, store: readStore, bus }: GivenEngines,
  settings: EngineSettings,
  open: Resources,
): ReturnType<typeof openEngines> {
  const log = readable(stored, settings, undefined, keys);
  const events = open.add(log.events);
  const store = open.add(await refuseForeignTo(events, readStore, { dir: settings.dataDir, url: settings.mongodbUrl }));
  return { events, store, bus: open.add(bus), subjects: log.subjects, keys: log.keys, stored: log.stored };
}

/**
 * The log with events upcast to this release (docs/design.md#versions-of-events). Without changed event types it is the
 * same store, and events of other types are passed through. Copies and backups read the store itself.
 */
export function upcastEvents(events: EventStore, upcasters?: Upcasters): EventStore {
  const changed = changedTypes(upcasters);
  if (changed.size === 0) return events;
  const { readTexts: _, ...others } = events;
  return {
    ...others,
    read: async (stream, options) => upcastEach(await events.read(stream, options), changed),
    readAll: (...requested) => upcastBatches(events.readAll(...requested), changed),
    follow: (...requested) => upcastBatches(events.follow(...requested), changed),
  };
}

async function* upcastBatches(
  batches: AsyncIterable<EventBatch>,
  changed: ReadonlyMap<string, readonly Upcaster[]>,
): AsyncGenerator<EventBatch, void> {
  for await (const batch of batches) yield { ...batch, events: upcastEach(batch.events, changed) };
}

function upcastEach(
  events: readonly RecordedEvent[],
  changed: ReadonlyMap<string, readonly Upcaster[]>,
): RecordedEvent[] {
  return events.map((event) => {
    const steps = changed.get(event.type);
    return steps === undefined ? event : { ...event, data: dataUpToDate(event.data, event.metadata.schema, steps) };
  });
}

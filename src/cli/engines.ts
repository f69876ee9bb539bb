/** Opens the engines that the settings name, alongside a running service or without one. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pino from 'pino';
import { READ_STORE_FILE } from '../adapters/embedded/readStore/file.js';
import { type Config, loadConfig } from '../service/config.js';
import { openReadStore, openStoredEvents, readable, refuseForeignFiles } from '../service/engines.js';
import { findHashKey } from '../service/keys.js';
import { refuseUnlessKeysFit } from '../service/keysCheck.js';
import type { Log } from '../service/personal.js';
import type { EventStore } from '../ports/eventStore.js';
import type { ReadStore } from '../ports/readStore.js';
import { joinSharedClock } from '../runtime/clock/sharedClock.js';
import { type ReadModels, openReadModels } from '../projections/index.js';
import { temporaryFolder } from '../lib/files/folders.js';
import { type Resources, resources } from '../lib/async/resources.js';
import { hasEventLog } from './dataFolder.js';
import { CommandFailure, type Terminal } from './terminal.js';

export interface OpenedLog extends Log {
  readonly config: Config;
  /** Holds further resources of the subcommand, which are closed at its end. */
  readonly open: Resources;
}

export interface OpenedStores extends OpenedLog {
  readonly store: ReadStore;
  readonly models: ReadModels;
}

/**
 * @param asStored events as stored, not upcast: for copies of the log
 * @param logOnly also where the read store can't be opened
 * @throws ConfigError, DataFileError, EngineError, UnavailableError; CommandFailure where there is no log
 */
export async function withLog<T>(
  { env }: Terminal,
  work: (opened: OpenedLog) => Promise<T>,
  { asStored = false, logOnly = false }: { readonly asStored?: boolean; readonly logOnly?: boolean } = {},
): Promise<T> {
  const config = loadConfig(env);
  if (config.eventStoreUrl === undefined && !hasEventLog(config.dataDir)) {
    throw new CommandFailure(
      `there is no event log in ${config.dataDir}: set DATA_DIR to the service's data folder, or EVENTSTORE_URL`,
    );
  }
  refuseForeignFiles(config, { logOnly });
  const open = resources();
  try {
    const stored = await openStoredEvents(config);
    const log = readable(stored, config);
    open.add(log.events);
    await joinClock(config, log.events, { logOnly });
    return await work({ config, open, ...log, ...(asStored ? { events: stored } : {}) });
  } finally {
    await open.close();
  }
}

/**
 * Refuses keys that are not the log's. @throws EngineError naming HASH_KEY, KEYS_URL or MASTER_KEY; UnavailableError
 */
export const refuseOtherKeys = async (opened: OpenedLog): Promise<void> =>
  refuseUnlessKeysFit(opened, () => findHashKey(opened.config));

/**
 * Joins the sandbox's clock, so that events appended in a sandbox have its time (docs/api/sandbox.md#the-clock).
 * @param logOnly takes the time of the log's latest event, where the read store can't be opened
 * @throws UnavailableError, EngineError
 */
export async function joinClock(
  config: Config,
  events: EventStore,
  { logOnly = false }: { readonly logOnly?: boolean } = {},
): Promise<void> {
  if (!config.sandbox) return;
  if (logOnly || hasNoReadStore(config)) return joinSharedClock(undefined, events);
  const store = await openReadStore(config, events, pino({ level: 'silent' }));
  try {
    await joinSharedClock(store.records, events);
  } finally {
    await store.close();
  }
}

const hasNoReadStore = ({ mongodbUrl, dataDir }: Config): boolean =>
  mongodbUrl === undefined && !existsSync(join(dataDir, READ_STORE_FILE));

export async function withStores<T>(
  terminal: Terminal,
  work: (opened: OpenedStores) => Promise<T>,
  folderOf = ({ config }: OpenedLog): string => config.dataDir,
): Promise<T> {
  return withLog(terminal, async (opened) => {
    const settings = { ...opened.config, dataDir: folderOf(opened) };
    const store = opened.open.add(await openReadStore(settings, opened.events, pino({ level: 'silent' })));
    return work({ ...opened, store, models: openReadModels(store, opened.events) });
  });
}

/** As `withStores`, for what only reads: a missing read store is not made, and an empty temporary one is used. */
export async function readStores<T>(terminal: Terminal, work: (opened: OpenedStores) => Promise<T>): Promise<T> {
  return withStores(terminal, work, ({ config, open }) =>
    hasNoReadStore(config)
      ? open.add(temporaryFolder('gift-look-'), async (folder) => rmSync(folder, { recursive: true, force: true }))
      : config.dataDir,
  );
}

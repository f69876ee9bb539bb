import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type { createApi } from '../api/api.js';
import { health } from '../api/health.js';
import { metricsPage } from '../api/metrics.js';
import { application } from '../api/pipeline/server.js';
import { type Resources, resources } from '../lib/async/resources.js';
import type { Config } from './config.js';
import { busByClock } from '../runtime/clock/sharedClock.js';
import { followSharedClock, openSharedClock } from '../runtime/clock/sharedClock.js';
import { recordsByClock } from '../runtime/clock/sharedClock.js';
import { shortcodesUnder } from '../domain/giftIds.js';
import { keyedHash } from '../domain/keyedHash.js';
import { openEngines } from './engines.js';
import type { Engines } from '../ports/engines.js';
import { refuseUnlessKeysFit } from './keysCheck.js';
import type { KeyStore } from '../ports/keyStore.js';
import type { Subjects } from '../runtime/personal/index.js';
import type { Listener } from '../api/listener/listener.js';
import { type Keys, findHashKey, loadKeys } from './keys.js';
import { openTileFolder } from '../ops/evidence/index.js';
import { openErasures } from '../ops/people/index.js';
import { currentTime } from '../lib/clock.js';
import { openMetrics } from '../metrics/metrics.js';
import type { RequestTally } from '../metrics/requests.js';
import { VERSION } from '../lib/version.js';
import type { Log } from './personal.js';
import { startProcessorRole } from './processorRole.js';
import { projectOnThread } from './projector/workerThread.js';
import { projectInProcess } from './projector/inProcess.js';
import type { Projection } from '../runtime/readmodels/index.js';
import { reportServing, watchLeaders } from '../runtime/coordination/index.js';
import { addressOf } from '../lib/urls.js';
import { makesDeadLinks } from './publicUrl.js';
import { PROJECTIONS, openReadModels } from '../projections/index.js';
import { isLed, LED, readinessOf } from './readiness.js';
import { type App, type RunningRoles, type Stage, startResettable } from './resettable.js';
import { repeatErasures } from './repeatErasures.js';
import { followOutwardWork } from '../ops/outward/outwardWork.js';
import { noteSimulatedNews } from '../ops/sandbox/noteSimulatedNews.js';
import { reportFailing } from '../ops/status/failingParts.js';
import { watchAppends } from '../runtime/supervision/appendWatch.js';
import { followers } from '../runtime/supervision/followers.js';
import { tracedEngines } from './tracedEngines.js';
import { treeDir, treeSettings } from './tree.js';
import { openProviders } from '../providers/openProviders.js';
import { startWorkers } from '../providers/workers.js';

export type { App } from './resettable.js';

export interface AppOptions {
  /** The projections to fold; default: this release's. Tests use it to deploy one release over another. */
  readonly projections?: readonly Projection[];
  /** Wraps the engines, for tests; `subjects` open the personal data of their events. */
  readonly through?: (engines: Engines, subjects: Subjects) => Engines;
  /** Called with the error when a sandbox could not start again after its reset. */
  readonly onLost?: ((error: unknown) => void) | undefined;
}

/** Milliseconds between the projector's batches alongside requests, on an engine where a batch costs much. */
const GATHER_MS = 100;

/**
 * Starts the roles. A failure closes everything. `startFailure` explains most errors.
 * @throws DataFileError, EngineError, UnavailableError, errors of the listener (a taken port), of SQLite or of the file
 * system
 */
export async function startApp(config: Config, logger: Logger, options: AppOptions = {}): Promise<App> {
  const { onLost } = options;
  return startResettable({ config, logger, onLost }, (stage) => startRoles(config, logger, options, stage));
}

async function startRoles(config: Config, logger: Logger, options: AppOptions, stage: Stage): Promise<RunningRoles> {
  const { projections = PROJECTIONS, through = (engines) => engines } = options;
  const { listener, opsListener, healthListener } = stage;
  const open = resources();
  try {
    const { engines: found, subjects, keyStore, stored, keys } = await openWithKeys(config, logger, open);
    const reached = through(found, subjects);
    const appends = watchAppends(reached.events);
    const opened = { ...reached, events: appends.events };
    const hash = keyedHash(keys.hashKey);
    const shortcodes = shortcodesUnder(hash);
    const metrics = open.add(
      openMetrics({
        version: VERSION,
        dataDir: config.dataDir,
        connections: () => stage.listener?.connections(),
      }),
    );
    const engines = metrics.measure(tracedEngines(opened));
    const models = openReadModels(engines.store, engines.events);
    const holder = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
    const parts = followers({ logger });
    const own = { holder, health: parts.health };
    if (config.sandbox) open.add(parts.start('sandbox clock', followSharedClock(engines.store.records)));
    const recordsInTime = config.sandbox ? recordsByClock(engines.store.records) : engines.store.records;
    const outward = open.add(await followOutwardWork(engines.events, parts, config.roles.has('processor')));
    const { held } = outward.state();
    if (held !== undefined)
      logger.warn(
        { log: engines.events.logId },
        `nothing is charged, sent or delivered: ${held}; gift resume ends that`,
      );
    open.add(reportFailing(own, engines.store.records, logger));
    const leaders = open.add(watchLeaders(engines.store.records, Object.values(LED)));
    let processor: ReturnType<typeof startProcessorRole> | undefined;
    const readiness = readinessOf({
      webhooks: () => processor?.webhooks()?.status(),
      engines,
      keyStore,
      config,
      projections,
      holder,
      health: parts.health,
      leaders,
      appends,
      outward,
    });

    if (config.roles.has('worker')) {
      const records = recordsInTime;
      const providers = await openProviders(config, {
        records,
        hash,
        logger,
        watch: metrics.providers,
        publicUrl: config.publicUrl,
      });
      const bus = config.sandbox ? busByClock(engines.bus, records) : engines.bus;
      open.add(await startWorkers({ bus, records, logger, ...providers }));
      if (config.sandbox)
        open.add(
          parts.start('simulated news', noteSimulatedNews({ events: engines.events, records, now: currentTime })),
        );
    }
    /** The loading of the thread's modules. The process is ready after it, since its files may be replaced later. */
    let loaded: Promise<void> | undefined;
    if (config.roles.has('projector')) {
      if (projectsOnThread(config, options)) {
        const thread = open.add(
          projectOnThread({
            dataDir: config.dataDir,
            keysUrl: config.keysUrl,
            masterKeys: config.masterKeys,
            tree: treeSettings(config, keys),
            sandbox: config.sandbox,
            holder,
            version: VERSION,
            logger,
            followers: parts,
          }),
        );
        ({ loaded } = thread);
      } else
        open.add(
          await projectInProcess({
            events: engines.events,
            stored,
            store: engines.store,
            projections,
            tree: treeSettings(config, keys),
            dataDir: config.dataDir,
            logger,
            holder,
            followers: parts,
            // Only where requests of this process can hurry the projector, which requests of other processes can't.
            ...(config.roles.has('api') ? { gatherMs: GATHER_MS } : {}),
          }),
        );
    }
    const address = listener === undefined ? undefined : addressOf(config.host, listener.port);
    const publicUrl = config.publicUrl ?? address ?? addressOf(config.host, config.port);
    for (const warning of config.warnings ?? []) logger.warn(warning);
    if (makesDeadLinks(config))
      logger.warn(
        `PUBLIC_URL is not set: links begin with ${publicUrl}, which nobody can open; set it to where callers reach the service`,
      );
    const erasures = openErasures(
      { events: engines.events, keys: keyStore, subjects },
      { store: engines.store, models, hash },
    );
    processor = config.roles.has('processor')
      ? startProcessorRole(
          {
            config,
            erasures,
            engines,
            models,
            subjects,
            outward,
            publicUrl,
            shortcodes,
            version: VERSION,
            logger,
            holder,
            followers: parts,
          },
          open,
        )
      : undefined;
    metrics.watch(
      opened,
      projections,
      () => processor?.processes()?.status(),
      () => processor?.webhooks()?.status(),
      {
        health: parts.health,
        withoutLeader: () =>
          Object.entries(LED).map(([work, lease]) => [
            work,
            isLed(lease, outward) ? leaders.noLeaderSince(lease) : undefined,
          ]),
        outwardHeld: () => outward.state().held !== undefined,
        leaderChanges: () => Object.entries(LED).map(([work, lease]) => [work, leaders.changes(lease)]),
      },
    );
    const stopping = new AbortController();
    let apis: Awaited<ReturnType<typeof createApi>> | undefined;
    if (listener !== undefined) {
      const shown = healthListener === undefined ? { readiness, metrics } : { readiness };
      const serving = reportServing({ records: engines.store.records, holder, logger });
      open.add(serving);
      const onAnswer: RequestTally = (method, route, status, milliseconds) => {
        metrics.requests(method, route, status, milliseconds);
        serving.answered(route);
      };
      // Routes take longest to load, so other roles do not load them.
      const { createApi: create } = await import('../api/api.js');
      apis = await create(
        {
          config,
          engines,
          recordsInTime,
          models,
          tokenKeys: keys.tokenKeys,
          hash,
          shortcodes,
          subjects,
          erasures,
          evidence: {
            stored,
            folder: openTileFolder(treeDir(config), stored.logId),
            keys: keys.sealKeys,
          },
          publicUrl,
          opsUrl: opsListener === undefined ? undefined : addressOf(config.host, opsListener.port),
          version: VERSION,
          logger,
          followers: parts,
          own,
          outward,
          stopping: stopping.signal,
          onAnswer,
          onLimited: metrics.limited,
          onStaffRefused: metrics.staffRefused,
          reset: stage.reset,
          ...shown,
        },
        open,
      );
    }
    const embedded = [
      ...(config.eventStoreUrl === undefined ? [found.events] : []),
      ...(config.mongodbUrl === undefined ? [found.store] : []),
    ];
    // Failures are ignored here, since readiness reports them.
    await Promise.allSettled([loaded, ...embedded.map(async (one) => one.ping())]);
    // From here on requests need the engines, so closing starts with the listeners.
    let leave = async (one: Listener): Promise<void> => one.close();
    if (healthListener !== undefined) {
      open.add(healthListener, async (one) => leave(one));
      healthListener.serve(
        application(logger, [health(apis?.readiness ?? readiness), metricsPage(metrics)]).callback(),
      );
    }
    for (const [one, api] of [
      [opsListener, apis?.ops],
      [listener, apis?.api],
    ] as const) {
      if (one === undefined || api === undefined) continue;
      open.add(one, async (it) => leave(it));
      one.serve(api.callback());
    }
    open.add(stopping, async (waits) => waits.abort());
    return {
      logId: engines.events.logId,
      close: () => open.close(),
      async handOver() {
        leave = async (one) => one.settled();
        await open.close();
      },
    };
  } catch (error) {
    await open.close().catch((late: unknown) => logger.error({ err: late }, 'closing failed'));
    throw error;
  }
}

/** Whether the projector runs on a thread, which opens embedded engines itself and folds this release's projections. */
function projectsOnThread({ roles, eventStoreUrl, mongodbUrl }: Config, { projections, through }: AppOptions): boolean {
  return (
    roles.has('api') &&
    eventStoreUrl === undefined &&
    mongodbUrl === undefined &&
    projections === undefined &&
    through === undefined
  );
}

interface Opened extends Pick<Log, 'stored'> {
  readonly engines: Engines;
  readonly subjects: Subjects;
  readonly keyStore: KeyStore;
  readonly keys: Keys;
}

/** Opens the engines and loads the keys, but never makes a key for a log that was made with another key. */
async function openWithKeys(config: Config, logger: Logger, open: Resources): Promise<Opened> {
  const { subjects, keys: keyStore, stored, ...engines } = await openEngines(config, logger, open);
  // The sandbox's clock is set before anything is appended.
  if (config.sandbox) await openSharedClock(engines.store.records, engines.events);
  const log = { events: engines.events, keys: keyStore, subjects };
  await refuseUnlessKeysFit(log, () => findHashKey(config));
  await keyStore.ping();
  const keys = loadKeys(config);
  const derived = { records: engines.store.records, hash: keyedHash(keys.hashKey) };
  await repeatErasures(openErasures(log), { now: currentTime(), derived }, logger);
  return { engines, subjects, keyStore, stored, keys };
}

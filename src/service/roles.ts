/** The roles of a process: each starts its work on what they share, and the listeners are served last. */
import type { Apis } from '../api/api.js';
import { health, type Readiness } from '../api/health.js';
import type { Listener } from '../api/listener/listener.js';
import { metricsPage } from '../api/metrics.js';
import { application } from '../api/pipeline/server.js';
import { deliveryState } from '../deliveries/index.js';
import { type Resources, resources } from '../lib/async/resources.js';
import { currentTime } from '../lib/clock.js';
import type { Metrics } from '../metrics/metrics.js';
import { openTileFolder } from '../ops/evidence/index.js';
import { noteSimulatedEvents } from '../ops/sandbox/noteSimulatedEvents.js';
import type { Records } from '../ports/readStore.js';
import { openProviders } from '../providers/openProviders.js';
import { startWorkers } from '../providers/workers.js';
import { busByClock, recordsByClock } from '../runtime/clock/sharedClock.js';
import { reportServing } from '../runtime/coordination/index.js';
import { engineSources } from './diagnosis.js';
import { urlsOf } from './listeners.js';
import { startProcessorRole } from './processorRole.js';
import { projectInProcess, type RunningProjector } from './projector/inProcess.js';
import { projectOnThread } from './projector/workerThread.js';
import { isLed, LED, readinessOf } from './readiness.js';
import { openShared, type RolesOptions, type Shared } from './shared.js';
import { treeDir, treeSettings } from './tree.js';

export interface Roles {
  readonly logId: string;
  /**
   * Finishes open requests and releases everything: within 10 s.
   * @param keepListening leaves the listeners open, whose new requests another handler takes already
   */
  close(options?: { readonly keepListening?: boolean }): Promise<void>;
}

/** Milliseconds between the projector's batches alongside requests, on an engine where a batch costs much. */
const GATHER_MS = 100;

/** Starts the roles. A failure closes everything but the listeners. @throws as `startApp` */
export async function startRoles(options: RolesOptions): Promise<Roles> {
  const open = resources();
  try {
    return await start(options, open);
  } catch (error) {
    await open.close().catch((late: unknown) => options.logger.error({ err: late }, 'closing failed'));
    throw error;
  }
}

async function start(options: RolesOptions, open: Resources): Promise<Roles> {
  const { config, logger, listeners, member } = options;
  const { roles } = config;
  const { shared, metrics, unmeasured } = await openShared(options, open);
  const { engines, followers, outward, leaders } = shared;
  if (roles.has('worker')) await startWorkerRole(shared, options, metrics, open);
  const projector = roles.has('projector') ? await startProjectorRole(shared, options, open) : undefined;
  const processor = roles.has('processor')
    ? startProcessorRole({ ...shared, sender: options.sender }, open)
    : undefined;
  metrics.watch(
    unmeasured,
    shared.keyStore,
    shared.projections,
    () => processor?.processes()?.status(),
    () => processor?.webhooks()?.status(),
    {
      health: followers.health,
      withoutLeader: () =>
        Object.entries(LED).map(([work, lease]) => [
          work,
          isLed(lease, outward) ? leaders.noLeaderSince(lease) : undefined,
        ]),
      outwardHeld: () => outward.state().held !== undefined,
      leaderChanges: () => Object.entries(LED).map(([work, lease]) => [work, leaders.changes(lease)]),
    },
  );
  const readiness = readinessOf({
    ...shared,
    health: followers.health,
    webhooks: () => processor?.webhooks()?.status(),
  });
  const stopping = new AbortController();
  const page = member?.metrics(metrics) ?? metrics;
  const readinessOfAll: ApiNeeds['readinessOfAll'] = (own) => member?.readiness(own) ?? own;
  const needs = { stopping: stopping.signal, readiness, readinessOfAll, metrics, page, projector };
  const apis = listeners.api && (await createApis(shared, options, needs, open));
  const embedded = [
    ...(config.eventStoreUrl === undefined ? [unmeasured.events] : []),
    ...(config.mongodbUrl === undefined ? [unmeasured.store] : []),
  ];
  // Modules of threads are loaded now: the program's files may be replaced later. Readiness reports failures.
  await Promise.allSettled([projector?.loaded, ...embedded.map(async (one) => one.ping())]);

  // From here on requests need the engines, so closing starts with the listeners.
  let leave = async (one: Listener): Promise<void> => one.close();
  const serve = async (one: Listener | undefined, api: ReturnType<typeof application> | undefined): Promise<void> => {
    if (one === undefined || api === undefined) return;
    open.add(one, async (it) => leave(it));
    one.serve(api.callback());
    await one.open();
  };
  await serve(
    listeners.health,
    listeners.health &&
      application(logger, [
        health(apis?.readiness ?? readinessOfAll(readiness), { log: engines.events.logId }),
        metricsPage(page),
      ]),
  );
  await serve(listeners.ops, apis?.ops);
  await serve(listeners.api, apis?.api);
  open.add(stopping, async (waits) => waits.abort());
  return {
    logId: engines.events.logId,
    async close({ keepListening = false } = {}) {
      if (keepListening) leave = async (one) => one.settled();
      await open.close();
    },
  };
}

async function startWorkerRole(
  shared: Shared,
  { providers: given }: RolesOptions,
  metrics: Metrics,
  open: Resources,
): Promise<void> {
  const { config, engines, hash, logger, followers } = shared;
  const records = recordsInTime(shared);
  const { publicUrl } = config;
  const providers =
    given ?? (await openProviders(config, { records, hash, logger, watch: metrics.providers, publicUrl }));
  const bus = config.sandbox ? busByClock(engines.bus, records) : engines.bus;
  open.add(await startWorkers({ bus, records, logger, ...providers }));
  if (config.sandbox)
    open.add(
      followers.start('simulated news', noteSimulatedEvents({ events: engines.events, records, now: currentTime })),
    );
}

/** Records that expire by the service's clock, which a sandbox moves ahead. */
const recordsInTime = ({ config, engines: { store } }: Shared): Records =>
  config.sandbox ? recordsByClock(store.records) : store.records;

/** Starts the projector. It gets a thread of its own where that can open the engines and folds the same projections. */
async function startProjectorRole(
  shared: Shared,
  { through, projections, member, engines: given }: RolesOptions,
  open: Resources,
): Promise<RunningProjector> {
  const { config, keys, holder, logger, followers, version, background, commits } = shared;
  const { roles, dataDir, eventStoreUrl, mongodbUrl, keysUrl, masterKeys, sandbox } = config;
  const tree = treeSettings(config, keys);
  const replaced = [eventStoreUrl, mongodbUrl, through, projections, given];
  if (roles.has('api') && replaced.every((one) => one === undefined)) {
    const processNumber = member?.number;
    const thread = { dataDir, keysUrl, masterKeys, tree, sandbox, holder, version, processNumber, logger, followers };
    return open.add(projectOnThread({ ...thread, background, commits }));
  }
  const { events, store } = shared.engines;
  const folded = { dataDir, events, store, stored: shared.stored, projections: shared.projections };
  // Only where requests of this process can hurry the projector, which requests of other processes can't.
  const gather = roles.has('api') ? { gatherMs: GATHER_MS, polledByFronts: true } : {};
  const { openScratch } = given ?? {};
  return open.add(
    await projectInProcess({ ...folded, ...gather, tree, logger, holder, followers, openScratch, background }),
  );
}

interface ApiNeeds {
  readonly stopping: AbortSignal;
  readonly readiness: Readiness;
  readonly readinessOfAll: (own: Readiness) => Readiness;
  readonly metrics: Metrics;
  /** What `/metrics` shows: of all processes behind these ports. */
  readonly page: Pick<Metrics, 'text' | 'contentType'>;
  readonly projector: RunningProjector | undefined;
}

async function createApis(
  shared: Shared,
  { listeners, reset }: RolesOptions,
  { stopping, readiness, readinessOfAll, metrics, page, projector }: ApiNeeds,
  open: Resources,
): Promise<Apis> {
  const { config, engines, keys, stored, holder, logger, followers, projections } = shared;
  const serving = open.add(reportServing({ records: engines.store.records, holder, logger }));
  // Routes take longest to load, so other roles do not load them.
  const { createApi } = await import('../api/api.js');
  return createApi(
    {
      ...shared,
      recordsInTime: recordsInTime(shared),
      tokenKeys: keys.tokenKeys,
      evidence: {
        stored,
        folder: openTileFolder(treeDir(config), stored.logId),
        keys: keys.sealKeys,
      },
      opsUrl: urlsOf(config, listeners).opsUrl,
      own: { holder, health: followers.health },
      stopping,
      onAnswer(method, route, status, milliseconds) {
        metrics.requests(method, route, status, milliseconds);
        serving.answered(route);
      },
      onLimited: metrics.limited,
      onStaffRefused: metrics.staffRefused,
      diagnosed: {
        ...engineSources({
          log: () => ({ events: engines.events, keys: shared.keyStore, subjects: shared.subjects }),
          read: () => ({ store: engines.store, models: shared.models }),
          config,
          projections,
        }),
        metrics: async () => page.text(),
      },
      deliveryState: async (endpointId) =>
        deliveryState({ records: engines.store.records, logId: engines.events.logId }, endpointId),
      pollMaintenance: () => projector?.poll(),
      reset,
      readiness,
      readinessOfAll,
      ...(listeners.health === undefined ? { metrics: page } : {}),
    },
    open,
  );
}

import type Koa from 'koa';
import type { Logger } from 'pino';
import type { Resources } from '../lib/async/resources.js';
import { within } from '../lib/async/within.js';
import { currentTime, systemTime } from '../lib/clock.js';
import { openChargeOutcomes } from '../commands/chargeOutcomes.js';
import { codePool } from '../commands/codePool.js';
import { paymentQuestions } from '../commands/paymentAction.js';
import type { Shortcodes } from '../domain/giftIds.js';
import type { KeyedHash } from '../domain/keyedHash.js';
import type { Engines } from '../ports/engines.js';
import type { Records } from '../ports/readStore.js';
import type { LimitTally } from '../metrics/limits.js';
import type { Metrics } from '../metrics/metrics.js';
import type { StaffTally } from '../metrics/requests.js';
import { UnavailableError } from '../ports/unavailable.js';
import { type CatalogueView, openCatalogueView } from '../projections/catalogue/view.js';
import { openPresence } from '../runtime/coordination/presence.js';
import { openTasks } from '../runtime/readmodels/maintenance/tasks.js';
import type { Subjects } from '../runtime/personal/subjects.js';
import { BEHIND_WAIT_MS } from '../runtime/readmodels/readYourWrites.js';
import { PROJECTIONS, type ReadModels } from '../projections/index.js';
import type { ScratchStore } from '../ops/readmodels/verifyReadModel.js';
import type { OwnParts } from '../ops/status/failingParts.js';
import type { OutwardWork } from '../ops/outward/outwardWork.js';
import { openServiceStatus } from '../ops/status/serviceStatus.js';
import type { Followers } from '../runtime/supervision/followers.js';
import type { SignedLog } from '../ops/evidence/refuseAlteredLog.js';
import type { ErasureDeps } from '../ops/people/erasure/erasureDeps.js';
import { accountRouters } from './account/accountRouters.js';
import { createAuth } from './auth/auth.js';
import { catalogueRouters } from './catalogue/catalogueRouters.js';
import type { GiftRouteDeps } from './gifts/deps.js';
import type { EvidenceDeps } from './evidence/deps.js';
import { eventRoutes } from './events/events.js';
import { evidenceRouters } from './evidence/evidenceRouters.js';
import { redemptionProofRoutes } from './evidence/proofs.js';
import { giftRouters } from './gifts/giftRouters.js';
import { type Readiness, health } from './health.js';
import { keyOwner } from './pipeline/idempotency.js';
import { metricsPage } from './metrics.js';
import { dailyLimits } from './limits/dailyLimits.js';
import { openLimits } from './limits/limits.js';
import { docs } from './openapi/docs.js';
import { type ApiInfo, openApiDocument } from './openapi/openapi.js';
import { opsRouters } from './ops/opsRouters.js';
import type { PipelineDeps } from './pipeline/exchange.js';
import { serve } from './pipeline/pipeline.js';
import { type Follower, positionGate } from './pipeline/positions.js';
import { routerMaker, type SubjectRouter } from './pipeline/router.js';
import { type OnAnswer, application } from './pipeline/server.js';
import { attemptRoutes } from './webhookEndpoints/attempts.js';
import { DELIVERED } from './webhookEndpoints/delivered.js';
import { deliveryRoutes } from './webhookEndpoints/deliveries.js';
import { endpointRoutes } from './webhookEndpoints/endpoints.js';
import { clockRoutes } from './sandbox/clock.js';
import type { ApiSettings } from './settings.js';
import { type SandboxReset, resetRoutes } from './sandbox/reset.js';
import { webhookRouter } from './webhooks/webhookRouter.js';

export interface ApiOptions {
  readonly config: ApiSettings;
  readonly engines: Engines;
  /** Expire by the clock. */
  readonly recordsInTime: Records;
  readonly models: ReadModels;
  readonly tokenKeys: readonly string[];
  readonly hash: KeyedHash;
  readonly shortcodes: Shortcodes;
  readonly subjects: Subjects;
  readonly erasure: ErasureDeps;
  readonly evidence: Pick<EvidenceDeps, 'stored' | 'folder'> & SignedLog;
  /** For the temporary copy of a verification. */
  readonly openScratch: () => Promise<ScratchStore>;
  readonly publicUrl: string;
  /** Where `/ops` is answered apart. */
  readonly opsUrl?: string | undefined;
  readonly version: string;
  readonly logger: Logger;
  readonly followers: Pick<Followers, 'start'>;
  readonly own: OwnParts;
  readonly outward: Pick<OutwardWork, 'state'>;
  /** Requests that wait for events are answered then. */
  readonly stopping: AbortSignal;
  /** Absent: another listener answers `/healthz` and `/readyz`. */
  readonly readiness?: Readiness;
  readonly metrics?: Metrics;
  readonly onAnswer?: OnAnswer;
  readonly onLimited?: LimitTally;
  readonly onStaffRefused?: StaffTally;
  readonly reset: SandboxReset;
}

export interface Apis {
  readonly api: Koa;
  /** What is under `/ops`; `undefined`: `api` has it. */
  readonly ops: Koa | undefined;
  /** The given readiness, and whether the catalogue has been read. */
  readonly readiness: Readiness | undefined;
}

/** @throws UnavailableError */
export async function createApi(options: ApiOptions, open: Resources): Promise<Apis> {
  const { config, engines, models, hash, shortcodes, subjects, publicUrl, logger, followers } = options;
  const catalogue = open.add(openCatalogueView({ model: models.catalogue, events: engines.events, followers }));
  const outcomes = open.add(await openChargeOutcomes(engines.events, followers));
  const auth = open.add(
    createAuth({
      accounts: models.accounts,
      passwordCosts: models.passwordCosts,
      log: engines.events,
      records: options.recordsInTime,
      tokenKeys: options.tokenKeys,
      hash,
      subjects,
      ttl: { access: config.accessTokenTtl, refresh: config.refreshTokenTtl, session: config.sessionMaxAge },
      trustedProxies: config.trustedProxies,
    }),
  );
  const presence = open.add(openPresence({ records: engines.store.records, logger }));
  const deps: GiftRouteDeps = {
    events: engines.events,
    gifts: models.gifts,
    transactions: models.transactions,
    accounts: models.accounts,
    reversals: models.reversals,
    byUser: models.byUser,
    catalogue,
    pool: codePool(engines.events, models.voucherCodes),
    subjects,
    outcomes,
    chargeWaitMs: config.chargeWaitMs,
    questions: paymentQuestions(engines.bus),
    publicUrl,
    shortcodes,
    now: currentTime,
  };
  const status = open.add(
    openServiceStatus({ events: engines.events, store: engines.store, projections: PROJECTIONS, own: options.own }),
  );
  const tasks = open.add(openTasks(engines.store, logger, systemTime));
  const seesCatalogue: Follower = {
    async reached(position, timeoutMs) {
      const until = performance.now() + timeoutMs;
      const isThere = await models.catalogue.reached(position, Math.min(timeoutMs, BEHIND_WAIT_MS));
      return within(
        (isThere ? catalogue.refresh() : catalogue.readOn()).then(() => true),
        until - performance.now(),
        () => false,
      );
    },
  };
  const limits = open.add(
    openLimits({ settings: config, records: options.recordsInTime, hash, followers, onLimited: options.onLimited }),
  );
  const pipeline: PipelineDeps = {
    recognise: auth.recognise,
    authenticate: auth.authenticate,
    addressOf: (ctx) => auth.address(ctx.req.socket.remoteAddress, ctx.get('x-forwarded-for') || undefined),
    records: options.recordsInTime,
    hash,
    shortcodes,
    keys: keyOwner(presence),
    positions: positionGate(engines.events, { ...models, catalogue: seesCatalogue }),
    limits,
    outwardHeld: () => options.outward.state().held !== undefined,
    onStaffRefused: options.onStaffRefused,
    onUnstored: (err, req) => logger.warn({ err, req }, 'an answer could not be kept for its idempotency key'),
  };
  const takeDaily = dailyLimits(options.recordsInTime, config, options.onLimited);
  const webhookDeps = {
    events: engines.events,
    subjects,
    endpoints: models.webhookEndpoints,
    feed: models.feed,
    records: engines.store.records,
    urls: {
      privateAddresses: config.webhookPrivateAddresses === 'allow',
      refusedNetworks: config.webhookRefusedNetworks,
    },
    takeDaily,
    now: deps.now,
  };
  const routerOf = routerMaker((route, allow) => serve(route, pipeline, allow));
  const routers = [
    auth.router(routerOf),
    ...giftRouters(
      routerOf,
      { ...deps, appUrl: config.appUrl, keys: pipeline },
      redemptionProofRoutes({ ...options.evidence, events: engines.events, gifts: models.gifts }),
    ),
    ...accountRouters(routerOf, deps),
    routerOf(
      '/api/v2/events',
      eventRoutes({
        events: engines.events,
        feed: models.feed,
        stopping: options.stopping,
        recognise: async (header) => auth.recognise(header, 'any') ?? auth.authenticate(header, 'any'),
      }),
    ),
    routerOf('/api/v2/webhook-endpoints', [
      ...endpointRoutes(webhookDeps),
      ...deliveryRoutes(webhookDeps),
      ...attemptRoutes(webhookDeps),
    ]),
    ...catalogueRouters(routerOf, { catalogue, publicUrl, version: options.version }),
    await webhookRouter(routerOf, { config, engines, questions: deps.questions, logger, now: deps.now }),
    ...(config.sandbox
      ? [routerOf('/sandbox', [...clockRoutes(engines.store.records), ...resetRoutes(options.reset)])]
      : []),
    ...evidenceRouters(routerOf, {
      ...options.evidence,
      events: engines.events,
      isPublic: config.sealPublic,
      now: deps.now,
    }),
  ];
  const staffRouters = opsRouters(routerOf, {
    gifts: deps,
    hash,
    engines,
    models,
    upkeep: { tasks, status, logger, openScratch: options.openScratch, signedLog: options.evidence },
    payments: config,
    proofs: options.evidence,
    erasure: options.erasure,
    erasureDelayMs: config.erasureDelay * 1_000,
    takeDaily,
  });
  const { opsUrl, version, onAnswer } = options;
  const { corsOrigins, sandbox } = config;
  const all = opsUrl === undefined ? [...routers, ...staffRouters] : routers;
  const describe = (described: readonly SubjectRouter[], info: Omit<ApiInfo, 'version' | 'publicUrl'>): object =>
    openApiDocument(
      described.flatMap(({ routes }) => routes),
      { version, publicUrl, sandbox, ...info },
    );
  const readiness = options.readiness && withCatalogue(options.readiness, catalogue);
  return {
    readiness,
    api: application(
      logger,
      [
        ...(readiness === undefined ? [] : [health(readiness, options.metrics === undefined ? 'status' : 'parts')]),
        ...(options.metrics === undefined ? [] : [metricsPage(options.metrics)]),
        docs(describe(all, { webhooks: DELIVERED }), {
          firstSteps: config.payments === 'simulated' && config.notifications === 'simulated',
        }),
      ],
      { routers: all, onAnswer, corsOrigins },
    ),
    ops:
      opsUrl === undefined
        ? undefined
        : application(logger, [docs(describe(staffRouters, { serverUrl: opsUrl }), { firstSteps: false })], {
            routers: staffRouters,
            onAnswer,
            corsOrigins,
          }),
  };
}

/** Ready only once the catalogue has been read for the first time. */
function withCatalogue(readiness: Readiness, catalogue: CatalogueView): Readiness {
  return async () => {
    const { parts, simulated } = await readiness();
    let ready = true;
    try {
      catalogue.current();
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      ready = false;
    }
    // Once the catalogue is read, its follower reports later failures.
    const detail = ready ? (parts['catalogue']?.detail ?? 'works') : 'has not been read yet';
    return {
      parts: { ...parts, catalogue: { ready: ready && parts['catalogue']?.ready !== false, detail } },
      simulated,
    };
  };
}

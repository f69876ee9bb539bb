/** Every router of the API, with the dependencies of its routes. */
import type { Resources } from '../lib/async/resources.js';
import { diagnose, type DiagnosisSources } from '../ops/diagnosis/index.js';
import { evidenceView, type SignedLog } from '../ops/evidence/index.js';
import type { Erasures } from '../ops/people/index.js';
import type { OwnParts } from '../ops/status/failingParts.js';
import { openServiceStatus } from '../ops/status/serviceStatus.js';
import type { DeliveryState } from '../messages/webhookAttempts.js';
import { PROJECTIONS } from '../projections/index.js';
import { AwaitedOrders } from '../ops/readmodels/orders.js';
import { accountRouters } from './account/accountRouters.js';
import { consoleSessionRoutes } from './console/session.js';
import { catalogueRouters } from './catalogue/catalogueRouters.js';
import { eventRoutes } from './events/events.js';
import type { EvidenceDeps } from './evidence/deps.js';
import { evidenceRouters } from './evidence/evidenceRouters.js';
import { giftProofRoutes, redemptionProofRoutes } from './evidence/proofs.js';
import { giftRouters } from './gifts/giftRouters.js';
import { opsRouters } from './ops/opsRouters.js';
import type { Readiness } from './health.js';
import type { ApiParts, PartsOptions } from './parts.js';
import { serve } from './pipeline/pipeline.js';
import { routerMaker, type RouterMaker, type SubjectRouter } from './pipeline/router.js';
import { requestRoutes } from './requests/requests.js';
import { clockRoutes } from './sandbox/clock.js';
import { sandboxPaymentRoutes } from './sandbox/payments.js';
import { resetRoutes } from './sandbox/reset.js';
import { attemptRoutes } from './webhookEndpoints/attempts.js';
import { deliveryRoutes } from './webhookEndpoints/deliveries.js';
import { endpointRoutes } from './webhookEndpoints/endpoints.js';
import { webhookRouter } from './webhooks/webhookRouter.js';

export interface RouterOptions extends PartsOptions {
  readonly erasures: Erasures;
  readonly evidence: Pick<EvidenceDeps, 'stored' | 'folder'> & SignedLog;
  readonly version: string;
  readonly own: OwnParts;
  /** Aborted when the service stops: requests that wait for events are answered then. */
  readonly stopping: AbortSignal;
  /** Has the projector of this process, if it has one, look for requests of maintenance at once. */
  readonly pollMaintenance: () => void;
  /** Where a diagnosis looks, besides readiness and status. */
  readonly diagnosed: Omit<DiagnosisSources, 'parts' | 'status' | 'onFault'>;
  /** How the deliveries to a webhook endpoint stand. @throws UnavailableError */
  readonly deliveryState: (endpointId: string) => Promise<DeliveryState>;
  /** Requests a reset of the sandbox. @throws HttpError `reset_refused` */
  readonly reset: () => void;
}

interface Routers {
  readonly all: readonly SubjectRouter[];
  /** Routers of the routes under `/ops`, and of the console's logins. */
  readonly staff: readonly SubjectRouter[];
}

/** @param readiness of all processes behind this port @throws UnavailableError */
export async function routersOf(
  options: RouterOptions,
  parts: ApiParts,
  readiness: Readiness,
  open: Resources,
): Promise<Routers> {
  const routerOf = routerMaker((route, allow) => serve(route, parts.pipeline, allow));
  return {
    all: await publicRouters(routerOf, options, parts),
    staff: staffRouters(routerOf, options, parts, readiness, open),
  };
}

async function publicRouters(
  routerOf: RouterMaker,
  options: RouterOptions,
  { auth, gifts, pipeline, takeDaily, failed }: ApiParts,
): Promise<SubjectRouter[]> {
  const { config, engines, models, evidence, publicUrl, version, logger } = options;
  const { events } = engines;
  const { now, questions, catalogue } = gifts;
  const webhookDeps = {
    events,
    subjects: options.subjects,
    endpoints: models.webhookEndpoints,
    feed: models.feed,
    records: engines.store.records,
    urls: {
      privateAddresses: config.webhookPrivateAddresses === 'allow',
      refusedNetworks: config.webhookRefusedNetworks,
    },
    takeDaily,
    now,
  };
  return [
    auth.router(routerOf),
    ...giftRouters(
      routerOf,
      { ...gifts, feed: models.feed, appUrl: config.appUrl, keys: pipeline },
      redemptionProofRoutes({ ...evidence, events, gifts: models.gifts }),
    ),
    ...accountRouters(routerOf, gifts),
    routerOf(
      '/api/v2/events',
      eventRoutes({
        events,
        feed: models.feed,
        stopping: options.stopping,
        publicUrl,
        recognise: async (header) => auth.recognise(header, 'any') ?? auth.authenticate(header, 'any'),
      }),
    ),
    routerOf('/api/v2/requests', requestRoutes(failed)),
    routerOf('/api/v2/webhook-endpoints', [
      ...endpointRoutes(webhookDeps),
      ...deliveryRoutes(webhookDeps),
      ...attemptRoutes(webhookDeps),
    ]),
    ...catalogueRouters(routerOf, { catalogue, publicUrl, version }),
    await webhookRouter(routerOf, { config, engines, questions, logger, now }),
    ...(config.sandbox
      ? [
          routerOf('/sandbox', [
            ...clockRoutes(engines.store.records),
            ...resetRoutes(options.reset, events.logId),
            ...sandboxPaymentRoutes({ ...gifts, records: options.recordsInTime }),
          ]),
        ]
      : []),
    ...evidenceRouters(routerOf, { ...evidence, events, isPublic: config.sealPublic, now }),
  ];
}

function staffRouters(
  routerOf: RouterMaker,
  options: RouterOptions,
  { auth, gifts, takeDaily }: ApiParts,
  readiness: Readiness,
  open: Resources,
): SubjectRouter[] {
  const { config, engines, models, hash, subjects, evidence, logger, own } = options;
  const { events, store } = engines;
  const status = open.add(openServiceStatus({ events, store, projections: PROJECTIONS, own }));
  const staff = opsRouters(
    routerOf,
    {
      gifts,
      hash,
      engines,
      models,
      upkeep: {
        status,
        orders: open.add(new AwaitedOrders(store, logger, options.pollMaintenance)),
      },
      payments: config,
      erasures: options.erasures,
      erasureDelayMs: config.erasureDelay * 1_000,
      takeDaily,
      deliveryState: options.deliveryState,
      evidence: async () =>
        evidenceView(
          events,
          evidence.folder,
          config.sealWitnesses.map(({ key }) => key),
        ),
      diagnose: async () =>
        diagnose({
          ...options.diagnosed,
          status: async () => status.look(),
          parts: async () => (await readiness()).parts,
          onFault: (err) => logger.error({ err }, 'a check of the diagnosis failed'),
        }),
    },
    giftProofRoutes(evidence, { events, models, hash, subjects }),
  );
  const session = { staff: auth.staff, secure: options.publicUrl.startsWith('https:') };
  return [...staff, routerOf('/console', consoleSessionRoutes(session))];
}

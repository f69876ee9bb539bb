/** The HTTP API: its routers, its description, health and metrics. */
import type Koa from 'koa';
import type { Resources } from '../lib/async/resources.js';
import type { Metrics } from '../metrics/metrics.js';
import { UnavailableError } from '../ports/unavailable.js';
import { ALL_ENTRY_TYPES } from '../projections/feed/entryTypes.js';
import type { CatalogueView } from '../projections/catalogue/view.js';
import { CLOUD_EVENTS, cloudEventSchema } from './events/cloudEvents.js';
import { eventSchema } from './events/schemas.js';
import { consolePage } from './console/page.js';
import { type Readiness, health } from './health.js';
import { metricsPage } from './metrics.js';
import { docs } from './openapi/docs.js';
import { asyncApiDocument } from './openapi/asyncapi.js';
import { type ApiInfo, openApiDocument } from './openapi/openapi.js';
import { openParts } from './parts.js';
import type { SubjectRouter } from './pipeline/router.js';
import { type OnAnswer, application } from './pipeline/server.js';
import { type RouterOptions, routersOf } from './routers.js';
import { DELIVERED } from './webhookEndpoints/delivered.js';

interface ApiOptions extends RouterOptions {
  /** URL of `/ops` where another listener serves it. */
  readonly opsUrl?: string | undefined;
  readonly readiness: Readiness;
  /** Readiness of all processes that serve behind this port. @param own of this one */
  readonly readinessOfAll: (own: Readiness) => Readiness;
  /** Absent: another listener shows metrics, and the parts of readiness. */
  readonly metrics?: Pick<Metrics, 'text' | 'contentType'>;
  readonly onAnswer?: OnAnswer;
}

export interface Apis {
  readonly api: Koa;
  /** Application that serves `/ops`; `undefined`: `api` serves it. */
  readonly ops: Koa | undefined;
  /** The given readiness, which also requires that the catalogue has been read, of all processes. */
  readonly readiness: Readiness;
}

const FEED = {
  types: ALL_ENTRY_TYPES,
  event: eventSchema,
  also: { contentType: CLOUD_EVENTS, event: cloudEventSchema },
};

/** @throws UnavailableError */
export async function createApi(options: ApiOptions, open: Resources): Promise<Apis> {
  const { config, logger, publicUrl, opsUrl, version, onAnswer } = options;
  const parts = await openParts(options, open);
  const readiness = options.readinessOfAll(withCatalogue(options.readiness, parts.gifts.catalogue));
  const { all, staff } = await routersOf(options, parts, readiness, open);
  const { corsOrigins, sandbox } = config;
  const routers = opsUrl === undefined ? [...all, ...staff] : all;
  const describe = (described: readonly SubjectRouter[], info: Omit<ApiInfo, 'version' | 'publicUrl'>) => (): object =>
    openApiDocument(
      described.flatMap(({ routes }) => routes),
      { version, publicUrl, sandbox, ...info },
    );
  return {
    readiness,
    api: application(
      logger,
      [
        health(readiness, {
          shown: options.metrics === undefined ? 'status' : 'parts',
          log: options.engines.events.logId,
        }),
        ...(options.metrics === undefined ? [] : [metricsPage(options.metrics)]),
        docs(describe(routers, { webhooks: DELIVERED }), {
          firstSteps: config.payments === 'simulated' && config.notifications === 'simulated',
          asyncApi: () => asyncApiDocument({ version, publicUrl, feed: FEED, webhooks: DELIVERED }),
        }),
        ...(opsUrl === undefined ? [consolePage()] : []),
      ],
      { routers, onAnswer, onFailure: parts.failed.note, corsOrigins },
    ),
    ops:
      opsUrl === undefined
        ? undefined
        : application(
            logger,
            [docs(describe(staff, { serverUrl: WHERE_SERVED }), { firstSteps: false }), consolePage()],
            {
              routers: staff,
              onAnswer,
              corsOrigins,
            },
          ),
  };
}

/** OPS_PORT is reached by an address that no setting names; such a URL is relative to that of the description. */
const WHERE_SERVED = '/';

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

/** The HTTP API put together: authentication, commands, read models, routes. */
import type Koa from 'koa';
import type { Logger } from 'pino';
import type { Resources } from '../lib/async/resources.js';
import { within } from '../lib/async/within.js';
import { currentTime } from '../lib/clock.js';
import { openChargeOutcomes } from '../commands/chargeOutcomes.js';
import { codePool } from '../commands/codePool.js';
import { paymentQuestions } from '../commands/paymentAction.js';
import type { Config } from '../service/config.js';
import type { KeyedHash } from '../domain/keyedHash.js';
import type { Engines } from '../ports/engines.js';
import type { Metrics } from '../metrics/metrics.js';
import { UnavailableError } from '../ports/unavailable.js';
import { type CatalogueView, openCatalogueView } from '../projections/catalogue/view.js';
import { openPresence } from '../runtime/coordination/presence.js';
import { openTasks } from '../runtime/readmodels/maintenance/tasks.js';
import { PROJECTIONS, readByAll, type ReadModels } from '../projections/index.js';
import type { OwnParts } from '../ops/status/failingParts.js';
import { openServiceStatus } from '../ops/status/serviceStatus.js';
import type { Followers } from '../runtime/supervision/followers.js';
import { twilioCallbacks } from '../providers/notifications/callbacks.js';
import { openLedger } from '../providers/notifications/ledger.js';
import { createAuth } from './auth/auth.js';
import { brandRoutes } from './catalogue/brands.js';
import { categoryRoutes } from './catalogue/categories.js';
import { productRoutes } from './catalogue/products.js';
import { tileRoutes } from './catalogue/tiles.js';
import type { GiftRouteDeps } from './gifts/deps.js';
import { giftRoutes } from './gifts/gifts.js';
import { launchPageRoutes } from './gifts/launchPage.js';
import { redemptionRoutes } from './gifts/redemptions.js';
import { transactionRoutes } from './gifts/transactions.js';
import { voucherRoutes } from './gifts/vouchers.js';
import { type Readiness, health } from './health.js';
import { keyOwner } from './pipeline/idempotency.js';
import { metricsPage } from './metrics.js';
import { docs } from './openapi/docs.js';
import { openApiDocument } from './openapi/openapi.js';
import { opsRoutes } from './ops/routes.js';
import { type Follower, positionGate } from './pipeline/positions.js';
import type { Route } from './pipeline/route.js';
import { type OnAnswer, httpApplication } from './pipeline/server.js';
import { webhookRoutes } from './webhooks/stripe.js';
import { twilioWebhookRoutes } from './webhooks/twilio.js';

/** What the API is made of. */
export interface ApiOptions {
  readonly config: Config;
  readonly engines: Engines;
  readonly models: ReadModels;
  readonly tokenKeys: readonly string[];
  readonly hash: KeyedHash;
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly version: string;
  readonly logger: Logger;
  /** The followers of this process. */
  readonly followers: Pick<Followers, 'start'>;
  /** How they fare, for the status. */
  readonly own: OwnParts;
  /** Answers `/healthz` and `/readyz` here; absent: they are answered elsewhere. */
  readonly readiness?: Readiness;
  /** Shown at `/metrics` here; absent: they are shown elsewhere. */
  readonly metrics?: Metrics;
  readonly onAnswer?: OnAnswer;
}

/** Builds the API; `open` closes what it opens. @throws UnavailableError */
export async function createApi(options: ApiOptions, open: Resources): Promise<Koa> {
  const { config, engines, models, hash, publicUrl, logger, followers } = options;
  const catalogue = open.add(openCatalogueView({ model: models.catalogue, followers }), (view) => view.close());
  const outcomes = open.add(await openChargeOutcomes(engines.events, followers), (one) => one.close());
  const auth = open.add(
    createAuth({
      accounts: models.accounts,
      log: engines.events,
      records: engines.store.records,
      tokenKeys: options.tokenKeys,
      hash,
      ttl: { access: config.accessTokenTtl, refresh: config.refreshTokenTtl, session: config.sessionMaxAge },
      trustedProxies: config.trustedProxies,
    }),
    (one) => one.close(),
  );
  const presence = open.add(openPresence({ records: engines.store.records, logger }), (one) => one.close());
  const deps: GiftRouteDeps = {
    events: engines.events,
    gifts: models.gifts,
    transactions: models.transactions,
    accounts: models.accounts,
    catalogue,
    pool: codePool(engines.events, models.voucherCodes),
    hash,
    outcomes,
    chargeWaitMs: config.chargeWaitMs,
    questions: paymentQuestions(engines.bus),
    publicUrl,
    now: currentTime,
  };
  const status = open.add(
    openServiceStatus({ events: engines.events, store: engines.store, projections: PROJECTIONS, own: options.own }),
    (one) => one.close(),
  );
  const tasks = open.add(openTasks(engines.store, logger, deps.now), (one) => one.close());
  const routes = [
    ...auth.routes,
    ...giftRoutes(deps),
    ...redemptionRoutes(deps),
    ...voucherRoutes(deps),
    ...transactionRoutes(deps),
    ...productRoutes({ catalogue }),
    ...brandRoutes({ catalogue }),
    ...categoryRoutes({ catalogue, publicUrl }),
    ...tileRoutes({ catalogue }),
    ...(await stripeRoutes(options, deps)),
    ...(await twilioRoutes(options, deps)),
    ...opsRoutes({
      gifts: deps,
      engines,
      models,
      upkeep: { tasks, status, logger, dataDir: config.dataDir },
      payments: config,
    }),
    ...launchPageRoutes({ ...deps, appUrl: config.appUrl }),
  ];
  const seesCatalogue: Follower = {
    async reached(position, timeoutMs) {
      const until = performance.now() + timeoutMs;
      if (!(await models.catalogue.reached(position, timeoutMs))) return false;
      return within(
        catalogue.refresh().then(() => true),
        until - performance.now(),
        () => false,
      );
    },
  };
  return httpApplication(routes, {
    recognise: auth.recognise,
    authenticate: auth.authenticate,
    addressOf: (ctx) => auth.address(ctx.req.socket.remoteAddress, ctx.get('x-forwarded-for') || undefined),
    records: engines.store.records,
    hash,
    keys: keyOwner(presence),
    positions: positionGate(engines.events, {
      always: Object.values({ ...readByAll(models), catalogue: seesCatalogue }),
      where: models,
    }),
    onUnkept: (err, req) => logger.warn({ err, req }, 'an answer could not be kept for its idempotency key'),
    logger,
    onAnswer: options.onAnswer,
    beside: [
      ...(options.readiness === undefined ? [] : [health(withCatalogue(options.readiness, catalogue))]),
      ...(options.metrics === undefined ? [] : [metricsPage(options.metrics)]),
      docs(openApiDocument(routes, { version: options.version, publicUrl })),
    ],
  });
}

/** Stripe's webhooks, where their secret is set. The library is large: it is loaded only then. */
async function stripeRoutes(
  { config, logger }: ApiOptions,
  { events, questions, now }: GiftRouteDeps,
): Promise<Route[]> {
  const secret = config.stripeWebhookSecret;
  if (secret === undefined) return [];
  const { stripeEvents } = await import('../providers/payments/stripeEvents.js');
  return webhookRoutes({
    events,
    questions,
    now,
    logger,
    read: stripeEvents(secret, config.payments),
    simulated: config.payments === 'simulated',
  });
}

/** Twilio's callbacks, where it sends the messages and can reach us. */
async function twilioRoutes({ config, engines, logger }: ApiOptions, { events, now }: GiftRouteDeps): Promise<Route[]> {
  const { twilio, publicUrl } = config;
  if (twilio === undefined || publicUrl === undefined) return [];
  const read = await twilioCallbacks(twilio, publicUrl);
  return twilioWebhookRoutes({
    events,
    now,
    logger,
    read,
    ledger: await openLedger(engines.store.records, Date.now, logger),
  });
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
    // Of one that can't be read any more its follower says so.
    const detail = ready ? (parts['catalogue']?.detail ?? 'works') : 'has not been read yet';
    return {
      parts: { ...parts, catalogue: { ready: ready && parts['catalogue']?.ready !== false, detail } },
      simulated,
    };
  };
}

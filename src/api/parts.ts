/** Parts that the API's routes share, made once for a process. */
import type { Logger } from 'pino';
import { codePool } from '../commands/codePool.js';
import { openChargeOutcomes } from '../commands/chargeOutcomes.js';
import { paymentQuestions } from '../commands/paymentAction.js';
import type { Shortcodes } from '../domain/giftIds.js';
import type { KeyedHash } from '../domain/keyedHash.js';
import type { Resources } from '../lib/async/resources.js';
import { within } from '../lib/async/within.js';
import { currentTime } from '../lib/clock.js';
import { ticks } from '../lib/world.js';
import type { LimitTally } from '../metrics/limits.js';
import type { StaffTally } from '../metrics/requests.js';
import type { OutwardWork } from '../ops/outward/outwardWork.js';
import type { Engines } from '../ports/engines.js';
import type { Records } from '../ports/readStore.js';
import { openCatalogueView, type PolledCatalogueView } from '../projections/catalogue/view.js';
import type { ReadModels } from '../projections/index.js';
import type { Subjects } from '../runtime/personal/index.js';
import { openPresence } from '../runtime/coordination/index.js';
import { BEHIND_WAIT_MS } from '../runtime/readmodels/index.js';
import type { Followers } from '../runtime/supervision/followers.js';
import { type Auth, createAuth } from './auth/auth.js';
import type { GiftRouteDeps } from './gifts/deps.js';
import { dailyLimits, type TakeDaily } from './limits/dailyLimits.js';
import { openLimits } from './limits/limits.js';
import type { PipelineDeps } from './pipeline/exchange.js';
import { keyOwner } from './pipeline/idempotency.js';
import { type Follower, positionGate } from './pipeline/positions.js';
import { HttpError } from './pipeline/errors.js';
import { type FailedRequests, openFailedRequests } from './requests/failedRequests.js';
import type { ApiSettings } from './settings.js';

export interface PartsOptions {
  readonly config: ApiSettings;
  readonly engines: Engines;
  /** Records that expire by the service's clock, which a sandbox moves ahead. */
  readonly recordsInTime: Records;
  readonly models: ReadModels;
  readonly tokenKeys: readonly string[];
  readonly hash: KeyedHash;
  readonly shortcodes: Shortcodes;
  readonly subjects: Subjects;
  readonly publicUrl: string;
  readonly logger: Logger;
  readonly followers: Pick<Followers, 'start'>;
  readonly outward: Pick<OutwardWork, 'state'>;
  readonly onLimited?: LimitTally;
  readonly onStaffRefused?: StaffTally;
}

export interface ApiParts {
  readonly auth: Auth;
  readonly gifts: GiftRouteDeps;
  readonly pipeline: PipelineDeps;
  readonly takeDaily: TakeDaily;
  readonly failed: FailedRequests;
}

/** @throws UnavailableError */
export async function openParts(options: PartsOptions, open: Resources): Promise<ApiParts> {
  const { config, engines, models, recordsInTime, hash, subjects, followers } = options;
  const catalogue = open.add(openCatalogueView({ model: models.catalogue, events: engines.events, followers }));
  const outcomes = open.add(await openChargeOutcomes(engines.events, followers));
  const auth = open.add(
    createAuth({
      accounts: models.accounts,
      passwordCosts: models.passwordCosts,
      log: engines.events,
      records: recordsInTime,
      tokenKeys: options.tokenKeys,
      hash,
      subjects,
      ttl: { access: config.accessTokenTtl, refresh: config.refreshTokenTtl, session: config.sessionMaxAge },
      trustedProxies: config.trustedProxies,
    }),
  );
  return {
    auth,
    gifts: {
      events: engines.events,
      gifts: models.gifts,
      transactions: models.transactions,
      accounts: models.accounts,
      reversals: models.reversals,
      byUser: models.byUser,
      catalogue,
      pool: codePool(engines.events, models.voucherCodes, () => {
        if (isHeld(options)) throw new HttpError('outward_work_held');
      }),
      subjects,
      outcomes,
      chargeWaitMs: config.chargeWaitMs,
      questions: paymentQuestions(engines.bus),
      publicUrl: options.publicUrl,
      shortcodes: options.shortcodes,
      now: currentTime,
    },
    pipeline: openPipeline(options, open, auth, catalogue),
    takeDaily: dailyLimits(recordsInTime, config, options.onLimited),
    failed: open.add(openFailedRequests(recordsInTime, options.logger, currentTime)),
  };
}

const isHeld = ({ outward }: Pick<PartsOptions, 'outward'>): boolean => outward.state().held !== undefined;

function openPipeline(
  options: PartsOptions,
  open: Resources,
  auth: Auth,
  catalogue: PolledCatalogueView,
): PipelineDeps {
  const { config, engines, models, recordsInTime, hash, shortcodes, logger, followers, onLimited } = options;
  const presence = open.add(openPresence({ records: engines.store.records, logger }));
  const limits = open.add(openLimits({ settings: config, records: recordsInTime, hash, followers, onLimited }));
  return {
    recognise: auth.recognise,
    authenticate: auth.authenticate,
    addressOf: (ctx) => auth.address(ctx.req.socket.remoteAddress, ctx.get('x-forwarded-for') || undefined),
    records: recordsInTime,
    hash,
    shortcodes,
    keys: keyOwner(presence),
    positions: positionGate(engines.events, { ...models, catalogue: catalogueFollower(models, catalogue) }),
    limits,
    outwardHeld: () => isHeld(options),
    onStaffRefused: options.onStaffRefused,
    onUnstored: (err, req) => logger.warn({ err, req }, 'an answer could not be kept for its idempotency key'),
  };
}

/** Follower that reaches a position once the catalogue in memory shows it. */
function catalogueFollower(models: ReadModels, catalogue: PolledCatalogueView): Follower {
  return {
    async reached(position, timeoutMs) {
      const until = ticks() + timeoutMs;
      const isThere = await models.catalogue.reached(position, Math.min(timeoutMs, BEHIND_WAIT_MS));
      return within(
        (isThere ? catalogue.refresh() : catalogue.readOn()).then(() => true),
        until - ticks(),
        () => false,
      );
    },
  };
}

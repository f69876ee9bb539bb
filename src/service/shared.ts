/** What the roles of a process share: engines with their keys, read models, health and metrics. */
import { hostname } from 'node:os';
import type { Background } from '../adapters/embedded/background.js';
import { type SharedCommits, shareCommits } from '../adapters/embedded/eventStore/commitLink.js';
import type { Logger } from 'pino';
import { type Shortcodes, shortcodesUnder } from '../domain/giftIds.js';
import { type KeyedHash, keyedHash } from '../domain/keyedHash.js';
import type { Resources } from '../lib/async/resources.js';
import { currentTime } from '../lib/clock.js';
import { addressOf } from '../lib/urls.js';
import { VERSION } from '../lib/version.js';
import { randomUUID } from '../lib/world.js';
import type { Sender } from '../deliveries/index.js';
import { type Metrics, openMetrics } from '../metrics/metrics.js';
import { followOutwardWork, type OutwardWork } from '../ops/outward/outwardWork.js';
import { type Erasures, openErasures } from '../ops/people/index.js';
import { reportFailing } from '../ops/status/failingParts.js';
import type { Engines } from '../ports/engines.js';
import type { EventStore } from '../ports/eventStore.js';
import type { KeyStore } from '../ports/keyStore.js';
import type { Providers } from '../providers/openProviders.js';
import { openReadModels, PROJECTIONS, type ReadModels } from '../projections/index.js';
import { followSharedClock, openSharedClock } from '../runtime/clock/sharedClock.js';
import { type LeaderWatch, watchLeaders } from '../runtime/coordination/index.js';
import type { Subjects } from '../runtime/personal/index.js';
import type { Projection } from '../runtime/readmodels/index.js';
import { type AppendWatch, watchAppends } from '../runtime/supervision/appendWatch.js';
import { type Followers, followers as openFollowers } from '../runtime/supervision/followers.js';
import type { Config } from './config.js';
import { makesDeadLinks } from './deadLinks.js';
import { type GivenEngines, openEngines } from './engines.js';
import { findHashKey, type Keys, loadKeys } from './keys.js';
import { refuseUnlessKeysFit } from './keysCheck.js';
import type { Listeners } from './listeners.js';
import type { Member } from './processes/member.js';
import { LED, type Led } from './readiness.js';
import { tracedEngines } from './tracedEngines.js';
import { UnavailableError } from '../ports/unavailable.js';

/** What tests change of a service. */
export interface Overrides {
  /** The projections to fold; default: this release's. Tests use it to deploy one release over another. */
  readonly projections?: readonly Projection[];
  /** Wraps the engines; `subjects` open the personal data of their events. */
  readonly through?: (engines: Engines, subjects: Subjects) => Engines;
  /** Engines in place of those that the settings choose. */
  readonly engines?: GivenEngines;
  /** Providers in place of those that the settings choose. */
  readonly providers?: Providers;
  /** Sends webhooks in place of the network. */
  readonly sender?: Sender;
}

export interface RolesOptions extends Overrides {
  readonly config: Config;
  readonly logger: Logger;
  readonly listeners: Listeners;
  /** This process among others behind its ports; `undefined`: it serves alone. */
  readonly member?: Member | undefined;
  /** Requests a reset of the sandbox. @throws HttpError `reset_refused` */
  readonly reset: () => void;
}

/** The engines as they were opened, with the installation's keys and what reads them. */
interface Opened {
  readonly unmeasured: Engines;
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: EventStore;
  readonly subjects: Subjects;
  readonly keyStore: KeyStore;
  readonly keys: Keys;
  readonly hash: KeyedHash;
  readonly background?: Background | undefined;
  /** Commits to an embedded log for threads of this process. */
  readonly commits: Pick<SharedCommits, 'commit'>;
}

export interface Shared extends Omit<Opened, 'unmeasured'> {
  readonly config: Config;
  readonly logger: Logger;
  readonly version: string;
  /** Name of the process in leases and records. */
  readonly holder: string;
  /** The address with which links start, without a trailing slash. */
  readonly publicUrl: string;
  readonly engines: Engines;
  readonly projections: readonly Projection[];
  readonly models: ReadModels;
  readonly shortcodes: Shortcodes;
  readonly followers: Followers;
  readonly erasures: Erasures;
  readonly outward: OutwardWork;
  readonly appends: AppendWatch;
  readonly leaders: LeaderWatch<Led>;
}

/** Opens the shared parts and adds them to `open`. @throws as `startApp` */
export async function openShared(
  options: RolesOptions,
  open: Resources,
): Promise<{ readonly shared: Shared; readonly metrics: Metrics; readonly unmeasured: Engines }> {
  const { config, logger, listeners, member, projections = PROJECTIONS } = options;
  const { unmeasured: reached, ...opened } = await openWithKeys(options, open);
  const { subjects, keyStore, hash } = opened;
  const appends = watchAppends(reached.events);
  const unmeasured = { ...reached, events: appends.events };
  const metrics = open.add(
    openMetrics({
      version: VERSION,
      dataDir: config.dataDir,
      connections: () => listeners.api?.connections(),
      shedRequests: () => (listeners.api?.shedRequests() ?? 0) + (listeners.ops?.shedRequests() ?? 0),
      processNumber: member?.number,
    }),
  );
  const engines = metrics.measure(tracedEngines(unmeasured));
  const { events, store } = engines;
  const models = openReadModels(store, events);
  const holder = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
  const followers = openFollowers({ logger });
  if (config.sandbox) open.add(followers.start('sandbox clock', followSharedClock(store.records)));
  const outward = open.add(await followOutwardWork(events, followers, config.roles.has('processor')));
  const { held } = outward.state();
  if (held !== undefined)
    logger.warn({ log: events.logId }, `nothing is charged, sent or delivered: ${held}; gift resume ends that`);
  open.add(reportFailing({ holder, health: followers.health }, store.records, logger));
  const leaders = open.add(watchLeaders(store.records, Object.values(LED)));
  const publicUrl = config.publicUrl ?? addressOf(config.host, listeners.api?.port ?? config.port);
  for (const warning of config.warnings ?? []) logger.warn(warning);
  if (makesDeadLinks(config))
    logger.warn(
      `PUBLIC_URL is not set: links begin with ${publicUrl}, which nobody can open; set it to where callers reach the service`,
    );
  const shared: Shared = {
    ...opened,
    config,
    logger,
    version: VERSION,
    holder,
    publicUrl,
    engines,
    projections,
    models,
    shortcodes: shortcodesUnder(hash),
    followers,
    erasures: openErasures({ events, keys: keyStore, subjects }, { store, models, hash }),
    outward,
    appends,
    leaders,
  };
  return { shared, metrics, unmeasured };
}

async function openWithKeys(
  { config, logger, member, through, engines: given }: RolesOptions,
  open: Resources,
): Promise<Opened> {
  const commits = shareCommits(member?.commits);
  const replaced = { link: commits, given };
  const { subjects, keys: keyStore, stored, background, ...found } = await openEngines(config, logger, open, replaced);
  const { events, store } = found;
  // The sandbox's clock is set before anything is appended.
  if (config.sandbox) await openSharedClock(store.records, events);
  // No key is made for a log that was made with another key.
  const log = { events, keys: keyStore, subjects };
  await refuseUnlessKeysFit(log, () => findHashKey(config));
  await keyStore.ping();
  const keys = loadKeys(config);
  const hash = keyedHash(keys.hashKey);
  const derived = { records: store.records, hash };
  await repeatErasures(openErasures(log), { now: currentTime(), derived }, logger);
  return {
    unmeasured: through === undefined ? found : through(found, subjects),
    stored,
    subjects,
    keyStore,
    keys,
    hash,
    background,
    commits,
  };
}

/**
 * Repeats erasures that a restore of the log or the key store has undone. An erasure that fails for its own reason is
 * left to the processes with the role `processor`, which report it.
 * @throws UnavailableError where an engine did not answer: not all erasures were repeated
 */
async function repeatErasures(
  erasures: Pick<Erasures, 'repeat'>,
  options: Parameters<Erasures['repeat']>[0],
  logger: Logger,
): Promise<void> {
  const { again, open } = await erasures.repeat(options);
  if (again > 0)
    logger.warn(
      { repeated: again },
      'the log or the key store was put back to before these erasures: they were repeated',
    );
  for (const { erasure, error } of open)
    logger.error({ err: error, erasure: erasure.id }, 'an erasure that a restore had undone is not repeated');
  const unavailable = open.find(({ error }) => error instanceof UnavailableError);
  if (unavailable !== undefined) throw unavailable.error;
}

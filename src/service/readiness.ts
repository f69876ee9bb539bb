/**
 * Readiness: the engines answer, and the projections have caught up, whichever release and process maintains them. In a
 * rolling deployment new processes are ready before their versions of projections are built, so that old processes,
 * which can't build them, can end.
 */
import type { PartHealth, Readiness } from '../api/health.js';
import { within } from '../lib/async/within.js';
import { systemTime } from '../lib/clock.js';
import { systemMs, ticks } from '../lib/world.js';
import type { Config } from './config.js';
import { WORKERS_ALIVE } from '../messages/workerRequest.js';
import { type Bus, DeadlineError, NoRespondersError } from '../ports/bus.js';
import type { Engines } from '../ports/engines.js';
import type { KeyStore } from '../ports/keyStore.js';
import type { ReadStore, Records } from '../ports/readStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { type DeliveryStatus, WEBHOOK_LEASE, WEBHOOK_PART } from '../deliveries/index.js';
import { PROCESS_LEASE } from '../processors/runner/index.js';
import { buildOf, checkpointName, orphans, type Projection } from '../runtime/readmodels/index.js';
import type { LeaderWatch } from '../runtime/coordination/index.js';
import { buildPosition } from '../ops/status/buildStatus.js';
import type { OutwardWork } from '../ops/outward/outwardWork.js';
import { isReadBySome } from '../projections/index.js';
import type { AppendWatch } from '../runtime/supervision/appendWatch.js';
import { describeFailing, type FollowerHealth } from '../runtime/supervision/followers.js';

/** The longest wait for a projection to reach the log's end. */
const CATCH_UP_MS = 500;
const DEADLINE_MS = 2_000;
/** Least milliseconds between two test writes to the read store; below, milliseconds until their record expires. */
const WRITE_MS = 1_000;
const WRITE_RETAINED_MS = 60_000;

/** Milliseconds for which a worker may be silent. */
const WORKER_ANSWERS_MS = 1_000;
/** Milliseconds without an answer after which workers count as missing, as leaders do; a restart takes less. */
const NO_WORKER_MS = 10_000;

const OUTWARD_PART = 'outward work';

/** Work that one process leads at a time, with the name of its lease. */
export const LED = {
  'read models': 'projector',
  'process managers': PROCESS_LEASE,
  [WEBHOOK_PART]: WEBHOOK_LEASE,
} as const;

/** Whether work has a leader at present: outward work that is held has none. */
export const isLed = (lease: Led, outward: Pick<OutwardWork, 'state'>): boolean =>
  lease === LED['read models'] || outward.state().held === undefined;

export type Led = (typeof LED)[keyof typeof LED];

export interface ReadinessOptions {
  readonly engines: Engines;
  readonly keyStore: KeyStore;
  readonly config: Pick<Config, 'payments' | 'notifications' | 'roles'>;
  readonly projections: readonly Projection[];
  readonly holder: string;
  readonly appends: Pick<AppendWatch, 'failing'>;
  readonly health: () => readonly FollowerHealth[];
  readonly leaders: Pick<LeaderWatch<Led>, 'noLeaderSince'>;
  readonly outward: Pick<OutwardWork, 'state'>;
  /** State of this process's webhook deliveries; `undefined`: it makes none. */
  readonly webhooks?: () => DeliveryStatus | undefined;
  /** Default `NO_WORKER_MS`. */
  readonly noWorkerMs?: number;
}

export function readinessOf(options: ReadinessOptions): Readiness {
  const { engines, keyStore, config, projections, holder } = options;
  const simulated = (['payments', 'notifications'] as const).filter((provider) => config[provider] === 'simulated');
  const write = testWrites(engines.store.records, holder);
  const silentSince = workersWatch(engines.bus);
  return async () => {
    // Workers have nothing to do while outward work is held.
    const silent = options.outward.state().held === undefined ? silentSince() : undefined;
    const parts = await Promise.all([
      checkedPart('event store', async () => logHealth(options)),
      checkedPart('read store', async () => readStoreHealth(engines.store, write)),
      checkedPart('bus', async () => engineHealth(engines.bus)),
      checkedPart('key store', async () => engineHealth(keyStore)),
      ...projections.map((one) => checkedPart(`projection ${one.name}`, async () => projectionHealth(options, one))),
    ]);
    const own = options.health();
    // Failing followers are entered last and replace other entries of their part: they say more than a missing leader.
    const failing = own.filter((one) => one.failing);
    return {
      parts: Object.fromEntries([
        ...parts,
        ...own.map(followerHealth),
        ...processManagersHealth(options),
        ...workersHealth(options, await silent),
        ...webhooksHealth(options),
        ...heldWork(options),
        ...failing.map(followerHealth),
      ]),
      simulated,
    };
  };
}

type NamedHealth = [part: string, health: PartHealth];

/** The health of a part that may be silent or fail. */
export async function checkedPart(part: string, check: () => Promise<PartHealth>): Promise<NamedHealth> {
  const answer = check().catch((error: unknown) => ({
    ready: false,
    detail: (error instanceof UnavailableError ? error.publicReason : undefined) ?? 'cannot be reached',
  }));
  return [part, await within(answer, DEADLINE_MS, () => ({ ready: false, detail: 'does not answer' }))];
}

export async function engineHealth(part: { readonly engine: string; ping(): Promise<void> }): Promise<PartHealth> {
  await part.ping();
  return { ready: true, detail: part.engine };
}

/** A sealed log is ready, since reads go on. Its detail says that it refuses writes. */
async function logHealth({ engines: { events }, appends }: ReadinessOptions): Promise<PartHealth> {
  const { ready, detail } = await engineHealth(events);
  const failing = appends.failing();
  if (failing !== undefined)
    return {
      ready: false,
      detail: `${detail}, takes no appends since ${failing.since.toISOString()}: ${failing.why ?? 'it can not be reached'}`,
    };
  return {
    ready,
    detail: (await events.sealed())
      ? `${detail}, sealed: it was copied to another engine, which takes the writes`
      : detail,
  };
}

/** Makes test writes: only a write shows that the store accepts writes. Checks within a second share one. */
function testWrites(records: Records, holder: string): () => Promise<unknown> {
  let last: { readonly at: number; readonly done: Promise<unknown> } | undefined;
  return () => {
    if (last === undefined || ticks() - last.at > WRITE_MS) {
      last = {
        at: ticks(),
        done: records.put(`ready/${holder}`, systemTime(), { expiresAt: systemMs() + WRITE_RETAINED_MS }),
      };
    }
    return last.done;
  };
}

async function readStoreHealth(store: ReadStore, write: () => Promise<unknown>): Promise<PartHealth> {
  const read = await engineHealth(store);
  return write().then(
    () => read,
    (error: unknown) => {
      if (!(error instanceof UnavailableError)) throw error;
      return {
        ready: false,
        detail: `${read.detail}, takes no writes: ${error.publicReason ?? 'it can not be reached'}`,
      };
    },
  );
}

async function projectionHealth(
  { engines: { events, store }, leaders }: ReadinessOptions,
  { name, version }: Projection,
): Promise<PartHealth> {
  const active = await store.active(name);
  if (active === undefined) {
    const building = 'is being built for the first time';
    return isReadBySome({ name })
      ? { ready: true, detail: `${building}: what is answered from it is refused meanwhile, and nothing else` }
      : { ready: false, detail: building };
  }
  const [orphan, end] = await Promise.all([orphans.recordOf(store, name), events.end()]);
  const checkpoint = checkpointName({ name, version: active });
  const { invalid } = await buildPosition({ events, store }, name, active);
  if (invalid !== null)
    return { ready: false, detail: `its stored position, ${invalid}, is not a position in the log: it is built anew` };
  const ready = end === undefined || (await store.reached(checkpoint, end, CATCH_UP_MS));
  const served = buildOf(active).version;
  if (served === version) {
    const since = leaders.noLeaderSince(LED['read models']);
    const left =
      since === undefined
        ? ''
        : `${ready ? ', but' : ':'} no process keeps the read models up to date since ${since.toISOString()}`;
    return { ready, detail: `${ready ? 'caught up' : 'is behind'}${left}` };
  }
  const left = orphan?.number === active;
  const why = left ? ', since no process that knows it keeps it up to date' : '';
  return {
    ready,
    detail: `version ${served} serves and ${ready ? 'has caught up' : `is behind${why}`}, until ${served > version && !left ? 'no process of its release leads' : `version ${version} is built`}`,
  };
}

const followerHealth = (one: FollowerHealth): NamedHealth => [
  one.part,
  one.failing ? { ready: one.aside === true, detail: describeFailing(one) } : { ready: true, detail: 'works' },
];

/** Every process reports a missing leader, but only those with the role become unready, since only they can lead. */
function processManagersHealth({ leaders, outward, config }: ReadinessOptions): NamedHealth[] {
  const since = leaders.noLeaderSince(LED['process managers']);
  if (since === undefined || !isLed(LED['process managers'], outward)) return [];
  const detail = `no process leads them since ${since.toISOString()}: purchases are taken, and charged, issued and sent once one does`;
  return [['process managers', { ready: !config.roles.has('processor'), detail }]];
}

/** When workers were first found silent; `at`: by `ticks()`. */
interface Silence {
  readonly at: number;
  readonly since: string;
}

/** Asks the workers for a sign of life each time. @returns `undefined`: one answered, or the bus can't be asked */
function workersWatch(bus: Pick<Bus, 'request'>): () => Promise<Silence | undefined> {
  let silence: Silence | undefined;
  return async () => {
    try {
      await bus.request(WORKERS_ALIVE.subject, {}, { timeoutMs: WORKER_ANSWERS_MS });
      silence = undefined;
    } catch (error) {
      // Of the bus itself its own part tells.
      const silent = error instanceof NoRespondersError || error instanceof DeadlineError;
      silence = silent ? (silence ?? { at: ticks(), since: systemTime() }) : undefined;
    }
    return silence;
  };
}

/** Every process reports missing workers; those with the role that needs them become unready, as without a leader. */
function workersHealth(
  { config, noWorkerMs = NO_WORKER_MS }: ReadinessOptions,
  silence: Silence | undefined,
): NamedHealth[] {
  if (silence === undefined) return [];
  const missing = ticks() - silence.at >= noWorkerMs;
  const detail = `none answers since ${silence.since}: purchases are taken, and charged and sent once one does`;
  return [['workers', { ready: !missing || !config.roles.has('processor'), detail }]];
}

/** Only stalled deliveries make a process unready, since they need its restart; no request needs webhooks. */
function webhooksHealth({ leaders, outward, webhooks }: ReadinessOptions): NamedHealth[] {
  const stalled = (webhooks?.()?.endpoints ?? []).filter(({ state }) => state === 'stalled').length;
  if (stalled > 0) {
    const detail = `deliveries to ${stalled} endpoints stand still though events are due`;
    return [[WEBHOOK_PART, { ready: false, detail }]];
  }
  const since = leaders.noLeaderSince(LED[WEBHOOK_PART]);
  if (since === undefined || !isLed(LED[WEBHOOK_PART], outward)) return [];
  const detail = `no process delivers them since ${since.toISOString()}: what happens is delivered once one does`;
  return [[WEBHOOK_PART, { ready: true, detail }]];
}

/** Held outward work leaves a process ready: look-ups and redemptions work, which a restore drill tests. */
function heldWork({ outward }: ReadinessOptions): NamedHealth[] {
  const { held } = outward.state();
  if (held === undefined) return [];
  return [[OUTWARD_PART, { ready: true, detail: `waits, since ${held}: nothing is charged, sent or delivered` }]];
}

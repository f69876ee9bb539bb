/** Carries out orders of maintenance, and the builds of rebuilds, in a process with the role `projector`. */
import { pauseForBeats } from '../../../lib/async/beats.js';
import { pause } from '../../../lib/async/pause.js';
import { backoff } from '../../../lib/backoff.js';
import { systemTime } from '../../../lib/clock.js';
import { EngineError } from '../../../lib/engineError.js';
import { ticks } from '../../../lib/world.js';
import type { StoredRecord } from '../../../ports/readStore.js';
import { AlteredEventError, UnavailableError } from '../../../ports/unavailable.js';
import { considerate, type Lease, LeaseHeldError, seizeLease } from '../../coordination/index.js';
import { type Followers, followers as ownFollowers } from '../../supervision/followers.js';
import { sameVersion } from '../buildNumbers.js';
import { editionOf, MAINTENANCE } from '../edition.js';
import type { Projection } from '../projection.js';
import { REBUILDS, type Rebuild } from '../rebuildRecord.js';
import { LeaseLostError } from '../writer.js';
import {
  isOpen,
  MaintenanceRefusedError,
  type Order,
  type OrderKind,
  orderLease,
  orderNow,
  ORDERS,
  putOrder,
  type Results,
  type Work,
} from './orders.js';
import { carryOn, requestRebuilds } from './rebuild.js';
import { repair } from './repair.js';
import { forgetFindings, type VerificationDeps, verification } from './verification.js';

/** Milliseconds between two polls; `rare`: where fronts in this process have it poll at once. */
const POLL_MS = { usual: 500, rare: 2_000 };
/** A requester that was killed may have stored a request without raising the edition. */
const LOOK_MS = 30_000;
const RENEW_MS = 1_000;
/** The first and the longest wait, in ms, before work that failed is tried again. */
const RETRY_MS = [500, 5_000] as const;

export interface MaintenanceOptions extends VerificationDeps {
  readonly projections: readonly Projection[];
  readonly followers?: Pick<Followers, 'start'>;
  /** Fronts in this process call `poll` for what they request, so that it polls rarely. */
  readonly polledByFronts?: boolean;
  /** Milliseconds after which records are listed though no request was noticed; default 30 s. */
  readonly lookMs?: number;
  /** Compares the log with its signed heads. @throws MaintenanceRefusedError if it was altered */
  checkLog(options: { readonly signal: AbortSignal; readonly onProgress: (events: number) => void }): Promise<void>;
}

interface Maintenance {
  /** Looks for requests at once. */
  poll(): void;
  close(): Promise<void>;
}

interface Task {
  work(): Promise<void>;
  /** Whether the task makes a build: only one read model is built at a time. */
  readonly builds: boolean;
}

/** Work on orders and builds, by the keys of their records. */
type Tasks = ReadonlyMap<string, Task>;

export function startMaintenance(options: MaintenanceOptions): Maintenance {
  const { store, logger, followers = ownFollowers({ logger }), lookMs = LOOK_MS } = options;
  const pollMs = options.polledByFronts === true ? POLL_MS.rare : POLL_MS.usual;
  let woken = new AbortController();
  const follower = followers.start('rebuilds', async ({ signal, onTrouble }) => {
    const running = new Map<string, Promise<void>>();
    /** Failures of tasks that are tried again, by the keys of the tasks. */
    const troubles = new Map<string, Error>();
    let tasks: Tasks = new Map();
    let read = { edition: -1, at: 0 };

    async function untilDone({ work }: Task, key: string): Promise<void> {
      let wait = backoff(...RETRY_MS).next();
      for (; !signal.aborted; wait = wait.next(undefined)) {
        try {
          await work();
          return woken.abort();
        } catch (error) {
          // Another process has the work.
          if (error instanceof LeaseHeldError || error instanceof LeaseLostError) return;
          troubles.set(key, error as Error);
          if (!(error instanceof UnavailableError)) logger.error({ err: error, work: key }, 'maintenance failed');
          await pause(wait.duration, signal);
        }
      }
    }

    while (!signal.aborted) {
      woken = new AbortController();
      try {
        const edition = await editionOf(store, MAINTENANCE);
        if (tasks.size > 0 || edition !== read.edition || ticks() - read.at > lookMs) {
          tasks = await openTasks(options, signal);
          read = { edition, at: ticks() };
        }
        for (const [key, task] of tasks) {
          const waits = task.builds && [...running.keys()].some((one) => one.startsWith(REBUILDS));
          if (running.has(key) || waits) continue;
          const one = untilDone(task, key).finally(() => {
            running.delete(key);
            troubles.delete(key);
          });
          running.set(key, one);
        }
        onTrouble([...troubles.values()][0]);
      } catch (error) {
        onTrouble(error as Error);
      }
      await pauseForBeats(pollMs, AbortSignal.any([signal, woken.signal]));
    }
    await Promise.all(running.values());
  });
  return { poll: () => woken.abort(), close: async () => follower.close() };
}

async function openTasks(options: MaintenanceOptions, signal: AbortSignal): Promise<Tasks> {
  const { store, projections } = options;
  const tasks = new Map<string, Task>();
  const requested = new Set<string>();
  for (const { key, value } of await store.records.list<Order>(ORDERS)) {
    if (!isOpen(value) || !namesOf(value).every((name) => projections.some((one) => one.name === name))) continue;
    tasks.set(key, { builds: false, work: async () => carryOut(options, value, signal) });
    if (value.kind === 'rebuild') for (const name of namesOf(value)) requested.add(name);
  }
  for (const { key, value } of await store.records.list<Rebuild>(REBUILDS)) {
    const name = key.slice(REBUILDS.length);
    const projection = projections.find((one) => one.name === name);
    // A build of another release is dropped by any process, and made by those of that release only.
    const isKnown = value.state === 'aborting' || isOwn(projection, value);
    // A build waits while its rebuild is requested again.
    if (projection !== undefined && isKnown && isToBuild(value) && !requested.has(name))
      tasks.set(key, {
        builds: value.state === 'building',
        work: async () => carryOn(options, projection, signal),
      });
  }
  return tasks;
}

const isOwn = (projection: Projection | undefined, { target }: Rebuild): boolean =>
  projection !== undefined && sameVersion(projection.version, target);

const isToBuild = ({ kind, state, failure }: Rebuild): boolean =>
  kind === 'rebuild' && (state === 'aborting' || (state === 'building' && failure === undefined));

const namesOf = (order: Order): readonly string[] =>
  order.kind === 'rebuild' ? (order as Order<'rebuild'>).request.names : [order.projection];

/** @throws LeaseHeldError while another process carries it out; UnavailableError: the order stays open */
async function carryOut(options: MaintenanceOptions, order: Order, closing: AbortSignal): Promise<void> {
  const { store, logger, holder, leaseMs } = options;
  const claim = { holder, signal: closing, logger, ttlMs: leaseMs };
  const lease = await seizeLease(store.records, orderLease(order), claim);
  if (lease === undefined) return;
  try {
    const record = await orderNow(store.records, order);
    if (record !== undefined && isOpen(record.value)) await underLease(options, record, lease, closing);
  } finally {
    await lease.release();
  }
}

/** Carries an order out and stores its outcome. Its record is renewed meanwhile, until another hand changes it. */
async function underLease(
  options: MaintenanceOptions,
  record: StoredRecord<Order>,
  lease: Lease,
  closing: AbortSignal,
): Promise<void> {
  const { store, logger } = options;
  const withdrawn = new AbortController();
  const over = new AbortController();
  const signal = AbortSignal.any([closing, lease.lost, withdrawn.signal]);
  let order = record.value;
  let { version } = record;

  async function put(): Promise<void> {
    order = { ...order, told_at: systemTime() };
    let renewed = await putOrder(store.records, order, version);
    if (renewed === undefined) {
      // An earlier renewal without an answer may have been stored.
      const now = await orderNow(store.records, order);
      if (now?.value.state === 'running') renewed = await putOrder(store.records, order, now.version);
    }
    if (renewed !== undefined) {
      version = renewed;
      return;
    }
    logger.info(
      { projection: order.projection },
      `the ${order.kind} was withdrawn, or another ${order.kind} of ${order.projection} has taken its place`,
    );
    withdrawn.abort();
  }

  async function renew(): Promise<void> {
    while (!over.signal.aborted && !signal.aborted) {
      await put().catch((error: unknown) => logger.debug({ err: error }, 'could not store how far an order is'));
      await pause(RENEW_MS, AbortSignal.any([signal, over.signal]));
    }
  }

  const work: Work = {
    signal,
    report: (progress, step) => (order = { ...order, progress: progress ?? order.progress, step }),
  };
  const renewing = renew();
  let ended: Order;
  try {
    const result = await CARRIERS[order.kind](options, order as never, work);
    ended = { ...order, state: 'done', result, progress: 1 };
  } catch (error) {
    ended = { ...order, state: 'failed', ...storedFailure(error) };
    if (!signal.aborted && ended.refusal === undefined)
      logger.error({ err: error, task: order.kind, projection: order.projection }, 'a task failed');
  } finally {
    over.abort();
    await renewing;
  }
  // The order stays open for another process, or was withdrawn.
  if (signal.aborted) return;
  order = ended;
  await put();
}

function storedFailure(error: unknown): Pick<Order, 'failure'> & Partial<Order> {
  if (error instanceof MaintenanceRefusedError) return { failure: error.message, refusal: error.refusal };
  if (error instanceof AlteredEventError) return { failure: error.message, refusal: { remedy: 'audit' } };
  if (error instanceof EngineError) return { failure: error.message, refusal: {} };
  return {
    failure: 'it failed: see the log of the service',
    ...(error instanceof Error ? { cause: error.message } : {}),
    ...(error instanceof UnavailableError ? { unavailable: true } : {}),
  };
}

type Carriers = {
  readonly [K in OrderKind]: (options: MaintenanceOptions, order: Order<K>, work: Work) => Promise<Results[K]>;
};

const CARRIERS: Carriers = {
  verification: async (options, order, work) => verification(options, projectionOf(options, order), order, work),

  async repair(options, order, work) {
    const { ids, found, uncheckedLog } = order.request;
    if (uncheckedLog !== true) await checkLog(options, work);
    const pace = considerate(options.store.records);
    const documents = await repair(options, projectionOf(options, order), ids, { ...work, pace });
    if (found === true && documents !== undefined) await forgetFindings(options.store.records, order.projection);
    return { documents: documents ?? [] };
  },

  async rebuild(options, { id, request: { names, uncheckedLog }, by, at, reason, process }, work) {
    if (uncheckedLog !== true) await checkLog(options, work);
    const projections = options.projections.filter(({ name }) => names.includes(name));
    const requested = { by, at, ...(reason === null ? {} : { reason }), ...(process === undefined ? {} : { process }) };
    // Another name than that of the builder, which may be this process.
    const holder = `${options.holder}, order ${id}`;
    return requestRebuilds({ ...options, holder }, projections, requested, work.signal);
  },
};

async function checkLog({ checkLog: check }: MaintenanceOptions, { signal, report }: Work): Promise<void> {
  await check({ signal, onProgress: (events) => report(null, { step: 'check', events }) });
}

function projectionOf({ projections }: MaintenanceOptions, { projection }: Order): Projection {
  return projections.find(({ name }) => name === projection) as Projection;
}

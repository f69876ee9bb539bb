/**
 * Keeps the read models up to date: folds the log into documents, from each projection's checkpoint on, for ever.
 *
 * - Of several processes one does it (a lease); the others stand by and take over within 5 s.
 * - An engine's failure is waited out; whatever was in memory is thrown away and read again, so nothing is lost and nothing counts twice.
 * - A document that can't be folded is quarantined, alone.
 * - A new version is built beside the one that readers use, and swapped in when it has caught up. What readers use is also the durable sign that
 *   a projection has caught up at least once: until then readers take what is missing as unavailable (`readModel.ts`).
 */
import type { Logger } from 'pino';
import type { EventStore, Position } from '../ports/eventStore.js';
import type { ReadStore } from '../ports/readStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { runFeed } from './feed.js';
import { acquireLease, pause, type Lease } from './lease.js';
import type { Projection } from './projection.js';
import { readStatus, statusOf, unknownStatus, type ProjectionStatus } from './status.js';
import { openUnit, type Unit } from './unit.js';

/** Waiting after a failure, in ms: doubled each time, up to the last. */
const RETRY_MS = [100, 5_000] as const;
/** How long a version that readers have left is kept for those that have not noticed yet, in ms. */
const RETIRE_MS = 60_000;
/** How often a process that stands by looks how far the other has come, in ms. */
const LOOK_MS = 1_000;

/** What the projector needs. */
export interface ProjectorOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  /** May hold two versions of one name: then the older is kept up to date while the newer is built. */
  readonly projections: readonly Projection[];
  readonly logger: Logger;
  /** Names this process; see `LeaseOptions.holder`. */
  readonly holder: string;
  /** Stops it as `close` does. */
  readonly signal?: AbortSignal;
  /** Time of the lease in ms; default `LEASE_MS`. */
  readonly leaseMs?: number;
  /** How long a version that readers have left is kept, in ms; default one minute. */
  readonly retireMs?: number;
}

/** A running projector. */
export interface Projector {
  status(): readonly ProjectionStatus[];
  /** Stores what is folded, gives up the lease, and resolves when nothing more will be written. */
  close(): Promise<void>;
}

/**
 * Starts projecting, in the background.
 * @throws Error when the read store was filled from another log.
 */
export async function startProjector(options: ProjectorOptions): Promise<Projector> {
  const { events, store, projections, logger, holder, leaseMs, retireMs = RETIRE_MS } = options;
  const closing = new AbortController();
  const signal = options.signal === undefined ? closing.signal : AbortSignal.any([options.signal, closing.signal]);
  let units: readonly Unit[] | undefined;
  let seen: readonly ProjectionStatus[] = projections.map((projection) => unknownStatus(projection));

  await checkLog(events, store).catch((error: unknown) => {
    if (!(error instanceof UnavailableError)) throw error;
    logger.warn({ err: error }, 'projector: the read store does not answer, trying on');
  });

  /** Notes how the leading process fares, until this one leads. */
  async function standBy(until: AbortSignal): Promise<void> {
    while (!until.aborted) {
      // An unreachable store leaves what was last seen; waiting for the lease logs it.
      seen = await readStatus(store, projections).catch(() => seen);
      await pause(LOOK_MS, until);
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const waiting = new AbortController();
      const standing = standBy(AbortSignal.any([signal, waiting.signal]));
      const lease = await acquireLease(store.records, 'projector', { holder, signal, logger, ...(leaseMs === undefined ? {} : { ttlMs: leaseMs }) });
      waiting.abort();
      await standing;
      if (lease === undefined) return;
      logger.info({ fence: lease.fence }, 'projector: leading');
      await leadOn(lease);
      await lease.release();
    }
  }

  /** Leads until the lease is lost or the projector stops, through whatever failures. */
  async function leadOn(lease: Lease): Promise<void> {
    const leading = AbortSignal.any([signal, lease.lost]);
    let wait: number = RETRY_MS[0];
    while (!leading.aborted && lease.held) {
      try {
        await checkLog(events, store);
        await lead(lease, leading, () => {
          wait = RETRY_MS[0];
        });
      } catch (error) {
        if (leading.aborted || !lease.held) break;
        const level = error instanceof UnavailableError ? 'warn' : 'error';
        logger[level]({ err: error, retryMs: wait }, 'projector: failed, reading again from the checkpoints');
        await pause(wait, leading);
        wait = Math.min(wait * 2, RETRY_MS[1]);
      }
    }
    seen = (units ?? []).map((unit) => ({ ...statusOf(unit), leader: false }));
    units = undefined;
  }

  /** One run without a failure. */
  async function lead(lease: Lease, leading: AbortSignal, progress: () => void): Promise<void> {
    const opened = served(await Promise.all(projections.map((projection) => openUnit(store, projection))));
    units = opened;
    for (const unit of opened) {
      unit.report = ({ documentId, stream, type, position, cause }) =>
        logger.warn({ projection: unit.checkpoint, documentId, stream, type, position, cause }, 'projector: a document is quarantined: it answers 503 until it is rebuilt');
    }
    const ending = new AbortController();
    const over = AbortSignal.any([leading, ending.signal]);
    const retiring: Promise<void>[] = [];
    const caughtUp = async (ready: readonly Unit[]): Promise<void> => {
      progress();
      for (const unit of ready) {
        if (unit.caughtUp) continue;
        await swapIn(unit, opened);
        retiring.push(retire(unit, opened, over));
      }
    };
    const shared = { events, store, lease, caughtUp };

    /** Keeps all units that have caught up on one feed; those left behind come to it when they have. */
    async function keepTogether([first = [], ...behind]: readonly (readonly Unit[])[]): Promise<void> {
      const together = [...first];
      const arriving: Unit[] = [];
      let turn = new AbortController();
      const catchUps = behind.map(async (group) => {
        await runFeed(group, { ...shared, signal: over, untilCaughtUp: true });
        if (over.aborted) return;
        arriving.push(...group);
        turn.abort();
      });
      const main = async (): Promise<void> => {
        while (!over.aborted) {
          turn = new AbortController();
          together.push(...arriving.splice(0));
          await runFeed(together, { ...shared, signal: AbortSignal.any([over, turn.signal]) });
        }
      };
      // The first failure ends all of them, and is thrown once they have ended.
      const feeds = [main(), ...catchUps].map(async (feed) => feed.catch((error: unknown) => {
        ending.abort();
        throw error;
      }));
      const ended = await Promise.allSettled(feeds);
      for (const end of ended) if (end.status === 'rejected') throw end.reason;
    }

    try {
      await keepTogether(groupsByPlace(opened));
    } finally {
      ending.abort();
      await Promise.all(retiring);
    }
  }

  /** Completes the collection, and lets readers use it where it is the newest of its name. */
  async function swapIn(unit: Unit, all: readonly Unit[]): Promise<void> {
    const { name, version } = unit.projection;
    const newest = all.every((other) => other.projection.name !== name || other.projection.version <= version);
    await store.ensure(unit.collection);
    if (unit.active !== version && (newest || unit.active === undefined)) {
      await store.activate(name, version);
      for (const other of all) if (other.projection.name === name) other.active = version;
      logger.info({ projection: unit.checkpoint, position: unit.stored }, 'projection caught up and in use');
    }
    unit.caughtUp = true;
  }

  /** Drops the versions before the one in use that nobody keeps, once every reader has had time to leave them. */
  async function retire(unit: Unit, all: readonly Unit[], until: AbortSignal): Promise<void> {
    const { name, version } = unit.projection;
    if (unit.active !== version || version === 1) return;
    await pause(retireMs, until);
    const kept = new Set(all.filter((other) => other.projection.name === name).map((other) => other.projection.version));
    for (let old = version - 1; old > 0 && !until.aborted; old--) {
      if (kept.has(old)) continue;
      try {
        await store.drop({ name, version: old, indexes: [] });
      } catch (error) {
        logger.warn({ err: error, projection: `${name}@${old}` }, 'projector: an old version could not be dropped yet');
      }
    }
  }

  const running = run().catch((error: unknown) => {
    logger.error({ err: error }, 'projector stopped');
  });
  return {
    status: () => units?.map(statusOf) ?? seen,
    async close() {
      closing.abort();
      await running;
    },
  };
}

/** @throws Error when the read store was filled from another log. */
async function checkLog(events: EventStore, store: ReadStore): Promise<void> {
  const bound = await store.boundTo(events.logId);
  if (bound !== events.logId) throw new Error(`the read store was filled from the log ${bound}, not from ${events.logId}: empty it, or use the other`);
}

/** Without those that a newer version of the same name, in use and run here too, has replaced. */
function served(units: readonly Unit[]): Unit[] {
  return units.filter(({ projection, active }) => {
    const replaced = active !== undefined && active > projection.version;
    return !replaced || !units.some((other) => other.projection.name === projection.name && other.projection.version === active);
  });
}

/** Units that stand at the same place, the most advanced first. */
function groupsByPlace(units: readonly Unit[]): Unit[][] {
  const groups = new Map<Position, Unit[]>();
  for (const unit of units) {
    const place = unit.folded ?? '';
    const group = groups.get(place);
    if (group === undefined) groups.set(place, [unit]);
    else group.push(unit);
  }
  return [...groups].sort(([a], [b]) => (a < b ? 1 : -1)).map(([, group]) => group);
}

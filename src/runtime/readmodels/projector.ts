/**
 * Keeps the read models up to date: folds the log into documents, from their checkpoints on.
 * - One process leads, by a lease; the others stand by and take over within 5 s.
 * - Failures of an engine are waited out. Memory is read again from the store, so no event is lost or folded twice.
 * - A document whose fold fails is quarantined alone.
 * - A new version is built while the old one serves, then swapped in (docs/read-models.md).
 */
import type { EventStore, Position, ReadOptions } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { type FollowerRun, type Followers, followers as ownFollowers } from '../supervision/followers.js';
import type { Projection } from './projection.js';
import type { ProjectorProcess } from './projectorProcess.js';
import { runAsLeader } from './leader.js';
import { acquireLease, considerate, type Lease } from '../coordination/index.js';
import type { Quarantined } from './quarantine.js';
import { SwapOutdatedError } from './swap.js';
import type { RunningBuild } from './runningBuild.js';
import { keepOrphaned } from './orphanKeeper.js';
import { LeaseLostError } from './writer.js';

const RETIRE_MS = 60_000;

export interface ProjectorOptions extends ProjectorProcess {
  readonly projections: readonly Projection[];
  /** Milliseconds that a build stays up to date after readers have left it; default one minute. */
  readonly retireMs?: number;
  readonly followers?: Pick<Followers, 'start'>;
  /**
   * Milliseconds between two batches at the log's end, as in `ReadOptions`. Default: each event is folded as it comes.
   */
  readonly gatherMs?: ReadOptions['gatherMs'];
}

/** A build in the leading process; `src/ops/status` reports all processes. */
interface KeptProjection {
  readonly projection: string;
  /** Number of the build (`buildNumbers.ts`). */
  readonly version: number;
  readonly position: Position | undefined;
  /** Whether the build has reached the log's end since this process leads. */
  readonly caughtUp: boolean;
  readonly active: boolean;
  readonly quarantined: readonly Quarantined[];
}

export interface Projector {
  /** Empty while another process leads. */
  kept(): readonly KeptProjection[];
  /** Stores folded documents and releases the lease. Nothing is written after it resolves. */
  close(): Promise<void>;
}

/** @throws Error when the read store was filled from another log */
export async function startProjector(options: ProjectorOptions): Promise<Projector> {
  const { events, store, logger, holder, leaseMs, retireMs = RETIRE_MS } = options;
  const { followers = ownFollowers({ logger }) } = options;
  const pace = considerate(store.records);
  let builds: readonly RunningBuild[] = [];

  await checkLog(events, store).catch((error: unknown) => {
    if (!(error instanceof UnavailableError)) throw error;
    logger.warn({ err: error }, 'projector: the read store does not answer, trying on');
  });

  /** The projector's lease, held through failures so that no other process need take over. */
  let lease: Lease | undefined;

  async function heldLease({ signal, onTrouble }: FollowerRun): Promise<Lease | undefined> {
    if (lease?.held === true) return lease;
    await lease?.release();
    const waiting = new AbortController();
    const standingBy = keepOrphaned(options, AbortSignal.any([signal, waiting.signal]));
    lease = await acquireLease(store.records, 'projector', { holder, signal, logger, ttlMs: leaseMs, onTrouble });
    waiting.abort();
    await standingBy;
    if (lease !== undefined) logger.info({ fence: lease.fence }, 'projector: leading');
    return lease;
  }

  async function run(health: FollowerRun): Promise<void> {
    while (!health.signal.aborted) {
      const mine = await heldLease(health);
      if (mine === undefined) return;
      const leading = AbortSignal.any([health.signal, mine.lost]);
      try {
        await checkLog(events, store);
        await runAsLeader({
          ...options,
          lease: mine,
          signal: leading,
          retireMs,
          pace,
          health,
          onBuilds: (running) => (builds = running),
        });
      } catch (error) {
        if (!leading.aborted && mine.held) throw error;
      }
    }
  }

  const follower = followers.start('projector', run, {
    expected: (error) => error instanceof SwapOutdatedError || error instanceof LeaseLostError,
  });
  return {
    kept: () => (lease?.held === true ? builds.map(keptOf) : []),
    async close() {
      await follower.close();
      await lease?.release();
    },
  };
}

function keptOf({ projection, stored, caughtUp, state, quarantined }: RunningBuild): KeptProjection {
  return {
    projection: projection.name,
    version: projection.version,
    position: stored,
    caughtUp,
    active: state === 'serving',
    quarantined: [...quarantined],
  };
}

async function checkLog(events: EventStore, store: ReadStore): Promise<void> {
  const bound = await store.boundTo(events.logId);
  if (bound !== events.logId)
    throw new Error(
      `the read store was filled from the log ${bound}, not from ${events.logId}: empty it, or use the other`,
    );
}

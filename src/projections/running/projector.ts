/**
 * Keeps the read models up to date: folds the log into documents, from each projection's checkpoint on, for ever.
 *
 * - Of several processes one does it (a lease); the others stand by and take over within 5 s.
 * - An engine's failure is waited out; whatever was in memory is thrown away and read again, so nothing is lost and nothing counts twice.
 * - A document that can't be folded is quarantined, alone.
 * - A new version is built beside the one that readers use, and swapped in when it has caught up. What readers use is kept up to date meanwhile, by its former fold, or, where the leading
 *   process does not know that, by one of those that stand by (`unkept.ts`). It is also the durable sign that a projection has caught up at least once: until then readers take what is
 *   missing as unavailable (`readModel.ts`).
 */
import type { Logger } from 'pino';
import { pause } from '../../async/pause.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Projection } from '../projection.js';
import { lead } from './leading.js';
import { acquireLease, type Lease } from './lease.js';
import { considerate } from './pace.js';
import type { Quarantined } from './quarantine.js';
import { SwapOutdatedError } from './swap.js';
import type { Unit } from './unit.js';
import { keepUnkept } from './unkept.js';
import { LeaseLostError } from './writer.js';

/** Waiting after a failure, in ms: doubled each time, up to the last; from the first again after a run that went on for longer than that. */
const RETRY_MS = [100, 5_000] as const;
/** How long a version that readers have left is kept for those that have not noticed yet, in ms. */
const RETIRE_MS = 60_000;

/** What the projector needs. */
export interface ProjectorOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly projections: readonly Projection[];
  readonly logger: Logger;
  /** Names this process; see `LeaseOptions.holder`. */
  readonly holder: string;
  /** Time of the lease in ms; default `LEASE_MS`. */
  readonly leaseMs?: number | undefined;
  /** How long a version that readers have left is kept, in ms; default one minute. */
  readonly retireMs?: number;
}

/** One projection, as the process that keeps it knows it. How all stand, whoever keeps them, `standing.ts` finds out from the engines. */
export interface KeptProjection {
  readonly projection: string;
  /** The collection's number: see `builds.ts`. */
  readonly version: number;
  /** Everything up to here is in the read store; `undefined`: nothing yet. */
  readonly position: Position | undefined;
  /** Has reached the log's end since this process leads. */
  readonly caughtUp: boolean;
  /** Whether readers use this version. */
  readonly active: boolean;
  readonly quarantined: readonly Quarantined[];
}

/** A running projector. */
export interface Projector {
  /** What it keeps, for whoever runs it; nothing while another process leads. */
  kept(): readonly KeptProjection[];
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
  const { signal } = closing;
  const pace = considerate(store.records);
  let units: readonly Unit[] = [];

  await checkLog(events, store).catch((error: unknown) => {
    if (!(error instanceof UnavailableError)) throw error;
    logger.warn({ err: error }, 'projector: the read store does not answer, trying on');
  });

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const waiting = new AbortController();
      const standingBy = keepUnkept({ events, store, projections, logger, holder, leaseMs }, AbortSignal.any([signal, waiting.signal]));
      const lease = await acquireLease(store.records, 'projector', { holder, signal, logger, ttlMs: leaseMs });
      waiting.abort();
      await standingBy;
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
      const began = performance.now();
      try {
        await checkLog(events, store);
        await lead({
          events,
          store,
          projections,
          logger,
          holder,
          leaseMs,
          lease,
          signal: leading,
          retireMs,
          pace,
          onUnits(opened) {
            units = opened;
          },
        });
      } catch (error) {
        if (leading.aborted || !lease.held) break;
        if (performance.now() - began >= RETRY_MS[1]) wait = RETRY_MS[0];
        // A renewal that was answered late can have brought a lease back meanwhile: nothing is wrong then.
        const expected = error instanceof UnavailableError || error instanceof SwapOutdatedError || error instanceof LeaseLostError;
        const level = expected ? 'warn' : 'error';
        logger[level]({ err: error, retryMs: wait }, 'projector: failed, reading again from the checkpoints');
        await pause(wait, leading);
        wait = Math.min(wait * 2, RETRY_MS[1]);
      }
    }
    units = [];
  }

  const running = run().catch((error: unknown) => {
    logger.error({ err: error }, 'projector stopped');
  });
  return {
    kept: () => units.map(keptOf),
    async close() {
      closing.abort();
      await running;
    },
  };
}

function keptOf({ projection, stored, caughtUp, active, quarantined }: Unit): KeptProjection {
  return { projection: projection.name, version: projection.version, position: stored, caughtUp, active: active === projection.version, quarantined: [...quarantined] };
}

/** @throws Error when the read store was filled from another log. */
async function checkLog(events: EventStore, store: ReadStore): Promise<void> {
  const bound = await store.boundTo(events.logId);
  if (bound !== events.logId) throw new Error(`the read store was filled from the log ${bound}, not from ${events.logId}: empty it, or use the other`);
}

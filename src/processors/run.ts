/** Runs the process managers: of several processes the one with the lease works, the others stand by. */
import { randomUUID } from 'node:crypto';
import { pause } from '../async/pause.js';
import type { Records } from '../ports/readStore.js';
import { acquireLease, LEASE_MS } from '../projections/running/lease.js';
import { processCheckpoints } from './checkpoint.js';
import { PATIENCE, type Patience } from './retry.js';
import { type SessionDeps, workThrough } from './session.js';
import { type ProcessStatus, processTally } from './status.js';

/** The process managers' lease. */
export const PROCESS_LEASE = 'purchase-process';
const RESTART_MS = 500;

/** What the process managers work with. */
export interface ProcessorDeps extends Omit<SessionDeps, 'now' | 'patience' | 'tally'> {
  /** Keeps lease and checkpoint. Losing either loses and repeats nothing. */
  readonly records: Records;
  /** Names this process; see `LeaseOptions.holder`. Default a random name. */
  readonly holder?: string;
  /** Milliseconds since the epoch; default the system's clock. */
  readonly now?: () => number;
  readonly patience?: Partial<Patience>;
  /** Of the lease, milliseconds; the same in all processes. */
  readonly leaseMs?: number;
}

/** The running process managers. */
export interface Processors {
  /** How they fare in this process. */
  status(): ProcessStatus;
  /** Takes on nothing new, finishes what runs, gives the lease to whoever waits for it. */
  close(): Promise<void>;
}

/** Starts. What goes wrong is logged and tried again; it never throws later on. */
export function runProcessors({ records, now = Date.now, patience, leaseMs = LEASE_MS, holder = randomUUID(), ...deps }: ProcessorDeps): Processors {
  const { events, logger } = deps;
  const stop = new AbortController();
  const tally = processTally();
  const checkpoints = processCheckpoints({ events, records, logger });
  const session: SessionDeps = { ...deps, now, tally, patience: { ...PATIENCE, ...patience } };

  const work = async (): Promise<void> => {
    const lease = await acquireLease(records, PROCESS_LEASE, { holder, signal: stop.signal, logger, ttlMs: leaseMs });
    if (lease === undefined) return;
    const signal = AbortSignal.any([stop.signal, lease.lost]);
    try {
      await workThrough(session, { from: await checkpoints.last(signal), checkpoint: checkpoints.save, signal, held: () => lease.held });
    } finally {
      await lease.release();
    }
  };

  const working = (async () => {
    while (!stop.signal.aborted) {
      try {
        await work();
      } catch (error) {
        logger.error({ err: error }, 'process managers stopped, starting again');
        await pause(RESTART_MS, stop.signal);
      }
    }
  })();

  return {
    status: tally.status,
    close() {
      stop.abort();
      return working;
    },
  };
}

/** Runs the process managers: of several processes the one with the lease works, the others stand by. */
import { randomUUID } from 'node:crypto';
import type { Position } from '../ports/eventStore.js';
import type { Records } from '../ports/readStore.js';
import { acquireLease, LEASE_MS, pause } from '../projections/lease.js';
import { FEED_TYPES } from './feed.js';
import { PATIENCE, type Patience } from './retry.js';
import { type SessionDeps, workThrough } from './session.js';
import { type ProcessStatus, processTally } from './status.js';

/** The process managers' lease. */
export const PROCESS_LEASE = 'purchase-process';
/** The key of their checkpoint. */
export const PROCESS_CHECKPOINT = 'checkpoint/purchase-process';
const RESTART_MS = 500;
const TYPES = FEED_TYPES.join(' ');

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

/** A checkpoint counts only for the log it was made from, and for the types of events that were looked at: of others it tells nothing. */
export interface ProcessCheckpoint {
  readonly logId: string;
  readonly types: string;
  readonly position: Position;
}

/** Starts. What goes wrong is logged and tried again; it never throws later on. */
export function runProcessors({ records, now = Date.now, patience, leaseMs = LEASE_MS, holder = randomUUID(), ...deps }: ProcessorDeps): Processors {
  const { events, logger } = deps;
  const stop = new AbortController();
  const tally = processTally();
  const session: SessionDeps = { ...deps, now, tally, patience: { ...PATIENCE, ...patience } };

  const lastCheckpoint = async (): Promise<Position | undefined> => {
    const stored = await records.get<ProcessCheckpoint>(PROCESS_CHECKPOINT);
    return stored?.value.logId === events.logId && stored.value.types === TYPES ? stored.value.position : undefined;
  };

  const work = async (): Promise<void> => {
    const lease = await acquireLease(records, PROCESS_LEASE, { holder, signal: stop.signal, logger, ttlMs: leaseMs });
    if (lease === undefined) return;
    const signal = AbortSignal.any([stop.signal, lease.lost]);
    const checkpoint = async (position: Position): Promise<void> => {
      await records.put(PROCESS_CHECKPOINT, { logId: events.logId, types: TYPES, position } satisfies ProcessCheckpoint).catch((error: unknown) => logger.info({ err: error }, 'checkpoint not saved'));
    };
    try {
      await workThrough(session, { from: await lastCheckpoint(), checkpoint, signal, held: () => lease.held });
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

/** Runs process managers: of several processes the one with the lease works, the others stand by. */
import { randomUUID } from 'node:crypto';
import type { Records } from '../../ports/readStore.js';
import { acquireLease, LEASE_MS } from '../../runtime/coordination/lease.js';
import { type Followers, followers as ownFollowers } from '../../runtime/supervision/followers.js';
import { processCheckpoints } from './checkpoint.js';
import { RETRY_POLICY, type RetryPolicy } from './retry.js';
import { feedTypes, type SessionDeps, workThrough } from './session.js';
import { type ProcessStatus, processTally } from './status.js';

/** The process managers' lease. */
export const PROCESS_LEASE = 'process-managers';

/** What the runner works with. */
export interface RunnerDeps<D> extends Omit<SessionDeps<D>, 'now' | 'retryPolicy' | 'tally' | 'health'> {
  /** Keeps lease and checkpoint. Losing either loses and repeats nothing. */
  readonly records: Records;
  /** Names this process; see `LeaseOptions.holder`. Default a random name. */
  readonly holder?: string;
  /** Milliseconds since the epoch; default the system's clock. */
  readonly now?: () => number;
  readonly retryPolicy?: Partial<RetryPolicy>;
  /** Of the lease, milliseconds; the same in all processes. */
  readonly leaseMs?: number;
  /** The followers of this process, of which they are one; default their own. */
  readonly followers?: Pick<Followers, 'start'>;
}

/** The running process managers. */
export interface Processors {
  status(): ProcessStatus;
  /** Takes on nothing new, finishes what runs, gives the lease to the process that waits for it. */
  close(): Promise<void>;
}

/** Starts. Failures are logged and tried again; it never throws later on. */
export function runManagers<D>({
  records,
  now = Date.now,
  retryPolicy,
  leaseMs = LEASE_MS,
  holder = randomUUID(),
  followers,
  ...deps
}: RunnerDeps<D>): Processors {
  const { events, logger, processes } = deps;
  const tally = processTally();
  const checkpoints = processCheckpoints({ events, records, logger, types: feedTypes(processes.managers) });
  const session = { ...deps, now, tally, retryPolicy: { ...RETRY_POLICY, ...retryPolicy } };

  const follower = (followers ?? ownFollowers({ logger })).start('process managers', async (health) => {
    while (!health.signal.aborted) {
      const lease = await acquireLease(records, PROCESS_LEASE, {
        holder,
        signal: health.signal,
        logger,
        ttlMs: leaseMs,
        onTrouble: health.onTrouble,
      });
      if (lease === undefined) return;
      const signal = AbortSignal.any([health.signal, lease.lost]);
      try {
        await workThrough(
          { ...session, health },
          { from: await checkpoints.last(signal), checkpoint: checkpoints.save, signal, held: () => lease.held },
        );
        if (!signal.aborted) throw new Error('the feed of the log ended');
      } finally {
        await lease.release();
      }
    }
  });

  return { status: tally.status, close: () => follower.close() };
}

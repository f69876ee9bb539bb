/** Runs the process managers in the process with the lease, while the others wait for it. */
import { clockMs } from '../../lib/clock.js';
import { randomUUID } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import { LEASE_MS, workByLease } from '../../runtime/coordination/index.js';
import { type Followers, followers as ownFollowers } from '../../runtime/supervision/followers.js';
import { processCheckpoints } from './checkpoint.js';
import { RETRY_POLICY, type RetryPolicy } from './retry.js';
import { feedTypes, type SessionDeps, workThrough } from './session.js';
import { type ProcessStatus, processTally } from './status.js';

export const PROCESS_LEASE = 'process-managers';

export interface RunnerDeps<D> extends Omit<SessionDeps<D>, 'now' | 'retryPolicy' | 'tally' | 'health'> {
  /** Store of the lease and the checkpoint. The loss of either loses and repeats no work. */
  readonly records: Records;
  /** Names this process; see `LeaseOptions.holder`. Default: a random name. */
  readonly holder?: string;
  /** Present time, milliseconds since the epoch; default: the system's clock. */
  readonly now?: () => number;
  readonly retryPolicy?: Partial<RetryPolicy>;
  /** The lease's duration, milliseconds; the same in all processes. */
  readonly leaseMs?: number;
  readonly followers?: Pick<Followers, 'start'>;
}

export interface Processors {
  status(): ProcessStatus;
  /** Starts no further job, lets running ones finish, and passes the lease on. */
  close(): Promise<void>;
}

/** Starts the process managers. Later failures are logged and retried, and never thrown. */
export function runManagers<D>({
  records,
  now = clockMs,
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
    const { signal: closing, onTrouble } = health;
    const options = { holder, signal: closing, logger, ttlMs: leaseMs, onTrouble };
    await workByLease(records, PROCESS_LEASE, options, async (lease, signal) => {
      await workThrough(
        { ...session, health },
        { from: await checkpoints.last(signal), checkpoint: checkpoints.save, signal, held: () => lease.held },
      );
      if (!signal.aborted) throw new Error('the feed of the log ended');
    });
  });

  return { status: tally.status, close: () => follower.close() };
}

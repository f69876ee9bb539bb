/**
 * Of several processes, one keeps the tree over the log, by a lease; no command waits for it. Another process continues
 * from its own folder, or makes the tree again from the log.
 */
import type { Logger } from 'pino';
import type { Records } from '../../../ports/readStore.js';
import { acquireLease, type Lease } from '../../../runtime/coordination/index.js';
import type { FollowerRun, Followers } from '../../../runtime/supervision/followers.js';
import { LogAlteredError } from '../tree/logTree.js';
import { type WitnessAddress, witnessClient } from '../witness/witnessClient.js';
import { keepTree, type TreeKeeperDeps } from './keepTree.js';

const TREE_LEASE = 'tree';
/** Name of the follower that maintains the tree. */
export const TREE_PART = 'tree';
/** First and longest wait before a restart, in ms. An altered log stays altered, and is read again from its start. */
const RESTART_MS = [500, 600_000] as const;

interface TreeKeeperOptions extends Omit<TreeKeeperDeps, 'witnesses'> {
  readonly witnesses: readonly WitnessAddress[];
  readonly records: Records;
  /** See `LeaseOptions.holder`. */
  readonly holder: string;
  readonly logger: Logger;
  readonly followers: Pick<Followers, 'start'>;
}

/**
 * The process that finds the log altered holds on to the lease, so that others need not find it out again. It reports
 * the alteration until it has found the log whole, even if something else fails or it loses the lease.
 */
export function startTreeKeeper({ records, holder, logger, followers, witnesses, ...options }: TreeKeeperOptions): {
  close(): Promise<void>;
} {
  const deps = { ...options, witnesses: witnesses.map(witnessClient) };
  let lease: Lease | undefined;
  let altered: LogAlteredError | undefined;

  /** @throws LogAlteredError, and what `keepTree` throws before it has judged the log */
  async function keepWhileHeld(held: Lease, health: FollowerRun): Promise<void> {
    const signal = AbortSignal.any([health.signal, held.lost]);
    const whole = (): void => void (altered = undefined);
    try {
      await keepTree(deps, held, {
        signal,
        well: () => {
          whole();
          health.well();
        },
        onTrouble: (error) => {
          whole();
          health.onTrouble(error);
        },
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof LogAlteredError) altered = error;
      else if (altered !== undefined) logger.warn({ err: error }, 'the altered log was not read again');
      throw altered ?? error;
    }
  }

  async function release(): Promise<void> {
    await lease?.release();
    lease = undefined;
  }

  const follower = followers.start(
    TREE_PART,
    async (health) => {
      while (!health.signal.aborted) {
        if (lease?.held === false) await release();
        lease ??= await acquireLease(records, TREE_LEASE, {
          holder,
          signal: health.signal,
          logger,
          onHeld: () => altered === undefined && health.well(),
          onTrouble: (error) => error !== undefined && health.onTrouble(altered ?? error),
        });
        if (lease === undefined) return;
        try {
          await keepWhileHeld(lease, health);
        } finally {
          if (altered === undefined) await release();
        }
      }
    },
    { restartMs: RESTART_MS, aside: true },
  );
  return {
    async close() {
      await follower.close();
      await release();
    },
  };
}

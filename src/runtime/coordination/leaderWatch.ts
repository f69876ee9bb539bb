/** Every process reports a missing leader, since the processes that could lead may be dead. */
import { everyBeats } from '../../lib/async/beats.js';
import { systemMs, ticks } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import { leaseState } from './lease.js';

const POLL_MS = 1_000;
/** Milliseconds after which a leader counts as missing; a standby takes over from a dead leader within 3.5 s. */
const NO_LEADER_MS = 10_000;

export interface LeaderWatch<N extends string> {
  /** Time of the last renewal or release, if no process leads; `undefined`: a process leads, or it is not known yet. */
  noLeaderSince(name: N): Date | undefined;
  /**
   * How often a process has taken the lead since the watch began: another process, or the same one again after a loss.
   */
  changes(name: N): number;
  close(): Promise<void>;
}

/**
 * Lease record as last read; `version` 0: no record. `since`: `ticks()` at the first read of this version.
 */
interface Observation {
  readonly version: number;
  readonly since: number;
  readonly fence: number;
  readonly changes: number;
  /** Time of the last renewal or release by the holder's own clock; for people only. */
  readonly at: Date;
}

export function watchLeaders<N extends string>(
  records: Records,
  names: readonly N[],
  noLeaderMs = NO_LEADER_MS,
): LeaderWatch<N> {
  const observed = new Map<N, Observation>();
  let looking: Promise<void> | undefined;

  async function poll(): Promise<void> {
    for (const name of names) {
      const state = await leaseState(records, name);
      const { version = 0, fence = 0 } = state ?? {};
      const before = observed.get(name);
      if (before?.version === version) continue;
      observed.set(name, {
        version,
        fence,
        // A lower fence means that the records were lost.
        changes: before === undefined ? 0 : before.changes + Math.max(0, fence - before.fence),
        since: ticks(),
        at: state?.at === undefined ? new Date(systemMs()) : new Date(state.at),
      });
    }
  }

  const start = (): void => {
    // Readiness reports a read store that does not answer; the known lease states remain in use.
    looking ??= poll()
      .catch(() => undefined)
      .finally(() => (looking = undefined));
  };
  start();
  const stop = everyBeats(POLL_MS, start);
  return {
    noLeaderSince(name) {
      const last = observed.get(name);
      return last === undefined || ticks() - last.since < noLeaderMs ? undefined : last.at;
    },
    changes: (name) => observed.get(name)?.changes ?? 0,
    async close() {
      stop();
      await looking;
    },
  };
}

/** Every process reports a missing leader, since the processes that could lead may be dead. */
import type { Records } from '../../ports/readStore.js';
import { leaseState } from './lease.js';

const LOOK_MS = 1_000;
/** A standby takes over from a dead leader within 3.5 s. */
const NO_LEADER_MS = 10_000;

export interface LeaderWatch<N extends string> {
  /** `undefined`: a process leads, or it is not known yet. */
  noLeaderSince(name: N): Date | undefined;
  close(): Promise<void>;
}

/** `version` 0: no lease record. `since`: first sight of this version. */
interface Observation {
  readonly version: number;
  readonly since: number;
  /** By the holder's own clock; for people only. */
  readonly at: Date;
}

export function watchLeaders<N extends string>(
  records: Records,
  names: readonly N[],
  noLeaderMs = NO_LEADER_MS,
): LeaderWatch<N> {
  const observed = new Map<N, Observation>();
  let looking: Promise<void> | undefined;

  async function look(): Promise<void> {
    for (const name of names) {
      const state = await leaseState(records, name);
      const version = state?.version ?? 0;
      if (observed.get(name)?.version === version) continue;
      observed.set(name, {
        version,
        since: performance.now(),
        at: state?.at === undefined ? new Date() : new Date(state.at),
      });
    }
  }

  const start = (): void => {
    // Readiness reports a read store that does not answer; the known lease states stay.
    looking ??= look()
      .catch(() => undefined)
      .finally(() => (looking = undefined));
  };
  start();
  const timer = setInterval(start, LOOK_MS).unref();
  return {
    noLeaderSince(name) {
      const last = observed.get(name);
      return last === undefined || performance.now() - last.since < noLeaderMs ? undefined : last.at;
    },
    async close() {
      clearInterval(timer);
      await looking;
    },
  };
}

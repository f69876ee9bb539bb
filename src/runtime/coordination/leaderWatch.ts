/**
 * Watches whether any process leads: every process reports it, in readiness and metrics, also where those that would lead
 * are dead.
 */
import type { Records } from '../../ports/readStore.js';
import { leaseState } from './lease.js';

const LOOK_MS = 1_000;
/** A lease that was not renewed for so long, in ms, has no leader. A leader that dies is followed within 3.5 s. */
const NOBODY_MS = 10_000;

export interface LeaderWatch<N extends string> {
  /** Since when no process leads; `undefined`: one does, or it is not known yet. */
  noLeaderSince(name: N): Date | undefined;
  close(): Promise<void>;
}

/** A lease as it was last seen: its version (0: there is none), and since when it has not changed. */
interface Observation {
  readonly version: number;
  readonly since: number;
  /** When it was renewed or given up, by the clock of that process: for people. */
  readonly at: Date;
}

/** `nobodyMs`: default 10 s. */
export function watchLeaders<N extends string>(
  records: Records,
  names: readonly N[],
  nobodyMs = NOBODY_MS,
): LeaderWatch<N> {
  const seen = new Map<N, Observation>();
  let looking: Promise<void> | undefined;

  async function look(): Promise<void> {
    for (const name of names) {
      const state = await leaseState(records, name);
      const version = state?.version ?? 0;
      if (seen.get(name)?.version === version) continue;
      seen.set(name, {
        version,
        since: performance.now(),
        at: state?.at === undefined ? new Date() : new Date(state.at),
      });
    }
  }

  const start = (): void => {
    // A read store that does not answer is reported elsewhere; what is known of leases stands meanwhile.
    looking ??= look()
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => (looking = undefined));
  };
  start();
  const timer = setInterval(start, LOOK_MS).unref();
  return {
    noLeaderSince(name) {
      const last = seen.get(name);
      return last === undefined || performance.now() - last.since < nobodyMs ? undefined : last.at;
    },
    async close() {
      clearInterval(timer);
      await looking;
    },
  };
}

/** Samples leases and positions: two of them show rates, and which processes are alive. */
import { endTimer, every, sleep, ticks, type Timer } from '../../lib/world.js';
import type { Position } from '../../ports/eventStore.js';
import { storedPosition, type StoredPosition } from '../../ports/storedPosition.js';
import { PROCESS_LEASE, storedProcessPosition } from '../../processors/runner/index.js';
import { orphans, type Projection } from '../../runtime/readmodels/index.js';
import { leaseState, type LeaseState } from '../../runtime/coordination/index.js';
import { buildPosition, modelBuilds, type StatusEngines } from './buildStatus.js';
import type { OwnParts } from './failingParts.js';
import type { LastHolder } from './status.js';

/** Milliseconds between two samples: longer than the second in which a live process renews its lease. */
const APART_MS = 1_600;
/** Age in ms above which a sample is dropped: a process may have died since. */
const OLD_MS = 3_000;
/** Milliseconds for which samples go on after a request, so that the next request need not wait. */
const WATCHED_MS = 60_000;
const SAMPLE_MS = 1_000;

interface StatusSample {
  /** Time of the sample, as `ticks()`. */
  readonly at: number;
  /** Stored positions that are in the log, by read model and `PROCESS_LEASE`. */
  readonly positions: ReadonlyMap<string, Position | undefined>;
  /** Stored positions that are not in the log, by the same names. */
  readonly invalid: ReadonlyMap<string, string>;
  readonly leases: ReadonlyMap<string, LeaseState | undefined>;
}

export interface StatusSamples {
  readonly seen: StatusSample;
  readonly was: StatusSample;
}

interface StatusSampler {
  two(): Promise<StatusSamples>;
  close(): Promise<void>;
}

export interface StatusOptions extends StatusEngines {
  readonly projections: readonly Projection[];
  /** Failing parts of this process; absent outside of the service's processes. */
  readonly own?: OwnParts;
}

export function statusSampler({ events, store, projections }: StatusOptions): StatusSampler {
  const leaseNames = ['projector', PROCESS_LEASE, ...projections.map(({ name }) => `rebuild/${name}`)];
  let samples: StatusSample[] = [];
  let watched: { readonly timer: Timer; until: number } | undefined;
  let underWay: Promise<void> = Promise.resolve();

  function keep(one: StatusSample): void {
    const now = ticks();
    samples = [...samples.filter(({ at }) => now - at <= OLD_MS), one];
  }

  function unwatch(): void {
    endTimer(watched?.timer);
    watched = undefined;
  }

  function watch(): void {
    const until = ticks() + WATCHED_MS;
    if (watched !== undefined) {
      watched.until = until;
      return;
    }
    const timer = every(SAMPLE_MS, () => {
      if (watched === undefined || ticks() > watched.until) unwatch();
      // A failed sample is ignored, since the next request meets the same error.
      else underWay = sample().then(keep, () => undefined);
    });
    timer.unref();
    watched = { timer, until };
  }

  async function sample(): Promise<StatusSample> {
    const positions = new Map<string, Position | undefined>();
    const invalid = new Map<string, string>();
    const note = (name: string, stored: StoredPosition): void => {
      positions.set(name, stored.position);
      if (stored.invalid !== null) invalid.set(name, stored.invalid);
    };
    const keepers: string[] = [];
    for (const projection of projections) {
      const { name } = projection;
      const { own, other } = await modelBuilds(store, projection);
      note(name, await buildPosition({ events, store }, name, own));
      if (other !== undefined) keepers.push(orphans.keeperLease(name, other));
    }
    note(PROCESS_LEASE, await storedPosition(events, await storedProcessPosition(store.records, events.logId)));
    const leases = new Map(
      await Promise.all(
        [...leaseNames, ...keepers].map(async (name) => [name, await leaseState(store.records, name)] as const),
      ),
    );
    return { at: ticks(), positions, invalid, leases };
  }

  return {
    async two() {
      watch();
      const now = ticks();
      let was = samples.findLast(({ at }) => now - at >= APART_MS && now - at <= OLD_MS);
      if (was === undefined) {
        was = await sample();
        await sleep(APART_MS);
      }
      return { seen: await sample(), was };
    },
    async close() {
      unwatch();
      await underWay;
    },
  };
}

/** The process that renewed a lease between the samples; null: none. */
export function holderOf(name: string, { seen, was }: StatusSamples): string | null {
  const [now, then] = [seen.leases.get(name), was.leases.get(name)];
  return now === undefined || now.holder === null || now.version === then?.version ? null : now.holder;
}

/** The process that lost a lease; null where a process has it or released it, or none ever had it. */
export function lastHolderOf(name: string, samples: StatusSamples): LastHolder | null {
  const last = samples.seen.leases.get(name);
  if (last === undefined || last.holder === null || holderOf(name, samples) !== null) return null;
  return { process: last.holder, since: last.at ?? null, lives: last.lives ?? null };
}

/** Samples who works and how far it is: two of them, some time apart, tell who is alive and how fast things go. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventStore, Position } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { storedPosition } from '../../ports/storedPosition.js';
import { PROCESS_CHECKPOINT, type ProcessCheckpoint } from '../../processors/runner/checkpoint.js';
import { PROCESS_LEASE } from '../../processors/runner/run.js';
import { checkpointName, type Projection } from '../../runtime/readmodels/projection.js';
import { keptBuild } from '../../runtime/readmodels/builds.js';
import { leaseState, type LeaseState } from '../../runtime/coordination/lease.js';
import { keeperLease } from '../../runtime/readmodels/orphanedModels.js';
import type { OwnParts } from './failingParts.js';
import type { LastHolder } from './status.js';

/** Two samples so far apart tell who is alive (a lease is renewed once a second) and how fast things go, in ms. */
const APART_MS = 1_600;
/** An older sample tells nothing any more: who was alive then may have died since, and must not look alive. In ms. */
const OLD_MS = 3_000;
/**
 * Somebody who has looked will look again: for so long samples are had every second, so that the next look need not
 * wait. In ms.
 */
const WATCHED_MS = 60_000;
const SAMPLE_MS = 1_000;

/** What one sample has found. */
interface StatusSample {
  /** As `performance.now()` counts. */
  readonly at: number;
  /** By name of projection, and `PROCESS_LEASE`: what is stored, as far as it counts. */
  readonly positions: ReadonlyMap<string, Position | undefined>;
  /**
   * What is stored there in place of a position, by the same names, where it is no place in the log: it counts as
   * absent.
   */
  readonly invalid: ReadonlyMap<string, string>;
  /** By name of lease. */
  readonly leases: ReadonlyMap<string, LeaseState | undefined>;
}

/** The newest sample, and one some time before it. */
export interface StatusSamples {
  readonly seen: StatusSample;
  readonly was: StatusSample;
}

/** Takes samples. */
export interface StatusSampler {
  /**
   * A new one, and one before; takes two seconds unless somebody has looked within the last minute. @throws
   * UnavailableError
   */
  two(): Promise<StatusSamples>;
  close(): Promise<void>;
}

/** What is looked at. */
export interface StatusOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly projections: readonly Projection[];
  /** The followers of the process that looks, where it is one of the service. */
  readonly own?: OwnParts;
}

/** Makes ready to look. */
export function statusSampler({ events, store, projections }: StatusOptions): StatusSampler {
  const leaseNames = ['projector', PROCESS_LEASE, ...projections.map(({ name }) => `rebuild/${name}`)];
  let samples: StatusSample[] = [];
  let watched: { readonly timer: NodeJS.Timeout; until: number } | undefined;
  let underWay: Promise<void> = Promise.resolve();

  function keep(one: StatusSample): void {
    const now = performance.now();
    samples = [...samples.filter(({ at }) => now - at <= OLD_MS), one];
  }

  function unwatch(): void {
    clearInterval(watched?.timer);
    watched = undefined;
  }

  function watch(): void {
    const until = performance.now() + WATCHED_MS;
    if (watched !== undefined) {
      watched.until = until;
      return;
    }
    const timer = setInterval(() => {
      if (watched === undefined || performance.now() > watched.until) unwatch();
      // An engine that does not answer is met by whoever looks.
      else underWay = sample().then(keep, () => undefined);
    }, SAMPLE_MS);
    timer.unref();
    watched = { timer, until };
  }

  async function sample(): Promise<StatusSample> {
    const positions = new Map<string, Position | undefined>();
    const invalid = new Map<string, string>();
    const note = async (name: string, stored: unknown): Promise<void> => {
      const found = await storedPosition(events, stored);
      positions.set(name, found.position);
      if (found.invalid !== null) invalid.set(name, found.invalid);
    };
    const keepers: string[] = [];
    for (const projection of projections) {
      const { name } = projection;
      const active = await store.active(name);
      const kept = await keptBuild(store, projection, active);
      await note(name, await store.checkpoint(checkpointName(kept)));
      if (active !== undefined && active !== kept.version) keepers.push(keeperLease(name, active));
    }
    await note(PROCESS_LEASE, await processCheckpoint());
    const leases = new Map(
      await Promise.all(
        [...leaseNames, ...keepers].map(async (name) => [name, await leaseState(store.records, name)] as const),
      ),
    );
    return { at: performance.now(), positions, invalid, leases };
  }

  async function processCheckpoint(): Promise<unknown> {
    const kept = (await store.records.get<Partial<ProcessCheckpoint>>(PROCESS_CHECKPOINT))?.value;
    return kept?.logId === events.logId ? kept?.position : undefined;
  }

  return {
    async two() {
      watch();
      const now = performance.now();
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

/** Who has a lease: only if it was renewed in between; null: nobody. */
export function holderOf(name: string, { seen, was }: StatusSamples): string | null {
  const [now, then] = [seen.leases.get(name), was.leases.get(name)];
  return now === undefined || now.holder === null || now.version === then?.version ? null : now.holder;
}

/** Who had a lease last that nobody has; null: somebody has it, gave it up, or nobody ever had it. */
export function lastHolderOf(name: string, samples: StatusSamples): LastHolder | null {
  const last = samples.seen.leases.get(name);
  if (last === undefined || last.holder === null || holderOf(name, samples) !== null) return null;
  return { process: last.holder, since: last.at ?? null, lives: last.lives ?? null };
}

/** Glances at who works and how far it is: two of them, some time apart, tell who is alive and how fast things go. */
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

/** Two glances so far apart tell who is alive (a lease is renewed once a second) and how fast things go, in ms. */
const APART_MS = 1_600;
/** An older glance tells nothing any more: who was alive then may have died since, and must not look alive. In ms. */
const OLD_MS = 3_000;
/**
 * Somebody who has looked will look again: for so long glances are had every second, so that the next look need not
 * wait. In ms.
 */
const WATCHED_MS = 60_000;
const GLANCE_MS = 1_000;

/** What one glance has found. */
interface Glance {
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

/** The newest glance, and one some time before it. */
export interface Glances {
  readonly seen: Glance;
  readonly was: Glance;
}

/** Has glances. */
export interface Glancing {
  /**
   * A new one, and one before; takes two seconds unless somebody has looked within the last minute. @throws
   * UnavailableError
   */
  two(): Promise<Glances>;
  close(): Promise<void>;
}

/** What is looked at. */
export interface StandingsOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly projections: readonly Projection[];
  /** The followers of the process that looks, where it is one of the service. */
  readonly own?: OwnParts;
}

/** Makes ready to look. */
export function glancing({ events, store, projections }: StandingsOptions): Glancing {
  const leaseNames = ['projector', PROCESS_LEASE, ...projections.map(({ name }) => `rebuild/${name}`)];
  let glances: Glance[] = [];
  let watched: { readonly timer: NodeJS.Timeout; until: number } | undefined;
  let underWay: Promise<void> = Promise.resolve();

  function keep(one: Glance): void {
    const now = performance.now();
    glances = [...glances.filter(({ at }) => now - at <= OLD_MS), one];
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
      else underWay = glance().then(keep, () => undefined);
    }, GLANCE_MS);
    timer.unref();
    watched = { timer, until };
  }

  async function glance(): Promise<Glance> {
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
      let was = glances.findLast(({ at }) => now - at >= APART_MS && now - at <= OLD_MS);
      if (was === undefined) {
        was = await glance();
        await sleep(APART_MS);
      }
      return { seen: await glance(), was };
    },
    async close() {
      unwatch();
      await underWay;
    },
  };
}

/** Who has a lease: only if it was renewed in between; null: nobody. */
export function holderOf(name: string, { seen, was }: Glances): string | null {
  const [now, then] = [seen.leases.get(name), was.leases.get(name)];
  return now === undefined || now.holder === null || now.version === then?.version ? null : now.holder;
}

/** Who had a lease last that nobody has; null: somebody has it, gave it up, or nobody ever had it. */
export function lastHolderOf(name: string, glances: Glances): LastHolder | null {
  const last = glances.seen.leases.get(name);
  if (last === undefined || last.holder === null || holderOf(name, glances) !== null) return null;
  return { process: last.holder, since: last.at ?? null, lives: last.lives ?? null };
}

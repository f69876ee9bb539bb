/**
 * Plans the next steps of the leading process, as a pure function: `leader.ts` carries them out and calls it again.
 * docs/read-models.md explains the states of a build.
 */
import type { StoredRecord } from '../../ports/readStore.js';
import { sameVersion } from './buildNumbers.js';
import type { Rebuild } from './rebuildRecord.js';
import type { RepairOrder } from './maintenance/repairOrders.js';
import type { Projection } from './projection.js';
import type { RunningBuild } from './runningBuild.js';

/** What the plan rests on of a build. */
export type PlannedBuild = Readonly<Pick<RunningBuild, 'state' | 'requested' | 'caughtUp' | 'stored' | 'place'>> & {
  readonly projection: Pick<Projection, 'name' | 'version'>;
};

export interface Orders {
  /** Number of the build that readers use, by read model. */
  readonly inUse: ReadonlyMap<string, number | undefined>;
  /** Version that this code makes, by read model. */
  readonly versions: ReadonlyMap<string, number>;
  readonly rebuilds: ReadonlyMap<string, Rebuild>;
  /** Read models with a rebuild that is being opened. */
  readonly opening: ReadonlySet<string>;
  readonly repairs: readonly StoredRecord<RepairOrder>[];
}

export type Step<B> =
  /** Open a finished rebuild's build, and catch it up. */
  | { readonly do: 'open'; readonly name: string; readonly rebuild: Rebuild }
  | { readonly do: 'finish'; readonly name: string; readonly rebuild: Rebuild }
  | { readonly do: 'discard'; readonly name: string; readonly rebuild: Rebuild }
  /** Abort what another release has left: its version is out of use, so none of its processes will finish it. */
  | { readonly do: 'abort'; readonly name: string; readonly rebuild: Rebuild }
  /** Make a rebuild ready again whose swap a process of another release has left unfinished. */
  | { readonly do: 'put back'; readonly name: string; readonly rebuild: Rebuild }
  /** Make a retiring build ready again, for a rollback. */
  | { readonly do: 'bring back'; readonly build: B }
  | { readonly do: 'take out'; readonly build: B }
  /** Note that the build has caught up; readers keep using the build that they use. */
  | { readonly do: 'settle'; readonly build: B }
  | { readonly do: 'swap in'; readonly build: B }
  /** Carry a repair order out, between two turns of the common feed. */
  | { readonly do: 'repair'; readonly build: B; readonly order: StoredRecord<RepairOrder> }
  /** Refuse an order whose position is not in the log; any other order waits until its build reaches the position. */
  | { readonly do: 'check'; readonly order: StoredRecord<RepairOrder> };

/** Rebuilds come first, repairs last. */
export function plan<B extends PlannedBuild>(builds: readonly B[], orders: Orders): Step<B>[] {
  return [
    ...Array.from(orders.rebuilds, ([name, rebuild]) => rebuildStep(builds, orders, name, rebuild)),
    ...builds.map((build) => logEndStep(build, orders)),
    ...orders.repairs.map((order) => repairStep(builds, order)),
  ].filter((step) => step !== undefined);
}

function rebuildStep<B extends PlannedBuild>(
  builds: readonly B[],
  { inUse, versions, opening }: Orders,
  name: string,
  rebuild: Rebuild,
): Step<B> | undefined {
  const { target, state } = rebuild;
  const build = builds.find(({ projection }) => projection.name === name && projection.version === target);
  if (opening.has(name)) return undefined;
  if (state === 'leaving') {
    if (build?.requested !== true) return { do: 'discard', name, rebuild };
    return build.state === 'gone' ? undefined : { do: 'take out', build };
  }
  if (state === 'aborting') return undefined;
  if (state !== 'building' && inUse.get(name) === target) return { do: 'finish', name, rebuild };
  if (!isOwn(versions.get(name), target)) {
    if (state === 'swapping') return { do: 'put back', name, rebuild };
    return isOwn(versions.get(name), inUse.get(name)) ? { do: 'abort', name, rebuild } : undefined;
  }
  if (state === 'building') return undefined;
  if (build === undefined) return { do: 'open', name, rebuild };
  return build.state === 'retiring' ? { do: 'bring back', build } : undefined;
}

const isOwn = (version: number | undefined, number: number | undefined): boolean =>
  version !== undefined && number !== undefined && sameVersion(version, number);

function logEndStep<B extends PlannedBuild>(build: B, { inUse, rebuilds }: Orders): Step<B> | undefined {
  const { projection, state, requested, caughtUp, place } = build;
  if (place !== 'log end' || caughtUp || state === 'gone') return undefined;
  if (requested && rebuilds.get(projection.name)?.state === 'leaving') return undefined;
  // A previous version serves again only if no other build does.
  const stays = state === 'serving' || (state === 'retiring' && inUse.get(projection.name) !== undefined);
  return { do: stays ? 'settle' : 'swap in', build };
}

function repairStep<B extends PlannedBuild>(
  builds: readonly B[],
  order: StoredRecord<RepairOrder>,
): Step<B> | undefined {
  const { name, through } = order.value;
  const build = builds.find(
    ({ projection, state, place }) => projection.name === name && state === 'serving' && place !== 'apart',
  );
  if (build === undefined) return undefined;
  const stands = through === null || (build.stored !== undefined && build.stored >= through);
  return stands ? { do: 'repair', build, order } : { do: 'check', order };
}

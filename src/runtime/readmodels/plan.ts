/**
 * What the leading process does next. Pure: `leader.ts` carries the steps out, and asks again. docs/read-models.md
 * explains the life of a build.
 */
import type { StoredRecord } from '../../ports/readStore.js';
import { sameVersion } from './buildNumbers.js';
import type { Rebuild } from './rebuildRecord.js';
import type { PlannedBuild } from './buildState.js';
import type { RepairOrder } from './maintenance/repairOrders.js';

export interface Orders {
  /** The number of the build that readers use. */
  readonly inUse: ReadonlyMap<string, number | undefined>;
  /** The version that this code makes. */
  readonly versions: ReadonlyMap<string, number>;
  /** Rebuilds and rollbacks under way. */
  readonly rebuilds: ReadonlyMap<string, Rebuild>;
  /** Read models of which a build is being opened for a rebuild. */
  readonly opening: ReadonlySet<string>;
  readonly repairs: readonly StoredRecord<RepairOrder>[];
}

export type Step<B> =
  /** Take a rebuild over: open its build, and catch it up. */
  | { readonly do: 'open'; readonly name: string; readonly rebuild: Rebuild }
  /** End the record of a rebuild that serves by now. */
  | { readonly do: 'finish'; readonly name: string; readonly rebuild: Rebuild }
  /** Drop a rebuild that was aborted, and its record. */
  | { readonly do: 'discard'; readonly name: string; readonly rebuild: Rebuild }
  /** A rollback wants it: ready again. */
  | { readonly do: 'bring back'; readonly build: B }
  /** Keep it up to date no more. */
  | { readonly do: 'take out'; readonly build: B }
  /** It has caught up, and readers stay where they are. */
  | { readonly do: 'settle'; readonly build: B }
  /** It has caught up, and readers are to use it. */
  | { readonly do: 'swap in'; readonly build: B }
  /** Put documents of the serving build in place, between two turns of the common feed. */
  | { readonly do: 'repair'; readonly build: B; readonly order: StoredRecord<RepairOrder> }
  /** Refuse it if it names no place in the log; else it waits until its build stands there. */
  | { readonly do: 'check'; readonly order: StoredRecord<RepairOrder> };

/** What is to be done, as things stand: rebuilds first, then builds at the log's end, then repairs. */
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
  if ((state !== 'ready' && state !== 'swapping') || !isOwn(versions.get(name), target)) return undefined;
  if (inUse.get(name) === target) return { do: 'finish', name, rebuild };
  if (build === undefined) return { do: 'open', name, rebuild };
  return build.state === 'retiring' ? { do: 'bring back', build } : undefined;
}

const isOwn = (version: number | undefined, target: number): boolean =>
  version !== undefined && sameVersion(version, target);

function logEndStep<B extends PlannedBuild>(build: B, { inUse, rebuilds }: Orders): Step<B> | undefined {
  const { projection, state, requested, caughtUp, place } = build;
  if (place !== 'log end' || caughtUp || state === 'gone') return undefined;
  if (requested && rebuilds.get(projection.name)?.state === 'leaving') return undefined;
  // A previous version serves again only where nothing else does.
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

import type { Position } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import type { Projection } from './projection.js';
import { buildOf, foldOf, sameVersion } from './buildNumbers.js';
import { ownBuild } from './ownBuild.js';
import { keptRelease } from './previousBuilds.js';
import { type BuildCheck, emptyIfInvalid } from './invalidBuilds.js';
import { openBuild, type RunningBuild } from './runningBuild.js';

export interface OpenedBuilds {
  readonly builds: RunningBuild[];
  /** The build that readers use, by read model. */
  readonly inUse: Map<string, number | undefined>;
}

/**
 * Opens the build of this code's version of each read model, and that of the previous version if its fold is known: it
 * is in use, or kept for a rollback. Builds with an invalid checkpoint are emptied first.
 * @throws UnavailableError, LeaseLostError
 */
export async function openBuilds(check: BuildCheck, projections: readonly Projection[]): Promise<OpenedBuilds> {
  const chosen = await Promise.all(projections.map((projection) => chooseBuilds(check, projection)));
  const builds = await Promise.all(chosen.flatMap(({ folds }) => folds).map((fold) => openBuild(check.store, fold)));
  for (const build of builds)
    if (build.state !== 'serving' && isPreviousVersion(build, projections)) build.state = 'retiring';
  return { builds, inUse: new Map(chosen.map(({ name, active }) => [name, active])) };
}

export function isPreviousVersion(
  { projection: { name, version } }: RunningBuild,
  projections: readonly Projection[],
): boolean {
  return projections.some((one) => one.name === name && buildOf(version).version < one.version);
}

async function chooseBuilds(
  check: BuildCheck,
  projection: Projection,
): Promise<{ readonly name: string; readonly active: number | undefined; readonly folds: readonly Projection[] }> {
  const { store } = check;
  const { name, version } = projection;
  const used = await store.active(name);
  const active = used === undefined || (await emptyIfInvalid(check, { name, version: used })) ? undefined : used;
  const own = await ownBuild(store, projection, active);
  const other =
    active === undefined || sameVersion(active, version) ? await previousVersion(store, projection) : active;
  const previous = other === undefined ? undefined : foldOf(projection, other);
  const folds = previous === undefined ? [own] : [own, previous];
  for (const fold of folds) if (fold.version !== active) await emptyIfInvalid(check, fold);
  return { name, active, folds };
}

async function previousVersion(store: ReadStore, { name, version }: Projection): Promise<number | undefined> {
  const kept = await keptRelease(store, name, version);
  return kept !== undefined && (await store.versions(name)).includes(kept.number) ? kept.number : undefined;
}

/** Builds grouped by position, the most advanced group first. */
export function groupsByPosition(builds: readonly RunningBuild[]): RunningBuild[][] {
  const groups = new Map<Position, RunningBuild[]>();
  for (const build of builds) {
    const position = build.folded ?? '';
    groups.set(position, [...(groups.get(position) ?? []), build]);
  }
  return [...groups].sort(([a], [b]) => (a < b ? 1 : -1)).map(([, group]) => group);
}

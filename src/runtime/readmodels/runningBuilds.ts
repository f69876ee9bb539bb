/** Which collections the leading projector keeps up to date. */
import type { Position } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import type { Projection } from './projection.js';
import { buildOf, foldOf, keptBuild, keptRelease, sameVersion } from './builds.js';
import { type BuildCheck, emptyIfInvalid } from './invalidBuilds.js';
import { openBuild, type RunningBuild } from './runningBuild.js';

/**
 * Opens a build for each projection: on the build in use where this code filled it, else on the one that will be; and
 * beside it, where its fold is known, one for the previous version: that in use, so that readers miss nothing until the
 * new one is built, or that which is kept for going back. Those that stand at no place in the log are emptied first.
 * @throws UnavailableError, LeaseLostError
 */
export async function openBuilds(check: BuildCheck, projections: readonly Projection[]): Promise<RunningBuild[]> {
  const { store } = check;
  const chosen = await Promise.all(projections.map((projection) => chosenBuilds(check, projection)));
  const opened = await Promise.all(chosen.flat().map((projection) => openBuild(store, projection)));
  for (const build of opened)
    if (isPreviousVersion(build, projections) && build.active !== build.projection.version) build.follows = true;
  return opened;
}

/** Whether this code knows a later version of what the build is filled with. */
export function isPreviousVersion(
  { projection: { name, version } }: RunningBuild,
  projections: readonly Projection[],
): boolean {
  return projections.some((one) => one.name === name && buildOf(version).version < one.version);
}

async function chosenBuilds(check: BuildCheck, projection: Projection): Promise<Projection[]> {
  const { store } = check;
  const { name, version } = projection;
  const used = await store.active(name);
  const active = used === undefined || (await emptyIfInvalid(check, { name, version: used })) ? undefined : used;
  const own = await keptBuild(store, projection, active);
  const beside =
    active === undefined || sameVersion(active, version) ? await previousVersion(store, projection) : active;
  const previous = beside === undefined ? undefined : foldOf(projection, beside);
  const builds = previous === undefined ? [own] : [own, previous];
  for (const build of builds) if (build.version !== active) await emptyIfInvalid(check, build);
  return builds;
}

/** The number of the previous version's collection, where it is kept. */
async function previousVersion(store: ReadStore, { name, version }: Projection): Promise<number | undefined> {
  const kept = await keptRelease(store, name, version);
  return kept !== undefined && (await store.versions(name)).includes(kept.number) ? kept.number : undefined;
}

/** Units that stand at the same place, the most advanced first. */
export function groupsByPosition(opened: readonly RunningBuild[]): RunningBuild[][] {
  const groups = new Map<Position, RunningBuild[]>();
  for (const build of opened) {
    const place = build.folded ?? '';
    const group = groups.get(place);
    if (group === undefined) groups.set(place, [build]);
    else group.push(build);
  }
  return [...groups].sort(([a], [b]) => (a < b ? 1 : -1)).map(([, group]) => group);
}

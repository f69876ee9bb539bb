/** Which collections the leading projector keeps up to date. */
import type { Position } from '../ports/eventStore.js';
import type { ReadStore } from '../ports/readStore.js';
import { asBuild, buildOf, formerOf, rankOf } from './builds.js';
import type { Projection } from './projection.js';
import { openUnit, type Unit } from './unit.js';

/**
 * Opens a unit for each projection: on the build in use where this code filled it, else on the one that will be. Left out are those that a newer version
 * of the same name, in use and run here too, has replaced. @throws UnavailableError
 */
export async function openUnits(store: ReadStore, projections: readonly Projection[]): Promise<Unit[]> {
  const chosen = await Promise.all(
    projections.map(async (projection) => {
      const active = await store.active(projection.name);
      return { projection: asBuild(projection, await numberToKeep(store, projection, active)), active };
    }),
  );
  const kept = chosen.filter(({ projection, active }) => {
    const replaced = active !== undefined && rankOf(active) > rankOf(projection.version);
    return !replaced || !chosen.some((other) => other.projection.name === projection.name && other.projection.version === active);
  });
  return Promise.all(kept.map(({ projection }) => openUnit(store, projection)));
}

/** Of this code's version, the build in use or else the one last in use, or the first. */
async function numberToKeep(store: ReadStore, { name, version }: Projection, active: number | undefined): Promise<number> {
  if (active === undefined || buildOf(active).version === version) return active ?? version;
  const former = await formerOf(store, name);
  return former !== undefined && buildOf(former.number).version === version ? former.number : version;
}

/** Units that stand at the same place, the most advanced first. */
export function groupsByPlace(units: readonly Unit[]): Unit[][] {
  const groups = new Map<Position, Unit[]>();
  for (const unit of units) {
    const place = unit.folded ?? '';
    const group = groups.get(place);
    if (group === undefined) groups.set(place, [unit]);
    else group.push(unit);
  }
  return [...groups].sort(([a], [b]) => (a < b ? 1 : -1)).map(([, group]) => group);
}

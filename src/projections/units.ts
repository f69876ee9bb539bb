/** Which collections the leading projector keeps up to date. */
import type { Position } from '../ports/eventStore.js';
import type { ReadStore } from '../ports/readStore.js';
import { keptBuild, rankOf } from './builds.js';
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
      return { projection: await keptBuild(store, projection, active), active };
    }),
  );
  const kept = chosen.filter(({ projection, active }) => {
    const replaced = active !== undefined && rankOf(active) > rankOf(projection.version);
    return !replaced || !chosen.some((other) => other.projection.name === projection.name && other.projection.version === active);
  });
  return Promise.all(kept.map(({ projection }) => openUnit(store, projection)));
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

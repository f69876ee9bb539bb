/** How projections stand, as status pages, readiness and support see it. */
import type { Position } from '../ports/eventStore.js';
import type { ReadStore } from '../ports/readStore.js';
import { keptBuild } from './builds.js';
import { checkpointName, type Projection } from './projection.js';
import { listQuarantined, type Quarantined } from './quarantine.js';
import type { Unit } from './unit.js';

/** How one projection stands. */
export interface ProjectionStatus {
  readonly projection: string;
  /** The collection's number: see `builds.ts`. */
  readonly version: number;
  /** Everything up to here is in the read store; `undefined`: nothing yet. */
  readonly position: Position | undefined;
  /** Has reached the log's end: in the leading process since it leads, elsewhere ever. */
  readonly caughtUp: boolean;
  /** Whether readers use this version. */
  readonly active: boolean;
  readonly quarantined: readonly Quarantined[];
  /** Whether this process keeps it. */
  readonly leader: boolean;
}

/** How a unit of the leading process stands. */
export function statusOf(unit: Unit): ProjectionStatus {
  const { projection, stored, caughtUp, active, quarantined } = unit;
  return {
    projection: projection.name,
    version: projection.version,
    position: stored,
    caughtUp,
    active: active === projection.version,
    quarantined: [...quarantined],
    leader: true,
  };
}

/** Before anything is known. */
export function unknownStatus({ name, version }: Projection): ProjectionStatus {
  return { projection: name, version, position: undefined, caughtUp: false, active: false, quarantined: [], leader: false };
}

/** How the projections stand by what the read store holds, whichever process keeps them. @throws UnavailableError */
export async function readStatus(store: ReadStore, projections: readonly Projection[]): Promise<ProjectionStatus[]> {
  return Promise.all(
    projections.map(async (one) => {
      const active = await store.active(one.name);
      const projection = await keptBuild(store, one, active);
      const [position, quarantined] = await Promise.all([store.checkpoint(checkpointName(projection)), listQuarantined(store.records, projection)]);
      const current = active === projection.version;
      return { ...unknownStatus(projection), position, caughtUp: current, active: current, quarantined };
    }),
  );
}

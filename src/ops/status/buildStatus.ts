/** The builds of a read model, from the engines alone: for status, readiness and metrics. */
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { storedPosition, type StoredPosition } from '../../ports/storedPosition.js';
import { lagBehind, type LagOptions } from '../../runtime/log/lag.js';
import { checkpointName, ownBuild, type Projection } from '../../runtime/readmodels/index.js';
import { inTenths } from '../../lib/inTenths.js';
import type { LogProgress } from './status.js';

export interface StatusEngines {
  readonly events: EventStore;
  readonly store: ReadStore;
}

interface ModelBuilds {
  /** The build in use; `undefined`: none has ever served. */
  readonly active: number | undefined;
  /** The build of this program's version. */
  readonly own: number;
  /** The build in use, where it is of another release. */
  readonly other: number | undefined;
}

export async function modelBuilds(store: ReadStore, projection: Projection): Promise<ModelBuilds> {
  const active = await store.active(projection.name);
  const { version: own } = await ownBuild(store, projection, active);
  return { active, own, other: active === own ? undefined : active };
}

export async function buildPosition(
  { events, store }: StatusEngines,
  name: string,
  number: number,
): Promise<StoredPosition> {
  return storedPosition(events, await store.checkpoint(checkpointName({ name, version: number })));
}

export async function logProgress(
  events: EventStore,
  { position, invalid }: StoredPosition,
  types: readonly string[],
  bounds?: LagOptions,
): Promise<LogProgress> {
  const lag = await lagBehind(events, position, types, bounds);
  return {
    position: position ?? null,
    invalid_position: invalid,
    lag_events: lag.events,
    lag_exact: lag.whole,
    lag_seconds: lag.seconds === undefined ? null : inTenths(lag.seconds),
  };
}

/** How a projection stands: what is built, what readers use, what is rebuilt and what can be gone back to. */
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { storedPosition } from '../../ports/storedPosition.js';
import { checkpointName, type Projection } from '../../runtime/readmodels/projection.js';
import { type RebuildProgress, lastProgress } from '../../runtime/readmodels/maintenance/progress.js';
import { rate } from '../../runtime/readmodels/maintenance/rate.js';
import { buildOf, keptBuild, keptPreviousBuilds, type Rebuild, rebuildOf } from '../../runtime/readmodels/builds.js';
import { lagBehind } from '../../runtime/log/lag.js';
import { listQuarantined } from '../../runtime/readmodels/quarantine.js';
import { keeperLease, orphanOf } from '../../runtime/readmodels/orphanedModels.js';
import { type StatusSamples, holderOf, lastHolderOf } from './statusSampler.js';
import { COUNT, inTenths, type ReadModelStatus, type RebuildStatus, type ServedBuildStatus } from './status.js';

/** How it stands now. @throws UnavailableError */
export async function readModelStatus(
  events: EventStore,
  store: ReadStore,
  projection: Projection,
  samples: StatusSamples,
): Promise<ReadModelStatus> {
  const { name, types } = projection;
  const { seen, was } = samples;
  const active = await store.active(name);
  const kept = await keptBuild(store, projection, active);
  // What readers use where it is another release's.
  const other = active === kept.version ? undefined : active;
  const position = seen.positions.get(name);
  const [lag, quarantined, rebuild, formers, served, perSecond, begun] = await Promise.all([
    lagBehind(events, position, types, COUNT),
    listQuarantined(store.records, kept),
    rebuildStatus(store, name, samples),
    keptPreviousBuilds(store, name),
    other === undefined ? null : servedStatus(events, store, projection, other, samples),
    rate(events, types, { from: was.positions.get(name), to: position, ms: seen.at - was.at }),
    other === undefined || store.versions(name).then((known) => known.includes(kept.version)),
  ]);
  const { version, build } = buildOf(kept.version);
  const [former = null, formerRelease = null] = formers
    .filter(({ number }) => number !== active)
    .map(({ number, until }) => ({ ...buildOf(number), until: new Date(until).toISOString() }));
  return {
    kind: 'projection',
    name,
    version,
    build,
    in_use: active === kept.version,
    position: position ?? null,
    invalid_position: seen.invalid.get(name) ?? null,
    lag_events: lag.events,
    lag_exact: lag.whole,
    lag_seconds: lag.seconds === undefined ? null : inTenths(lag.seconds),
    per_second: perSecond,
    holder: begun ? holderOf('projector', samples) : null,
    last_holder: lastHolderOf('projector', samples),
    quarantined: quarantined.length,
    rebuild,
    served,
    former,
    former_release: formerRelease,
  };
}

async function servedStatus(
  events: EventStore,
  store: ReadStore,
  { name, types }: Projection,
  number: number,
  samples: StatusSamples,
): Promise<ServedBuildStatus> {
  const [stored, orphan] = await Promise.all([
    store.checkpoint(checkpointName({ name, version: number })),
    orphanOf(store, name),
  ]);
  const { position, invalid } = await storedPosition(events, stored);
  const lag = await lagBehind(events, position, types, COUNT);
  const holder = holderOf(orphan?.number === number ? keeperLease(name, number) : 'projector', samples);
  return {
    ...buildOf(number),
    position: position ?? null,
    invalid_position: invalid,
    lag_events: lag.events,
    lag_exact: lag.whole,
    lag_seconds: lag.seconds === undefined ? null : inTenths(lag.seconds),
    holder,
  };
}

async function rebuildStatus(store: ReadStore, name: string, samples: StatusSamples): Promise<RebuildStatus | null> {
  const rebuild = (await rebuildOf(store, name))?.value;
  if (rebuild === undefined) return null;
  const holder =
    holderOf(`rebuild/${name}`, samples) ?? (rebuild.state === 'building' ? null : holderOf('projector', samples));
  return rebuildShown(rebuild, { progress: (await lastProgress(store, name, rebuild.target))?.progress, holder });
}

/** A rebuild as it is shown. `holder`: who builds; null: nobody does. */
export function rebuildShown(
  { kind, state, target, by, reason, at }: Rebuild,
  { progress, holder }: { readonly progress: RebuildProgress | undefined; readonly holder: string | null },
): RebuildStatus {
  return {
    kind,
    state,
    ...buildOf(target),
    by,
    reason: reason ?? null,
    at,
    holder,
    events: progress?.events ?? null,
    total: progress?.total ?? null,
    per_second: progress === undefined || holder === null ? null : Math.round(progress.perSecond),
    seconds_left: progress?.secondsLeft === undefined || holder === null ? null : inTenths(progress.secondsLeft),
  };
}

import type { ReadStore } from '../../ports/readStore.js';
import {
  buildOf,
  retainedPreviousBuilds,
  listQuarantined,
  maintenance,
  orphans,
  type Progress,
  type Projection,
  type Rebuild,
} from '../../runtime/readmodels/index.js';
import { rate } from './rate.js';
import { buildPosition, logProgress, modelBuilds, type StatusEngines } from './buildStatus.js';
import { COUNT, type ReadModelStatus, type RebuildStatus, type ServedBuildStatus } from './status.js';
import { holderOf, lastHolderOf, type StatusSamples } from './statusSampler.js';

export async function readModelStatus(
  engines: StatusEngines,
  projection: Projection,
  samples: StatusSamples,
): Promise<ReadModelStatus> {
  const { events, store } = engines;
  const { name, types } = projection;
  const { seen, was } = samples;
  const { active, own, other } = await modelBuilds(store, projection);
  const stored = { position: seen.positions.get(name), invalid: seen.invalid.get(name) ?? null };
  const [progress, quarantined, rebuild, retained, served, perSecond, isStarted] = await Promise.all([
    logProgress(events, stored, types, COUNT),
    quarantinedIn(store, name, other === undefined ? [own] : [own, other]),
    rebuildStatus(store, name, samples),
    retainedPreviousBuilds(store, name),
    other === undefined ? null : servedStatus(engines, projection, other, samples),
    rate(events, types, { from: was.positions.get(name), to: stored.position, ms: seen.at - was.at }),
    other === undefined || store.versions(name).then((known) => known.includes(own)),
  ]);
  const [previous = null, previousRelease = null] = retained
    .filter(({ number }) => number !== active)
    .map(({ number, until }) => ({ ...buildOf(number), until: new Date(until).toISOString() }));
  return {
    kind: 'projection',
    name,
    ...buildOf(own),
    in_use: active === own,
    ...progress,
    per_second: perSecond,
    holder: isStarted ? holderOf('projector', samples) : null,
    last_holder: lastHolderOf('projector', samples),
    quarantined,
    rebuild,
    served,
    previous,
    previous_release: previousRelease,
  };
}

/** Number of documents that are quarantined in any of the builds: readers may use that of another release. */
async function quarantinedIn(store: ReadStore, name: string, numbers: readonly number[]): Promise<number> {
  const lists = await Promise.all(numbers.map(async (version) => listQuarantined(store.records, { name, version })));
  return new Set(lists.flat().map(({ documentId, eventId }) => documentId ?? `event ${eventId}`)).size;
}

async function servedStatus(
  engines: StatusEngines,
  { name, types }: Projection,
  number: number,
  samples: StatusSamples,
): Promise<ServedBuildStatus> {
  const [stored, orphan] = await Promise.all([
    buildPosition(engines, name, number),
    orphans.recordOf(engines.store, name),
  ]);
  const progress = await logProgress(engines.events, stored, types, COUNT);
  const holder = holderOf(orphan?.number === number ? orphans.keeperLease(name, number) : 'projector', samples);
  return { ...buildOf(number), ...progress, holder };
}

async function rebuildStatus(store: ReadStore, name: string, samples: StatusSamples): Promise<RebuildStatus | null> {
  const rebuild = (await maintenance.rebuildOf(store, name))?.value;
  if (rebuild === undefined) return null;
  const holder =
    holderOf(`rebuild/${name}`, samples) ?? (rebuild.state === 'building' ? null : holderOf('projector', samples));
  return rebuildShown(rebuild, {
    progress: (await maintenance.lastProgress(store, name, rebuild.target))?.progress,
    holder,
  });
}

export function rebuildShown(
  { kind, state, target, by, reason, at }: Rebuild,
  { progress, holder }: { readonly progress: Progress | undefined; readonly holder: string | null },
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
    per_second: holder === null ? null : (progress?.per_second ?? null),
    seconds_left: holder === null ? null : (progress?.seconds_left ?? null),
  };
}

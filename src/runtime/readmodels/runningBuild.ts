import type { Position } from '../../ports/eventStore.js';
import type { CollectionSpec, ReadStore, StoredDocument } from '../../ports/readStore.js';
import type { BuildState, PlannedBuild } from './buildState.js';
import { documentCache, type DocumentCache } from './documentCache.js';
import { checkpointName, collectionOf, type Projection } from './projection.js';
import { forgetQuarantined, listQuarantined, type Quarantined } from './quarantine.js';

/** Documents held in memory after they were stored; twice as many at most. */
const CACHED_DOCUMENTS = 10_000;

export interface RunningBuild extends PlannedBuild {
  readonly projection: Projection;
  readonly collection: CollectionSpec;
  readonly checkpoint: string;
  readonly types: ReadonlySet<string>;
  readonly creates: ReadonlySet<string>;
  readonly cache: DocumentCache;
  /** Documents that are folded and not yet passed to the store. */
  dirty: Map<string, StoredDocument>;
  writing: Map<string, StoredDocument>;
  folded: Position | undefined;
  stored: Position | undefined;
  /** State of the build, changed by `enter` once the build runs. */
  state: BuildState;
  requested: boolean;
  place: PlannedBuild['place'];
  caughtUp: boolean;
  quarantined: readonly Quarantined[];
  /** Quarantined documents that no record lists yet. */
  unlisted: Quarantined[];
  report?: (quarantined: Quarantined) => void;
}

/**
 * Creates the collection and reads the checkpoint. If no build serves yet, secondary indexes are created after the
 * catch-up, which is faster. Otherwise they exist from the start: creating them later would block other writes.
 */
export async function openBuild(store: ReadStore, projection: Projection): Promise<RunningBuild> {
  const collection = collectionOf(projection);
  const checkpoint = checkpointName(projection);
  const active = await store.active(projection.name);
  const stored = await store.checkpoint(checkpoint);
  await store.ensure(collection, { deferIndexes: active === undefined });
  if (stored === undefined) await forgetQuarantined(store.records, projection);
  return {
    projection,
    collection,
    checkpoint,
    types: new Set(projection.types),
    creates: new Set(projection.creates ?? []),
    cache: documentCache(CACHED_DOCUMENTS, projection.isFinal?.bind(projection)),
    dirty: new Map(),
    writing: new Map(),
    folded: stored,
    stored,
    state: active === projection.version ? 'serving' : 'catching-up',
    requested: false,
    place: 'apart',
    caughtUp: false,
    quarantined: stored === undefined ? [] : await listQuarantined(store.records, projection),
    unlisted: [],
  };
}

export function remembered(build: RunningBuild, id: string): StoredDocument | undefined {
  return build.dirty.get(id) ?? build.writing.get(id) ?? build.cache.get(id);
}

export function dirtyCount(builds: readonly RunningBuild[]): number {
  let count = 0;
  for (const build of builds) count += build.dirty.size;
  return count;
}

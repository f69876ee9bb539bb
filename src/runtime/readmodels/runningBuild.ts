/**
 * One version of one projection as this process runs it: where it stands, and what it has folded but not stored yet.
 */
import type { Position } from '../../ports/eventStore.js';
import type { CollectionSpec, ReadStore, StoredDocument } from '../../ports/readStore.js';
import { checkpointName, collectionOf, type Projection } from './projection.js';
import { documentCache, type DocumentCache } from './documentCache.js';
import { forgetQuarantined, listQuarantined, type Quarantined } from './quarantine.js';

/** Documents of a build that are remembered after they were stored, once it has caught up: twice so many at most. */
const CACHED_DOCUMENTS = 10_000;

/** What `fold`, `writer` and `feed` share about one projection. */
export interface RunningBuild {
  readonly projection: Projection;
  readonly collection: CollectionSpec;
  /** The checkpoint's name: `gifts@1`. */
  readonly checkpoint: string;
  readonly types: ReadonlySet<string>;
  readonly creates: ReadonlySet<string>;
  readonly cache: DocumentCache;
  /** Folded, not yet handed to the store. */
  dirty: Map<string, StoredDocument>;
  /** Being stored. */
  writing: Map<string, StoredDocument>;
  /** Everything up to here is folded. */
  folded: Position | undefined;
  /** The stored checkpoint. */
  stored: Position | undefined;
  /** The version that readers use. */
  active: number | undefined;
  /** A rebuild that is swapped in as soon as it has caught up with the one in use. */
  joins?: true;
  /**
   * Readers are leaving it for another of its name, and must never find it ahead of that one: it is written after all
   * others.
   */
  follows?: boolean;
  /** Has reached the log's end in this process, and its indexes are there. */
  caughtUp: boolean;
  quarantined: readonly Quarantined[];
  /** Those of `quarantined` that are not yet listed in the store. */
  unlisted: Quarantined[];
  /** Told at once of each document taken out of service. */
  report?: (quarantined: Quarantined) => void;
}

/**
 * Makes ready what a projection is written to, and finds where it stands.
 * Where nothing serves yet, secondary indexes are made only once it has caught up: building is faster so. Beside one
 * that serves they are there from the beginning: making them all at once would hold up whatever else is written.
 * @throws UnavailableError
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
    cache: documentCache(CACHED_DOCUMENTS),
    dirty: new Map(),
    writing: new Map(),
    folded: stored,
    stored,
    active,
    caughtUp: false,
    quarantined: stored === undefined ? [] : await listQuarantined(store.records, projection),
    unlisted: [],
  };
}

/** The document as it is known in memory, the newest state first. */
export function remembered(build: RunningBuild, id: string): StoredDocument | undefined {
  return build.dirty.get(id) ?? build.writing.get(id) ?? build.cache.get(id);
}

/** How many documents wait to be stored. */
export function dirtyCount(builds: readonly RunningBuild[]): number {
  let count = 0;
  for (const build of builds) count += build.dirty.size;
  return count;
}

/** A build that runs, its states and their transitions (docs/read-models.md). */
import type { Position } from '../../ports/eventStore.js';
import type { CollectionSpec, ReadStore, StoredDocument, Body } from '../../ports/readStore.js';
import { checkpointName, collectionOf, type Projection } from './projection.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { forgetQuarantined, listQuarantined, type Quarantined, isOutOfService } from './quarantine.js';

/** Documents held in memory after they were stored; twice as many at most. */
const CACHED_DOCUMENTS = 10_000;

/**
 * `catching-up`: has not reached the log's end. `ready`: has reached it, and is to serve. `serving`: readers use it.
 * `retiring`: readers have left it; it is kept up to date for a while. `gone`: leaves its feed.
 */
export type BuildState = 'catching-up' | 'ready' | 'serving' | 'retiring' | 'gone';

export interface RunningBuild {
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
  /** The stored checkpoint. */
  stored: Position | undefined;
  /** State of the build, changed by `enter` once the build runs. */
  state: BuildState;
  /** Whether a rebuild or rollback requested the build, and may still be aborted. */
  requested: boolean;
  /**
   * `apart`: on a feed of its own; `together`: on the common feed; `log end`: nothing is written during the present
   * steps.
   */
  place: 'apart' | 'together' | 'log end';
  /** Whether nothing is left to do for the build at the log's end. */
  caughtUp: boolean;
  quarantined: readonly Quarantined[];
  /** Quarantined documents that no record lists yet. */
  unlisted: Quarantined[];
  report?: (quarantined: Quarantined) => void;
}

const NEXT: Readonly<Record<BuildState, readonly BuildState[]>> = {
  'catching-up': ['ready', 'gone'],
  ready: ['serving', 'gone'],
  serving: ['retiring'],
  // `ready` follows for a rollback, or when no other build serves.
  retiring: ['ready', 'gone'],
  gone: [],
};

/** @throws Error for a transition that is not allowed */
export function enter(build: { state: BuildState; readonly checkpoint: string }, state: BuildState): void {
  if (!NEXT[build.state].includes(state))
    throw new Error(`${build.checkpoint} is ${build.state}: it can't be ${state}`);
  build.state = state;
}

/**
 * Creates the collection and reads the checkpoint. If no build serves yet, secondary indexes are created after the
 * catch-up, which is faster. Otherwise they exist from the start: creating them later would block other writes.
 */
export async function openBuild(store: ReadStore, projection: Projection): Promise<RunningBuild> {
  const collection = collectionOf(projection);
  const checkpoint = checkpointName(projection);
  await store.ensure(collection, { deferIndexes: (await store.active(projection.name)) === undefined });
  // Read after that: a collection that was lost has neither any more.
  const [active, stored] = await Promise.all([store.active(projection.name), store.checkpoint(checkpoint)]);
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

/**
 * Creates what a running build's collection lacks.
 * @throws UnavailableError where the read store has lost the collection: the next checkpoint of the build in memory
 * would say that the new one is complete
 */
export async function ensureCollection(
  store: ReadStore,
  { collection, checkpoint, stored }: RunningBuild,
): Promise<void> {
  await store.ensure(collection);
  if (stored !== undefined && (await store.checkpoint(checkpoint)) === undefined)
    throw new UnavailableError(`the read store has lost the collection of ${checkpoint}: it is filled anew`);
}

export function isRunning(builds: readonly RunningBuild[], name: string, number: number): boolean {
  return builds.some(({ projection }) => projection.name === name && projection.version === number);
}

export function remembered(build: RunningBuild, id: string): StoredDocument | undefined {
  return build.dirty.get(id) ?? build.writing.get(id) ?? build.cache.get(id);
}

export function dirtyCount(builds: readonly RunningBuild[]): number {
  let count = 0;
  for (const build of builds) count += build.dirty.size;
  return count;
}

/** Number of documents above which a map replaces the young generation without a copy. */
const FEW = 1_000;

interface DocumentCache {
  get(id: string): StoredDocument | undefined;
  /** Adds stored documents to the cache, which takes over the map. */
  keep(documents: Map<string, StoredDocument>): void;
  clear(): void;
}

/**
 * Recently stored documents that events may still change, so that these need no read. When the young generation is full
 * it becomes the old one, which is dropped.
 * @param generation documents in one generation
 */
export function documentCache(generation: number, isFinal?: (document: Body) => boolean): DocumentCache {
  let young = new Map<string, StoredDocument>();
  let old = new Map<string, StoredDocument>();

  /** Leaves out documents that are final by now, and removes their outdated states from the cache. */
  function changeable(stored: Map<string, StoredDocument>): Map<string, StoredDocument> {
    if (isFinal === undefined) return stored;
    const kept = new Map<string, StoredDocument>();
    for (const [id, document] of stored)
      if (isOutOfService(document.body) || !isFinal(document.body)) kept.set(id, document);
      else {
        young.delete(id);
        old.delete(id);
      }
    return kept;
  }

  return {
    get: (id) => young.get(id) ?? old.get(id),
    keep(stored) {
      const documents = changeable(stored);
      if (documents.size > FEW || young.size + documents.size > generation) {
        old = young;
        young = documents;
      } else {
        for (const [id, document] of documents) young.set(id, document);
      }
    },
    clear() {
      young = new Map();
      old = new Map();
    },
  };
}

/** Stores folded documents: one write at a time, each with everything folded during the last one. */
import { LOW_PRIORITY_SLICE_MS, slices } from '../../lib/async/slices.js';
import type { ReadStore, StoredDocument, WriteBatch } from '../../ports/readStore.js';
import { MAX_BATCH_BYTES, MAX_BATCH_DOCUMENTS } from '../../ports/readStore.js';
import type { Lease } from '../coordination/index.js';
import { recordQuarantine } from './quarantine.js';
import type { RunningBuild } from './runningBuild.js';

export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
  constructor() {
    super('the projector lease was lost');
  }
}

export interface Writer {
  /** Starts a write, now or after the present one. */
  kick(): void;
  /** Resolves after the present write. */
  turn(): Promise<void>;
  /** Resolves when everything folded so far is stored, or a write has failed. */
  drain(): Promise<void>;
}

/** Makes the writer of one feed. After its first failure, which is passed to `failed`, nothing is stored. */
export function makeWriter(
  builds: readonly RunningBuild[],
  store: ReadStore,
  lease: Pick<Lease, 'held'>,
  failed: (error: unknown) => void,
): Writer {
  let running: Promise<void> | undefined;
  let broken = false;

  function start(): void {
    if (running !== undefined || broken || !builds.some(isPending)) return;
    running = storeBuilds(builds, store, lease).then(
      () => {
        running = undefined;
        start();
      },
      (error: unknown) => {
        running = undefined;
        broken = true;
        failed(error);
      },
    );
  }

  return {
    kick: start,
    turn: async () => running,
    async drain() {
      start();
      while (running !== undefined) await running;
    },
  };
}

function isPending(build: RunningBuild): boolean {
  return build.dirty.size > 0 || build.unlisted.length > 0 || build.folded !== build.stored;
}

async function storeBuilds(
  builds: readonly RunningBuild[],
  store: ReadStore,
  lease: Pick<Lease, 'held'>,
): Promise<void> {
  // Read before any await, since the checkpoint must cover exactly these documents.
  const reached = builds.map((build) => build.folded);
  const unlisted = builds.map((build) => build.unlisted);
  for (const build of builds) {
    build.writing = build.dirty;
    build.dirty = new Map();
    build.unlisted = [];
  }
  // Quarantines are recorded first: once the checkpoint has passed their events, they are never found again.
  for (const [at, build] of builds.entries()) {
    for (const quarantined of unlisted[at] ?? []) await recordQuarantine(store.records, build.projection, quarantined);
  }
  const batches = await batchesOf(builds, reached);
  // Builds that readers are leaving come last, so that readers who change over never see older documents.
  const served = new Set(builds.filter(({ state }) => state === 'serving').map(({ collection }) => collection));
  for (const own of [
    batches.filter(({ collection }) => served.has(collection)),
    batches.filter(({ collection }) => !served.has(collection)),
  ]) {
    if (own.length === 0) continue;
    if (!lease.held) throw new LeaseLostError();
    await store.write(own);
  }
  for (const [at, build] of builds.entries()) {
    build.stored = reached[at];
    build.cache.keep(build.writing);
    build.writing = new Map();
  }
}

async function batchesOf(
  builds: readonly RunningBuild[],
  reached: readonly RunningBuild['folded'][],
): Promise<WriteBatch[]> {
  const time = slices(LOW_PRIORITY_SLICE_MS);
  const batches: WriteBatch[] = [];
  for (const [at, { collection, checkpoint: projection, stored, writing }] of builds.entries()) {
    let documents: StoredDocument[] = [];
    let bytes = 0;
    for (const document of writing.values()) {
      const size = atMostBytes(document.body);
      if (documents.length === MAX_BATCH_DOCUMENTS || (documents.length > 0 && bytes + size > MAX_BATCH_BYTES)) {
        batches.push({ collection, documents });
        documents = [];
        bytes = 0;
        if (time.due()) await time.rest();
      }
      documents.push(document);
      bytes += size;
    }
    const position = reached[at];
    const checkpoint = position === undefined || position === stored ? {} : { checkpoint: { projection, position } };
    if (documents.length > 0 || 'checkpoint' in checkpoint) batches.push({ collection, documents, ...checkpoint });
  }
  return batches;
}

/** An upper bound of the JSON's bytes without making it: a character may take six (`\u0000`). */
export function atMostBytes(value: unknown): number {
  if (typeof value === 'string') return value.length * 6 + 2;
  if (typeof value !== 'object' || value === null) return 26;
  let bytes = 2;
  if (Array.isArray(value)) {
    for (const item of value) bytes += atMostBytes(item) + 1;
    return bytes;
  }
  for (const key in value) bytes += key.length * 6 + 4 + atMostBytes((value as Record<string, unknown>)[key]);
  return bytes;
}

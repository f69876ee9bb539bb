/** Stores what units have folded: one write at a time, each with everything that has come up during the one before. */
import { BESIDE_SLICE_MS, slices } from '../../lib/async/slices.js';
import type { ReadStore, StoredDocument, WriteBatch } from '../../ports/readStore.js';
import { MAX_BATCH_BYTES, MAX_BATCH_DOCUMENTS } from '../../ports/readStore.js';
import type { Lease } from '../coordination/lease.js';
import { recordQuarantine } from './quarantine.js';
import type { Unit } from './runningBuild.js';

/** The lease is another's: nothing more may be written. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
  constructor() {
    super('the projector lease was lost');
  }
}

/** The storing side of a feed. */
export interface Writer {
  /** Sees to it that everything folded so far is stored soon: now, or right after the write under way. */
  kick(): void;
  /** Resolves when the write under way, if any, has ended. */
  turn(): Promise<void>;
  /** Resolves when everything folded so far is stored, or storing has failed. */
  drain(): Promise<void>;
}

/**
 * Makes a writer for the units. A failure ends it: `failed` is called once, nothing is stored after it, and what was
 * folded is to be thrown away.
 */
export function makeWriter(
  units: readonly Unit[],
  store: ReadStore,
  lease: Pick<Lease, 'held'>,
  failed: (error: unknown) => void,
): Writer {
  let running: Promise<void> | undefined;
  let broken = false;

  function start(): void {
    if (running !== undefined || broken || !units.some(isPending)) return;
    running = storeUnits(units, store, lease).then(
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

function isPending(unit: Unit): boolean {
  return unit.dirty.size > 0 || unit.unlisted.length > 0 || unit.folded !== unit.stored;
}

async function storeUnits(units: readonly Unit[], store: ReadStore, lease: Pick<Lease, 'held'>): Promise<void> {
  // Taken together, before anything is awaited: the checkpoint covers exactly what is in these documents.
  const reached = units.map((unit) => unit.folded);
  const unlisted = units.map((unit) => unit.unlisted);
  for (const unit of units) {
    unit.writing = unit.dirty;
    unit.dirty = new Map();
    unit.unlisted = [];
  }
  // Listed first: once the checkpoint has passed the event, nobody would find it again.
  for (const [at, unit] of units.entries()) {
    for (const quarantined of unlisted[at] ?? []) await recordQuarantine(store.records, unit.projection, quarantined);
  }
  const batches = await batchesOf(units, reached);
  const left = new Set(units.filter((unit) => unit.follows === true).map((unit) => unit.collection));
  for (const own of [
    batches.filter(({ collection }) => !left.has(collection)),
    batches.filter(({ collection }) => left.has(collection)),
  ]) {
    if (own.length === 0) continue;
    if (!lease.held) throw new LeaseLostError();
    await store.write(own);
  }
  for (const [at, unit] of units.entries()) {
    unit.stored = reached[at];
    unit.cache.keep(unit.writing);
    unit.writing = new Map();
  }
}

/** All batches of one write, each unit's checkpoint with the last of its documents. */
async function batchesOf(units: readonly Unit[], reached: readonly Unit['folded'][]): Promise<WriteBatch[]> {
  const time = slices(BESIDE_SLICE_MS);
  const batches: WriteBatch[] = [];
  for (const [at, { collection, checkpoint: projection, stored, writing }] of units.entries()) {
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

/** A bound of a value's JSON in bytes, without making it: a character may take six (`\u0000`). */
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

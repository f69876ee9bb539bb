/**
 * VerifyLog: holds every event of a log against every head that was signed over it, and against the tiles that were kept
 * of it. It reads the log once, in constant memory, and changes nothing.
 */
import { LOW_PRIORITY_SLICE_MS, slices } from '../../lib/async/slices.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { MalformedEvidenceError } from '../../runtime/evidence/errors.js';
import { tileHashReader } from '../../runtime/evidence/tiles.js';
import { TreeBuilder } from '../../runtime/evidence/treeBuilder.js';
import { rootAt } from '../../runtime/evidence/treeProofs.js';
import type { TileFolder } from '../../runtime/tree/tileFolder.js';
import { HeadChecks } from './headChecks.js';
import type { VerifiersOf } from './headKeys.js';
import { type HeadToCheck, headsInLog, headToCheck, type KeptHead } from './headsToCheck.js';
import { keptLeaves } from './keptLeaves.js';
import { leafBatches } from './leafBatches.js';
import { NO_LEAF } from './leafMessages.js';
import type { LeafThread } from './leafThread.js';
import type { Leaves } from './leaves.js';
import { type Differing, TileComparison } from './tileComparison.js';
import {
  type EventPlace,
  FindingsList,
  type FirstDifference,
  type Gap,
  type PlacedEvent,
  placeOf,
  type Verification,
} from './verification.js';

const BATCH = 1_000;
const NO_RULES = { hash: () => NO_LEAF, hashTexts: () => NO_LEAF };

export interface VerifyDeps {
  /** As stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'engine' | 'readAll' | 'readTexts'>;
  /** `undefined`: the log does not hold their rules. */
  readonly leaves: Pick<Leaves, 'hash' | 'hashTexts'> | undefined;
  /** Hashes a part of the leaves. */
  readonly thread?: LeafThread | undefined;
  readonly folder: Pick<TileFolder, 'read' | 'head'>;
  readonly verifiersOf: VerifiersOf;
  /** Heads that were kept elsewhere. */
  readonly kept: readonly KeptHead[];
  /** What witnesses have cosigned last. */
  readonly witnessed?: readonly HeadToCheck[];
}

export interface VerifyOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((events: number, position: Position) => void) | undefined;
}

/**
 * The service may go on while it is verified.
 * @throws MalformedEvidenceError for a kept head that is none; UnavailableError, the file system's errors, the signal's
 * reason
 */
export async function verifyLog(deps: VerifyDeps, { signal, onProgress }: VerifyOptions = {}): Promise<Verification> {
  const { stored, leaves, thread, folder, verifiersOf } = deps;
  const outside = await headsOutside(deps);
  const heads = new HeadChecks(headsInLog(stored, verifiersOf), outside);
  const size = Math.max(0, ...outside.map((head) => head.size));
  const comparison = new TileComparison(keptLeaves(folder, size));
  const gaps = new FindingsList<Gap>();
  const tree = new TreeBuilder();
  let last: PlacedEvent | null = null;

  const look = (event: PlacedEvent, leaf: Buffer): void | Promise<void> => {
    const before = last;
    last = event;
    tree.append(leaf);
    if (stored.engine === 'embedded' && Number(event.position) !== Number(before?.position ?? 0) + 1)
      gaps.add({ after: before?.position ?? null, event: placeOf(event, tree.size) });
    return leaves === undefined ? undefined : comparison.compare(leaf, tree.size, event, before);
  };
  const end = (): EventPlace | null => (last === null ? null : placeOf(last, tree.size));

  // A service that verifies its own log answers meanwhile.
  const time = slices(LOW_PRIORITY_SLICE_MS);
  try {
    await heads.check(tree);
    for await (const batch of leafBatches({ stored, leaves: leaves ?? NO_RULES, thread }, undefined, {
      batchSize: BATCH,
      signal,
    })) {
      for (const [index, event] of batch.events.entries()) {
        const looking = look(event, batch.hash(index));
        if (looking !== undefined) await looking;
        if (tree.size >= heads.nextSize) await heads.check(tree);
        if (time.due()) await time.rest();
      }
      onProgress?.(tree.size, batch.position);
    }
    signal?.throwIfAborted();
    await heads.finish(tree, end()?.position);
  } finally {
    await heads.close();
  }

  const differing = leaves === undefined ? undefined : await comparison.finish(end());
  const spoilt = differing !== undefined && !(await tilesAreRight(folder, differing, heads));
  const difference =
    leaves === undefined ? withoutStart(heads, end()) : firstDifference(spoilt ? undefined : differing, heads, end());
  return {
    agrees: difference === null && heads.wrong.found === 0 && gaps.found === 0 && !spoilt,
    events: tree.size,
    position: end()?.position ?? null,
    root: tree.root().toString('base64'),
    heads: heads.heads,
    verified_heads: heads.verified,
    unverified_heads: heads.unverified,
    agreed_size: heads.agreed,
    difference,
    wrong_heads: { found: heads.wrong.found, first: heads.wrong.first },
    gaps: { found: gaps.found, first: gaps.first },
    spoilt_tiles: spoilt,
  };
}

async function headsOutside({ folder, kept, witnessed = [], verifiersOf }: VerifyDeps): Promise<HeadToCheck[]> {
  const published = await folder.head();
  const all = [
    ...kept,
    ...(published === undefined ? [] : [{ from: 'the head that was published last', note: published }]),
  ];
  return [...all.map((head) => headToCheck(head, verifiersOf)), ...witnessed];
}

/** Whether the tiles, where they differ from the log, are what was signed; also where no head covers the difference. */
async function tilesAreRight(
  folder: Pick<TileFolder, 'read'>,
  { number }: Differing,
  heads: HeadChecks,
): Promise<boolean> {
  if (number <= heads.agreed) return false;
  const wrong = heads.firstWrong;
  return (
    wrong === undefined || wrong.size < number || (await rootOfTiles(folder, wrong.size))?.equals(wrong.root) === true
  );
}

/** `undefined`: a tile is missing or cut short. */
async function rootOfTiles(folder: Pick<TileFolder, 'read'>, size: number): Promise<Buffer | undefined> {
  const read = tileHashReader(async (tile) => (await folder.read(tile)) ?? Buffer.alloc(0), size);
  try {
    return await rootAt(read, size);
  } catch (error) {
    if (error instanceof MalformedEvidenceError) return undefined;
    throw error;
  }
}

/** A log without heads has none to have lost. */
function withoutStart({ heads, largest }: HeadChecks, last: EventPlace | null): FirstDifference | null {
  const events = last?.number ?? 0;
  if (heads === 0) return null;
  if (largest > events)
    return { change: 'cut off', count: largest - events, number: events + 1, event: null, before: last, signed: true };
  return { change: 'start missing', count: 1, number: 0, event: null, before: null, signed: true };
}

function firstDifference(
  differing: Differing | undefined,
  heads: HeadChecks,
  last: EventPlace | null,
): FirstDifference | null {
  const { firstWrong: wrong, agreed, largest } = heads;
  const events = last?.number ?? 0;
  if (differing !== undefined && (wrong === undefined || differing.number <= wrong.size)) {
    const { change, count } = differing;
    const missing = change === 'cut off' ? Math.max(count, largest - events) : count;
    return { ...differing, count: missing, signed: differing.number <= largest };
  }
  if (wrong === undefined) return null;
  if (wrong.size > events)
    return { change: 'cut off', count: largest - events, number: events + 1, event: null, before: last, signed: true };
  return { change: 'unknown', count: wrong.size - agreed, number: agreed + 1, event: null, before: null, signed: true };
}

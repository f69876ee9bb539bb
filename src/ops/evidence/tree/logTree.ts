/**
 * The Merkle tree over a log, one leaf an event in log order (docs/evidence.md#leaves). It continues from the tiles in
 * its folder, and is built again from the log where they are missing or corrupted. Tiles are stored only for a log that
 * agrees with its last signed head.
 */
import { LOW_PRIORITY_SLICE_MS, slices } from '../../../lib/async/slices.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import { PublicReasonError } from '../../../runtime/supervision/followers.js';
import { hashPerfect, type HashReader, rootAt, type TreeHead } from '../format/merkleTree.js';
import { HASH_BYTES, noneIfMalformed } from '../format/parsing.js';
import { TILE_WIDTH, tileHashReader, tileWidthAt, TreeBuilder } from '../format/tiles.js';
import { type LeafBatch, leafBatches, NO_LEAF } from './leafBatches.js';
import type { Leaves } from './leaves.js';
import type { TileFolder, TileHashes } from './tileFolder.js';

const BATCH = 1_000;

/** The log agrees with its signed head, but its tiles did not: they have been removed, and the tree is void. */
class SpoiltTilesError extends Error {
  override readonly name = 'SpoiltTilesError';
}

interface LogTreeDeps {
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'readAll' | 'readTexts' | 'reaches'>;
  readonly folder: TileFolder;
  readonly leaves: Pick<Leaves, 'hash' | 'hashTexts'>;
}

export interface LogTree {
  readonly size: number;
  /** Position of the last event in the tree. */
  readonly position: Position | undefined;
  root(): Buffer;
  partialTiles(): readonly TileHashes[];
  /** Reads node hashes of the tree as it was at `size`, which is at most its present size. */
  hashes(size: number): HashReader;
  /**
   * Whether the tree has at least the head's size and continues it.
   * @throws SpoiltTilesError, UnavailableError, the file system's errors, the signal's reason
   */
  continues(head: TreeHead, signal: AbortSignal): Promise<boolean>;
  /**
   * Finds the cause of incomplete tiles by comparing the log itself with `head`, one of its signed heads.
   * @throws SpoiltTilesError where the log still agrees with it; else LogAlteredError, and the tiles stay
   */
  blameTiles(head: TreeHead, signal: AbortSignal): Promise<never>;
  /**
   * Reads on to the log's end, and stores the tiles that become full. After a failure the tree is void.
   * @param mayWrite throws where another process may be writing to the folder now
   * @throws LogAlteredError, OtherTileError, UnavailableError, the file system's errors
   */
  readOn(
    signal: AbortSignal,
    mayWrite: () => void,
    onEvent: (event: Pick<RecordedEvent, 'type'>) => void,
  ): Promise<void>;
}

/**
 * Opens the tree from the folder's tiles, or from the log where the tiles do not agree with it.
 * @param heads all signed heads that are stored; the opened tree continues each of them
 * @throws LogAlteredError where the log does not continue one of them; UnavailableError, the file system's errors
 */
export async function openLogTree(
  deps: LogTreeDeps,
  heads: readonly TreeHead[],
  signal: AbortSignal,
): Promise<LogTree> {
  const kept = await keptTree(deps, signal);
  let refuted = kept === undefined ? undefined : await refutedHead(deps, kept, heads, signal);
  if (kept !== undefined && refuted === undefined) return growing(deps, kept);
  // Where the log itself agrees with the signed heads, the tiles are corrupted: they are removed and built again.
  if (kept?.builder.size !== 0) refuted = await refutedHead(deps, emptyTree(), heads, signal);
  if (refuted !== undefined) throw new LogAlteredError(refuted);
  await deps.folder.clear();
  return growing(deps, emptyTree());
}

/**
 * Refuses an event that has no leaf.
 * @param before the position of the event before it
 * @throws AlteredEventError for an unreadable event; LogAlteredError for one that the service can't have written
 */
async function refuseEvent({ stored }: LogTreeDeps, before: Position | undefined): Promise<never> {
  // Leaves are made of unchecked texts: a reader of events says what is wrong with this one.
  for await (const { events } of stored.readAll(before, {}, { batchSize: 1 })) if (events.length > 0) break;
  throw new LogAlteredError('an event of the log is none that the service can have written');
}

interface Started {
  readonly builder: TreeBuilder;
  /** Tiles that became full and are not stored yet. */
  readonly full: TileHashes[];
  position: Position | undefined;
}

function emptyTree(): Started {
  return startedAt(undefined, undefined);
}

function startedAt(edge: ConstructorParameters<typeof TreeBuilder>[1], position: Position | undefined): Started {
  const full: TileHashes[] = [];
  return { builder: new TreeBuilder((tile, hashes) => full.push({ tile, hashes }), edge), full, position };
}

/** The tree of the stored full tiles; `undefined`: a tile is incomplete, or the last one does not match the log. */
async function keptTree(deps: LogTreeDeps, signal: AbortSignal): Promise<Started | undefined> {
  const { stored, folder } = deps;
  const { size, position } = await folder.end();
  if (size === 0 || position === undefined) return emptyTree();
  const tiles: TileHashes[] = [];
  for (let level = 1; TILE_WIDTH ** level <= size; level++) {
    const index = Math.floor(size / TILE_WIDTH ** (level + 1));
    const width = tileWidthAt(size, level, index);
    const hashes: Buffer[] = [];
    for (let at = 0; at < width; at++) {
      const below = await folder.read({ level: level - 1, index: index * TILE_WIDTH + at, width: TILE_WIDTH });
      if (below === undefined) return undefined;
      hashes.push(hashPerfect(below));
    }
    if (width > 0) tiles.push({ tile: { level, index, width }, hashes: Buffer.concat(hashes) });
  }
  const last = size / TILE_WIDTH - 1;
  const lastTile = await folder.read({ level: 0, index: last, width: TILE_WIDTH });
  if (lastTile === undefined || !(await stored.reaches(position))) return undefined;
  const before = last === 0 ? undefined : await folder.lastPosition(last - 1);
  const leaves: Buffer[] = [];
  let end = before;
  reading: for await (const batch of leafBatches(deps, before, { batchSize: TILE_WIDTH, signal }))
    for (const [index, event] of batch.events.entries()) {
      leaves.push(leafOf(batch, index) ?? (await refuseEvent(deps, end)));
      end = event.position;
      if (leaves.length === TILE_WIDTH) break reading;
    }
  if (end !== position || !Buffer.concat(leaves).equals(lastTile)) return undefined;
  return startedAt({ size, tiles }, position);
}

/** The hash of an event's leaf; `undefined`: the event is unreadable, or none that the service can have written. */
function leafOf({ events, hash }: LeafBatch, index: number): Buffer | undefined {
  if (events[index]?.altered === true) return undefined;
  const leaf = hash(index);
  return leaf === NO_LEAF ? undefined : leaf;
}

/** The first head that the tree does not continue. */
async function refutedHead(
  deps: LogTreeDeps,
  started: Started,
  heads: readonly TreeHead[],
  signal: AbortSignal,
): Promise<TreeHead | undefined> {
  for (const head of heads) if (!(await agrees(deps, started, head, signal))) return head;
  return undefined;
}

/** Whether the tree continues `head`. Events between the two are read from the log, and nothing is written. */
async function agrees(
  deps: LogTreeDeps,
  { builder, position }: Started,
  head: TreeHead,
  signal: AbortSignal,
): Promise<boolean> {
  if (head.size === 0) return true;
  if (head.size <= builder.size) return (await rootOf(deps, builder, head.size))?.equals(head.root) === true;
  const trial = startedAt({ size: builder.size, tiles: builder.partialTiles() }, position);
  for await (const batch of leafBatches(deps, trial.position, { batchSize: BATCH, signal })) {
    await add(deps, batch, trial, { upTo: head.size });
    trial.full.length = 0;
    if (trial.builder.size === head.size) return trial.builder.root().equals(head.root);
  }
  signal.throwIfAborted();
  return false;
}

/** The tree's root at an earlier size; `undefined`: tiles are missing or truncated. */
async function rootOf(deps: LogTreeDeps, builder: TreeBuilder, size: number): Promise<Buffer | undefined> {
  if (size === builder.size) return builder.root();
  return rootAt(hashesOf(deps, builder, size), size).catch(noneIfMalformed);
}

/** A reader of the tree's nodes, whose calls throw MalformedEvidenceError where tiles are missing or truncated. */
function hashesOf({ folder }: LogTreeDeps, builder: TreeBuilder, size: number): HashReader {
  const partial = builder.partialTiles();
  return tileHashReader(async (tile) => {
    const own = partial.find((one) => one.tile.level === tile.level && one.tile.index === tile.index);
    if (own !== undefined) return own.hashes.subarray(0, tile.width * HASH_BYTES);
    return (await folder.read(tile)) ?? Buffer.alloc(0);
  }, size);
}

interface AddOptions {
  /** Size at which the tree grows no further. */
  readonly upTo?: number;
  readonly onEvent?: (event: Pick<RecordedEvent, 'type'>) => void;
}

/**
 * Appends events to the tree, which is void after a failure.
 * @returns the positions of the events with which tiles of leaves became full
 * @throws as `refuseEvent`
 */
async function add(
  deps: LogTreeDeps,
  batch: LeafBatch,
  started: Started,
  { upTo = Number.POSITIVE_INFINITY, onEvent = () => undefined }: AddOptions,
): Promise<Position[]> {
  const { builder } = started;
  const ends: Position[] = [];
  const time = slices(LOW_PRIORITY_SLICE_MS);
  for (const [index, event] of batch.events.entries()) {
    if (builder.size >= upTo) break;
    builder.append(leafOf(batch, index) ?? (await refuseEvent(deps, started.position)));
    started.position = event.position;
    if (builder.size % TILE_WIDTH === 0) ends.push(event.position);
    onEvent(event);
    if (time.due()) await time.rest();
  }
  return ends;
}

function growing(deps: LogTreeDeps, started: Started): LogTree {
  const { folder } = deps;
  const { builder, full } = started;

  /** Builds the tree from the log again. @throws SpoiltTilesError unless that tree disagrees with `head` too */
  async function readAgain(head: TreeHead, signal: AbortSignal): Promise<void> {
    if (!(await agrees(deps, emptyTree(), head, signal))) return;
    await folder.clear();
    throw new SpoiltTilesError(`the log is what was signed, and its tiles in ${folder.path} are not`);
  }

  return {
    get size() {
      return builder.size;
    },
    get position() {
      return started.position;
    },
    root: () => builder.root(),
    partialTiles: () => builder.partialTiles(),
    hashes: (size) => hashesOf(deps, builder, size),
    async continues(head, signal) {
      if (head.size > builder.size) return false;
      if (await agrees(deps, started, head, signal)) return true;
      await readAgain(head, signal);
      return false;
    },
    async blameTiles(head, signal) {
      await readAgain(head, signal);
      throw new LogAlteredError(head);
    },
    async readOn(signal, mayWrite, onEvent) {
      for await (const batch of leafBatches(deps, started.position, { batchSize: BATCH, signal })) {
        const ends = await add(deps, batch, started, { onEvent });
        if (full.length === 0) continue;
        mayWrite();
        await folder.keep(full.splice(0), ends);
      }
    },
  };
}

/** The log does not match a signed head: an event was altered, removed, inserted, exchanged or cut off. */
export class LogAlteredError extends PublicReasonError {
  override readonly name = 'LogAlteredError';
  /** @param found the fault as a message for the public, or the signed head that the log does not match */
  constructor(found: string | Pick<TreeHead, 'size'>, options?: ErrorOptions) {
    const words =
      typeof found === 'string'
        ? found
        : `the log's first ${found.size} events are not those of the head that was signed over them`;
    super(`${words}: nothing more is signed; gift audit verify names the first that differs`, words, options);
  }
}

/** Proofs that events are in the log of its latest checkpoint, and the leaves that such a proof rests on. */
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { isInLog } from '../format/checkProof.js';
import { parseCheckpoint } from '../format/checkpoint.js';
import { type IsShown, showEvent } from '../format/eventLeaf.js';
import { proveInclusion } from '../format/merkleTree.js';
import { UnprovenEventError } from '../format/parsing.js';
import { bundleJson, type ProvenEvent } from '../format/proofBundle.js';
import { parseNote } from '../format/signedNote.js';
import { TILE_WIDTH, tileAt, tileHashReader } from '../format/tiles.js';
import { findLeafRules, leavesOf } from './leaves.js';
import type { TileFolder } from './tileFolder.js';

interface ProveDeps extends IndexDeps {
  readonly stored: Pick<EventStore, 'read' | 'readAll'>;
  readonly folder: Pick<TileFolder, 'end' | 'head' | 'lastPosition' | 'read'>;
}

interface Proven {
  readonly events: readonly ProvenEvent[];
  /** The bundle of these events as plain JSON, for a file or an HTTP answer. */
  readonly file: object;
  /** Number of events that no checkpoint covers yet, and that are left out. */
  readonly uncovered: number;
}

/**
 * @param events as stored, in any order
 * @param shown which fields of an event's data are shown, and whether its metadata is
 * @returns `undefined`: no checkpoint covers any of the events
 * @throws UnprovenEventError for an event that is not as the tree has it: the log, or a tile, was altered;
 * UnavailableError also while tiles are missing; MalformedEvidenceError, the file system's errors
 */
export async function proveEvents(
  deps: ProveDeps,
  events: readonly RecordedEvent[],
  shown: (event: RecordedEvent) => IsShown,
): Promise<Proven | undefined> {
  const { stored, folder } = deps;
  const [checkpoint, rules] = [await folder.head(), await findLeafRules(stored)];
  if (checkpoint === undefined || rules === undefined) return undefined;
  const head = parseCheckpoint(parseNote(checkpoint).body);
  const read = tileHashReader(async (tile) => (await folder.read(tile)) ?? missingTile(), head.size);
  const indexes = await leafIndexes(deps, events, head.size);
  const covered = [...indexes].filter(([, index]) => index < head.size).sort(([, one], [, other]) => one - other);
  if (covered.length === 0) return undefined;
  const proven: ProvenEvent[] = [];
  for (const [event, index] of covered) {
    const { id, stream, revision, type, at } = event;
    const inclusion = await proveInclusion(read, index, head.size);
    const one = { index, id, stream, revision, type, at, ...showEvent(event, rules, shown(event)), inclusion };
    if (!isInLog(one, head)) throw new UnprovenEventError(`event ${id} of ${stream} is not as the tree has it`);
    proven.push(one);
  }
  return {
    events: proven,
    file: bundleJson({ checkpoint, events: proven }),
    uncovered: events.length - proven.length,
  };
}

/** The keeper of the tree removes all tiles where some are corrupted, and makes them again from the log. */
function missingTile(): never {
  const publicReason = 'tiles of the latest checkpoint are missing: they are made again from the log';
  throw new UnavailableError(publicReason, { publicReason });
}

interface IndexDeps {
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'readAll'>;
  readonly folder: Pick<TileFolder, 'end' | 'lastPosition'>;
}

/**
 * Indexes of the events' leaves in the tree. The events of one tile are found by one reading of its part of the log.
 * Later events may be missing, since the number of events beyond the tree is unknown.
 * @param size number of leaves in the tree
 */
async function leafIndexes(
  { stored, folder }: IndexDeps,
  events: readonly RecordedEvent[],
  size: number,
): Promise<ReadonlyMap<RecordedEvent, number>> {
  const tiles = Math.floor((await folder.end()).size / TILE_WIDTH);
  const byTile = new Map<number, Map<string, RecordedEvent>>();
  for (const event of events) {
    const tile = await tileOf(folder, tiles, event.position);
    byTile.set(tile, (byTile.get(tile) ?? new Map<string, RecordedEvent>()).set(event.id, event));
  }
  const found = new Map<RecordedEvent, number>();
  for (const [tile, ofTile] of byTile) {
    const after = tile === 0 ? undefined : await folder.lastPosition(tile - 1);
    let index = tile * TILE_WIDTH;
    reading: for await (const batch of stored.readAll(after, {}, { batchSize: TILE_WIDTH }))
      for (const { id } of batch.events) {
        const event = ofTile.get(id);
        if (event !== undefined) found.set(event, index);
        index += 1;
        ofTile.delete(id);
        if (ofTile.size === 0 || index >= size) break reading;
      }
  }
  return found;
}

/** Index of the first tile that does not end before the position; the number of full tiles where each does. */
async function tileOf(folder: Pick<TileFolder, 'lastPosition'>, tiles: number, position: Position): Promise<number> {
  let [low, high] = [0, tiles];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (((await folder.lastPosition(middle)) ?? position) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

const LENGTH_BYTES = 2;

interface BundleDeps {
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'read' | 'readAll'>;
  readonly folder: Pick<TileFolder, 'lastPosition'>;
}

/**
 * The leaves of a tile of level 0, each preceded by its length (c2sp.org/tlog-tiles). `undefined` where this is not the
 * path of a bundle, the log has fewer leaves, or the folder does not know where they start.
 * @param path such as `tile/entries/x001/234`
 * @throws UnavailableError, MalformedEvidenceError
 */
export async function readLeafBundle(
  { stored, folder }: BundleDeps,
  path: string,
): Promise<{ readonly bytes: Buffer; readonly leaves: number } | undefined> {
  const tile = tileAt(path);
  if (tile?.level !== 'entries') return undefined;
  const { index, width } = tile;
  const after = index === 0 ? undefined : await folder.lastPosition(index - 1);
  const rules = await findLeafRules(stored);
  if (rules === undefined || (index > 0 && after === undefined)) return undefined;
  const leaves = leavesOf(rules);
  const parts: Buffer[] = [];
  for await (const { events } of stored.readAll(after, {}, { batchSize: TILE_WIDTH }))
    for (const event of events) {
      const entry = leaves.entry(event);
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeUInt16BE(entry.length);
      parts.push(length, entry);
      if (parts.length === 2 * width) return { bytes: Buffer.concat(parts), leaves: width };
    }
  return undefined;
}

/** Proves that events are in the log of its latest checkpoint. */
import type { EventStore, RecordedEvent } from '../../../ports/eventStore.js';
import { isInLog } from '../format/checkBundle.js';
import { parseCheckpoint } from '../format/checkpoint.js';
import { UnprovenEventError } from '../format/errors.js';
import type { LeafRules, ShownParts } from '../format/eventLeaf.js';
import type { ProofBundle, ProvenEvent } from '../format/proofBundle.js';
import { parseNote } from '../format/signedNote.js';
import { tileHashReader } from '../format/tiles.js';
import { proveInclusion } from '../format/treeProofs.js';
import type { TileFolder } from './tileFolder.js';
import { type IndexDeps, leafIndexes } from './leafIndexes.js';
import { findLeafRules } from './leafRules.js';

export interface ProveDeps extends IndexDeps {
  readonly stored: Pick<EventStore, 'read' | 'readAll'>;
  readonly folder: Pick<TileFolder, 'end' | 'head' | 'lastPosition' | 'read'>;
}

export interface Proven {
  readonly bundle: ProofBundle;
  /** Number of events that no checkpoint covers yet, and that are not in the bundle. */
  readonly uncovered: number;
}

/**
 * @param events as stored, in any order
 * @param shown what of an event is shown
 * @returns `undefined`: the log has no checkpoint yet
 * @throws UnprovenEventError for an event that is not as the tree has it: the log, or a tile, was altered;
 * MalformedEvidenceError, UnavailableError, the file system's errors
 */
export async function proveEvents(
  deps: ProveDeps,
  events: readonly RecordedEvent[],
  shown: (event: RecordedEvent, rules: LeafRules) => ShownParts,
): Promise<Proven | undefined> {
  const { stored, folder } = deps;
  const [checkpoint, rules] = [await folder.head(), await findLeafRules(stored)];
  if (checkpoint === undefined || rules === undefined) return undefined;
  const head = parseCheckpoint(parseNote(checkpoint).body);
  const read = tileHashReader(async (tile) => (await folder.read(tile)) ?? Buffer.alloc(0), head.size);
  const indexes = await leafIndexes(deps, events, head.size);
  const covered = [...indexes].filter(([, index]) => index < head.size).sort(([, one], [, other]) => one - other);
  const proven: ProvenEvent[] = [];
  for (const [event, index] of covered) {
    const { id, stream, revision, type, at } = event;
    const inclusion = await proveInclusion(read, index, head.size);
    const one = { index, id, stream, revision, type, at, ...shown(event, rules), inclusion };
    if (!isInLog(one, head)) throw new UnprovenEventError(`event ${id} of ${stream} is not as the tree has it`);
    proven.push(one);
  }
  return { bundle: { checkpoint, events: proven }, uncovered: events.length - proven.length };
}

/**
 * Folds some documents of a projection afresh, in memory: for repairs and samples. It reads the log once, however many
 * they are.
 */
import { LOW_PRIORITY_SLICE_MS, slices } from '../../../lib/async/slices.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import type { StoredDocument } from '../../../ports/readStore.js';
import { documentIdsOf, foldOne } from '../foldOne.js';
import type { Projection } from '../projection.js';

/** Events folded between two looks at the clock. */
const STEPS = 64;

/** What is to be folded. */
export interface FoldSomeOptions {
  readonly events: Pick<EventStore, 'readAll'>;
  readonly projection: Projection;
  readonly ids: ReadonlySet<string>;
  /** The documents as they are at `after`; default none, at the log's beginning. Not changed. */
  readonly documents?: ReadonlyMap<string, StoredDocument>;
  readonly after?: Position | undefined;
  /** Everything up to here is folded, nothing after it; `undefined`: the log's beginning. */
  readonly through: Position | undefined;
  /** Ends it early: what it answers then is of no use. */
  readonly signal?: AbortSignal;
  /** Told after each batch: how many events there were in it, and how far the log has been looked at. */
  readonly onBatch?: (events: number, position: Position) => void;
}

/**
 * The documents as the projector would have them at `through`; one that can't be folded is the marker of its
 * quarantine, and one of which the log says nothing is left out. @throws UnavailableError
 */
export async function foldSome(options: FoldSomeOptions): Promise<Map<string, StoredDocument>> {
  const { events, projection, ids, after, through, signal, onBatch } = options;
  const folded = new Map(options.documents);
  if (through === undefined || (after !== undefined && after >= through)) return folded;
  const time = slices(LOW_PRIORITY_SLICE_MS);
  for await (const batch of events.readAll(after, { types: projection.types }, { signal })) {
    for (const [index, event] of batch.events.entries()) {
      if (event.position > through) break;
      if (index % STEPS === 0 && time.due()) await time.rest();
      foldWanted(projection, event, ids, folded);
    }
    onBatch?.(batch.events.length, batch.position);
    if (batch.position >= through) break;
  }
  return folded;
}

/** One event that can't say which documents it touches is passed over, as the projector does. */
function foldWanted(
  projection: Projection,
  event: RecordedEvent,
  wanted: ReadonlySet<string>,
  folded: Map<string, StoredDocument>,
): void {
  const creates = projection.creates?.includes(event.type) === true;
  for (const [index, id] of documentIdsOf(projection, event).entries()) {
    if (!wanted.has(id)) continue;
    const after = foldOne(projection, creates ? undefined : folded.get(id), event, id, index);
    if (after !== undefined) folded.set(id, after);
  }
}

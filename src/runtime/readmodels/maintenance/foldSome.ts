/** Folds some documents afresh, in memory, for repairs and samples: reads the log once, however many they are. */
import { LOW_PRIORITY_SLICE_MS, slices } from '../../../lib/async/slices.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import type { StoredDocument } from '../../../ports/readStore.js';
import { documentIdsOf, foldOne } from '../foldOne.js';
import type { Projection } from '../projection.js';

const STEPS = 64;

export interface FoldSomeOptions {
  readonly events: Pick<EventStore, 'readAll'>;
  readonly projection: Projection;
  readonly ids: ReadonlySet<string>;
  /** The documents as they are at `after`; default none, at the log's beginning. Not changed. */
  readonly documents?: ReadonlyMap<string, StoredDocument>;
  readonly after?: Position | undefined;
  /** Everything up to here is folded, nothing after it; `undefined`: nothing. */
  readonly through: Position | undefined;
  /** Ends it early: the result is of no use then. */
  readonly signal?: AbortSignal;
  /** Called after each batch with its number of events, and how far the log has been read. */
  readonly onBatch?: (events: number, position: Position) => void;
}

/**
 * The documents as the projector would have them at `through`. One that can't be folded is the marker of its
 * quarantine; one that the log lacks is left out. @throws UnavailableError
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

/** As the projector does, it passes over an event that can't say which documents it touches. */
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

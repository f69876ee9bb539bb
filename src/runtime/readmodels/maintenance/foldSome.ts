/** One reading of the log serves all documents of a repair or sample. */
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
  /** The documents as of `after`, which are not changed. */
  readonly documents?: ReadonlyMap<string, StoredDocument>;
  readonly after?: Position | undefined;
  /** The last folded position; `undefined`: the log is empty. */
  readonly through: Position | undefined;
  /** Ends the fold without a usable result. */
  readonly signal?: AbortSignal;
  readonly onBatch?: (events: number, position: Position) => void;
}

/**
 * The documents as the projector would have them at `through`. A failed fold gives a quarantine marker; documents that
 * the log lacks are left out.
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

/** Folds all documents of a repair or sample together, so that one read of the log serves them all. */
import { LOW_PRIORITY_SLICE_MS, slices } from '../../../lib/async/slices.js';
import type { EventStore, Position } from '../../../ports/eventStore.js';
import type { ReadStore, StoredDocument } from '../../../ports/readStore.js';
import { type Pace, paced } from '../../coordination/index.js';
import { foldOne, type Touch, touchOf } from '../foldOne.js';
import type { Projection } from '../projection.js';
import type { Work } from './orders.js';
import { foldProgress } from './progress.js';

const STEPS = 64;

interface FoldSomeOptions {
  readonly events: Pick<EventStore, 'readAll'>;
  readonly projection: Projection;
  readonly ids: ReadonlySet<string>;
  /** The documents as of `after`, which are not changed. */
  readonly documents?: ReadonlyMap<string, StoredDocument> | undefined;
  readonly after?: Position | undefined;
  /** The last folded position; `undefined`: the log is empty. */
  readonly through: Position | undefined;
  /** Ends the fold early; its result must not be used then. */
  readonly signal?: AbortSignal;
  readonly onBatch?: (events: number, position: Position) => void;
}

/**
 * The documents as the projector would have them at `through`. A failed fold gives a quarantine marker; documents that
 * the log lacks are left out.
 */
export async function foldSome(options: FoldSomeOptions): Promise<Map<string, StoredDocument>> {
  const { projection, ids } = options;
  if (projection.contextIds === undefined) return foldRequested(options, ids);
  const requested = await withContext(options);
  // The documents that these depend on are not known as of `after`, so the fold starts at the log's beginning.
  const folded = await foldRequested({ ...options, documents: undefined, after: undefined }, requested);
  return new Map([...folded].filter(([id]) => ids.has(id)));
}

/** Documents as of `through`. */
interface Folded {
  readonly documents: ReadonlyMap<string, StoredDocument>;
  readonly through: Position | undefined;
}

/**
 * Folds documents up to the present end of the log, at the pace of the work that it is a share `part` of.
 * @returns the documents as of `through`
 */
export async function foldNow(
  { events, store }: { readonly events: EventStore; readonly store: ReadStore },
  projection: Projection,
  ids: readonly string[],
  { pace, signal, report, part }: Work & { readonly pace: Pace; readonly part: number },
): Promise<Folded> {
  const through = await events.end();
  const counted = foldProgress(through);
  const documents = await foldSome({
    events: paced({ events, store }, pace).events,
    projection,
    ids: new Set(ids),
    through,
    signal,
    onBatch(read, position) {
      const progress = counted(read, position);
      report((progress.share ?? 0) * part, { step: 'fold', progress });
    },
  });
  return { documents, through };
}

/** Folds on, at full speed, with the events that were appended since. */
export async function foldOn(
  { events }: { readonly events: EventStore },
  projection: Projection,
  ids: readonly string[],
  { documents, through: after }: Folded,
): Promise<Folded> {
  const through = await events.end();
  return { documents: await foldSome({ events, projection, ids: new Set(ids), documents, after, through }), through };
}

async function foldRequested(
  options: FoldSomeOptions,
  requested: ReadonlySet<string>,
): Promise<Map<string, StoredDocument>> {
  const { projection } = options;
  const folded = new Map(options.documents);
  await eachTouch(options, ({ event, ids, contextIds }) => {
    const creates = projection.creates?.includes(event.type) === true;
    const context = contextIds.map((id) => folded.get(id));
    for (const [index, id] of ids.entries()) {
      if (!requested.has(id)) continue;
      const after = foldOne(projection, creates ? undefined : folded.get(id), event, id, index, context);
      if (after !== undefined) folded.set(id, after);
    }
  });
  return folded;
}

/** Ids of the requested documents and of all that they depend on; each step to further documents reads the log once. */
async function withContext(options: FoldSomeOptions): Promise<ReadonlySet<string>> {
  const requested = new Set(options.ids);
  for (let known = 0; known < requested.size;) {
    known = requested.size;
    await eachTouch({ ...options, after: undefined }, ({ ids, contextIds }) => {
      if (ids.some((id) => requested.has(id))) for (const id of contextIds) requested.add(id);
    });
    if (options.signal?.aborted === true) break;
  }
  return requested;
}

async function eachTouch(
  { events, projection, after, through, signal, onBatch }: FoldSomeOptions,
  visit: (touch: Touch) => void,
): Promise<void> {
  if (through === undefined || (after !== undefined && after >= through)) return;
  const time = slices(LOW_PRIORITY_SLICE_MS);
  for await (const batch of events.readAll(after, { types: projection.types }, { signal })) {
    for (const [index, event] of batch.events.entries()) {
      if (event.position > through) break;
      if (index % STEPS === 0 && time.due()) await time.rest();
      visit(touchOf(projection, event));
    }
    onBatch?.(batch.events.length, batch.position);
    if (batch.position >= through) break;
  }
}

import type { Slices } from '../../lib/async/slices.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { ReadStore, StoredDocument } from '../../ports/readStore.js';
import { foldOne, type NoteQuarantine, type Touch, touchOf } from './foldOne.js';
import { remembered, type RunningBuild } from './runningBuild.js';

const READ_DOCUMENTS = 1_000;
/** Documents of one event between two checks of the time slice. */
const STEPS = 32;

interface Fold {
  readonly build: RunningBuild;
  /** Newest states of the documents that await their fold, since the cache may drop them before it. */
  readonly latest: Map<string, StoredDocument>;
  readonly note: NoteQuarantine;
}

/**
 * Folds the events, in log order, that the build has not folded yet, and quarantines failures. Each document is read at
 * most once. `build.dirty` may be stored at any time; the caller advances `build.folded`.
 */
export async function foldEvents(
  build: RunningBuild,
  store: ReadStore,
  events: readonly RecordedEvent[],
  time: Slices,
): Promise<void> {
  const fold: Fold = { build, latest: new Map(), note: noteInto(build) };
  const { latest } = fold;
  let touches: Touch[] = [];
  let unknown = new Set<string>();
  /** Awaited only where an event is folded in steps: a promise for each event would cost as much as its fold. */
  const foldTouch = (touch: Touch): Promise<void> | undefined => {
    if (touch.ids.length > STEPS || time.due()) return foldInSteps(fold, touch, time);
    foldDocuments(fold, touch);
    return undefined;
  };
  const foldTouches = async (): Promise<void> => {
    if (unknown.size > 0) await readDocuments(build, store, [...unknown], latest);
    for (const touch of touches) {
      const steps = foldTouch(touch);
      if (steps !== undefined) await steps;
    }
    touches = [];
    unknown = new Set();
    latest.clear();
  };

  for (const event of events) {
    if (!build.types.has(event.type) || (build.folded !== undefined && event.position <= build.folded)) continue;
    const touch = touchOf(build.projection, event, fold.note);
    const { ids, contextIds } = touch;
    const creates = build.creates.has(event.type);
    // Documents of a creating event need no read, and replace those of earlier waiting events.
    if (creates && contextIds.length === 0) {
      const steps = foldTouch(touch);
      if (steps !== undefined) await steps;
      continue;
    }
    touches.push(touch);
    if (!creates) for (const id of ids) recall(fold, id, unknown);
    for (const id of contextIds) recall(fold, id, unknown);
    if (unknown.size >= READ_DOCUMENTS) await foldTouches();
  }
  await foldTouches();
}

/** Adds the document's state in memory to `latest`; without one, its id to `unknown`. */
function recall({ build, latest }: Fold, id: string, unknown: Set<string>): void {
  if (latest.has(id)) return;
  const known = remembered(build, id);
  if (known === undefined) unknown.add(id);
  else latest.set(id, known);
}

async function readDocuments(
  build: RunningBuild,
  store: ReadStore,
  ids: readonly string[],
  into: Map<string, StoredDocument>,
): Promise<void> {
  for (let from = 0; from < ids.length; from += READ_DOCUMENTS) {
    for (const document of await store.getMany(build.collection, ids.slice(from, from + READ_DOCUMENTS))) {
      // A document that was changed in memory during the read is newer than the stored one.
      if (document !== undefined && !into.has(document.id)) into.set(document.id, document);
    }
  }
}

/** Folds the event in steps, with rests between them. */
async function foldInSteps(fold: Fold, touch: Touch, time: Slices): Promise<void> {
  for (let from = 0; from < touch.ids.length; from += STEPS) {
    if (time.due()) await time.rest();
    foldDocuments(fold, touch, from);
  }
}

/** Folds the event into the documents of one step. */
function foldDocuments({ build, latest, note }: Fold, { event, ids, contextIds }: Touch, from = 0): void {
  const creates = build.creates.has(event.type);
  const context = contextIds.map((id) => latest.get(id));
  for (let index = from; index < ids.length && index < from + STEPS; index++) {
    const id = ids[index] as string;
    const before = creates ? undefined : latest.get(id);
    const after = foldOne(build.projection, before, event, id, index, context, note);
    if (after === undefined) continue;
    latest.set(id, after);
    build.dirty.set(id, after);
  }
}

function noteInto(build: RunningBuild): NoteQuarantine {
  return (quarantined) => {
    build.quarantined = [...build.quarantined, quarantined];
    build.unlisted.push(quarantined);
    build.report?.(quarantined);
  };
}

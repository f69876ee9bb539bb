import type { Slices } from '../../lib/async/slices.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { ReadStore, StoredDocument } from '../../ports/readStore.js';
import { foldOne, type NoteQuarantine, type Touch, touchOf } from './foldOne.js';
import { remembered, type RunningBuild } from './runningBuild.js';

const READ_DOCUMENTS = 1_000;
/** Documents between two checks of the time slice. */
const STEPS = 32;

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
  const note = noteInto(build);
  let touches: Touch[] = [];
  let unknown = new Set<string>();
  /** Newest states of the documents that await their fold, since the cache may drop them before it. */
  let latest = new Map<string, StoredDocument>();
  const foldTouches = async (): Promise<void> => {
    if (unknown.size > 0) await readDocuments(build, store, [...unknown], latest);
    for (const touch of touches) await foldEvent(build, touch, latest, time, note);
    touches = [];
    unknown = new Set();
    latest = new Map();
  };

  for (const event of events) {
    if (!build.types.has(event.type) || (build.folded !== undefined && event.position <= build.folded)) continue;
    const touch = touchOf(build.projection, event, note);
    const { ids, contextIds } = touch;
    const creates = build.creates.has(event.type);
    // Documents of a creating event need no read, and replace those of earlier waiting events.
    if (creates && contextIds.length === 0) {
      await foldEvent(build, touch, latest, time, note);
      continue;
    }
    touches.push(touch);
    for (const id of creates ? contextIds : [...ids, ...contextIds]) {
      if (latest.has(id)) continue;
      const known = remembered(build, id);
      if (known === undefined) unknown.add(id);
      else latest.set(id, known);
    }
    if (unknown.size >= READ_DOCUMENTS) await foldTouches();
  }
  await foldTouches();
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

async function foldEvent(
  build: RunningBuild,
  { event, ids, contextIds }: Touch,
  latest: Map<string, StoredDocument>,
  time: Slices,
  note: NoteQuarantine,
): Promise<void> {
  const creates = build.creates.has(event.type);
  const context = contextIds.map((id) => latest.get(id));
  for (let index = 0; index < ids.length; index++) {
    if (index % STEPS === 0 && time.due()) await time.rest();
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

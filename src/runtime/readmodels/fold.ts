/** Folds events into the documents of one build, in memory. */
import type { Slices } from '../../lib/async/slices.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { ReadStore, StoredDocument } from '../../ports/readStore.js';
import { documentIdsOf, foldOne, type NoteQuarantine } from './foldOne.js';
import { remembered, type RunningBuild } from './runningBuild.js';

const READ_DOCUMENTS = 1_000;
/** Documents between two looks at the clock. */
const STEPS = 32;

/** An event that waits for its documents. */
interface Touch {
  readonly event: RecordedEvent;
  readonly ids: readonly string[];
}

/**
 * Folds those of `events` (in log order) that the build has not folded yet; each document is read at most once. What
 * can't be folded is quarantined. What is in `build.dirty` may be stored at any time; the caller advances
 * `build.folded`. @throws UnavailableError
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
  /** The newest state of every document that waits here: meanwhile memory may let it go. */
  let latest = new Map<string, StoredDocument>();
  const foldTouches = async (): Promise<void> => {
    if (unknown.size > 0) await readDocuments(build, store, [...unknown], latest);
    for (const { event, ids } of touches) await foldEvent(build, event, ids, latest, time, note);
    touches = [];
    unknown = new Set();
    latest = new Map();
  };

  for (const event of events) {
    if (!build.types.has(event.type) || (build.folded !== undefined && event.position <= build.folded)) continue;
    const ids = documentIdsOf(build.projection, event, note);
    // An event that creates its document needs nothing read, and ignores earlier events that still wait.
    if (build.creates.has(event.type)) {
      await foldEvent(build, event, ids, latest, time, note);
      continue;
    }
    touches.push({ event, ids });
    for (const id of ids) {
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
      // A document that came up in memory since is newer than what is stored.
      if (document !== undefined && !into.has(document.id)) into.set(document.id, document);
    }
  }
}

/** Folds one event. `latest`: documents as they are, kept up to date. */
async function foldEvent(
  build: RunningBuild,
  event: RecordedEvent,
  ids: readonly string[],
  latest: Map<string, StoredDocument>,
  time: Slices,
  note: NoteQuarantine,
): Promise<void> {
  const creates = build.creates.has(event.type);
  for (let index = 0; index < ids.length; index++) {
    if (index % STEPS === 0 && time.due()) await time.rest();
    const id = ids[index] as string;
    const before = creates ? undefined : latest.get(id);
    const after = foldOne(build.projection, before, event, id, index, note);
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

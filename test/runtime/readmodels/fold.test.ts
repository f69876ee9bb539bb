import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { Slices } from '../../../src/lib/async/slices.js';
import type { RecordedEvent } from '../../../src/ports/eventStore.js';
import type { ReadStore, StoredDocument } from '../../../src/ports/readStore.js';
import type { Projection } from '../../../src/runtime/readmodels/projection.js';
import { collectionOf } from '../../../src/runtime/readmodels/projection.js';
import { documentCache, type RunningBuild } from '../../../src/runtime/readmodels/runningBuild.js';
import { foldEvents } from '../../../src/runtime/readmodels/fold.js';

const test = suite('fold');

/** Counts the events of each stream, after one that creates the document. */
const counts: Projection<{ count: number }> = {
  name: 'counts',
  version: 1,
  hidden: new Set(),
  indexes: [],
  types: ['Begun', 'Counted'],
  creates: ['Begun'],
  documentIds: (event) => [event.stream],
  evolve(document, event) {
    if (event.type === 'Begun') return { count: 0 };
    if (document === undefined) throw new Error('counted before it was begun');
    return { count: document.count + 1 };
  },
};

function newBuild(): RunningBuild {
  return {
    projection: counts,
    collection: collectionOf(counts),
    checkpoint: 'counts@1',
    types: new Set(counts.types),
    creates: new Set(counts.creates),
    cache: documentCache(0),
    dirty: new Map(),
    writing: new Map(),
    folded: undefined,
    stored: undefined,
    state: 'catching-up',
    requested: false,
    place: 'apart',
    caughtUp: false,
    quarantined: [],
    unlisted: [],
  };
}

let position = 0;
function event(stream: string, type: string): RecordedEvent {
  const at = '2026-01-01T00:00:00.000Z';
  return {
    stream,
    type,
    at,
    data: {},
    id: String(++position),
    revision: 0,
    position: String(position).padStart(8, '0'),
    metadata: { commandId: 'c', correlationId: 'c', by: {} },
  };
}

/** A store and a writer that stores everything, with a memory that forgets it at every chance between two events. */
function forgetful(build: RunningBuild): {
  readonly store: ReadStore;
  readonly time: Slices;
  readonly stored: Map<string, StoredDocument>;
} {
  const stored = new Map<string, StoredDocument>();
  const storeAll = (): void => {
    for (const [id, document] of build.dirty) stored.set(id, document);
    build.dirty = new Map();
    build.cache.clear();
  };
  const store = {
    async getMany(_: unknown, ids: readonly string[]) {
      const found = ids.map((id) => stored.get(id));
      storeAll();
      return found;
    },
  } as ReadStore;
  const time: Slices = { start: () => undefined, due: () => true, rest: async () => storeAll() };
  return { store, time, stored };
}

test('nothing is lost where the writer stores and memory forgets between any two events', async () => {
  const build = newBuild();
  const { store, time, stored } = forgetful(build);
  const streams = Array.from({ length: 50 }, (_, index) => `s${index}`);
  await foldEvents(
    build,
    store,
    streams.map((stream) => event(stream, 'Begun')),
    time,
  );
  // In memory when looked for, gone when folded.
  await foldEvents(
    build,
    store,
    [
      event('s0', 'Begun'),
      ...streams.map((stream) => event(stream, 'Counted')),
      ...streams.map((stream) => event(stream, 'Counted')),
    ],
    time,
  );
  await foldEvents(
    build,
    store,
    streams.flatMap((stream) => [
      event(stream, 'Counted'),
      event(stream, 'Counted'),
      event('other', 'Begun'),
      event('other', 'Counted'),
    ]),
    time,
  );
  await time.rest();
  assert.deepEqual(build.quarantined, []);
  for (const stream of streams) assert.deepEqual(stored.get(stream)?.body, { count: 4 }, stream);
  assert.deepEqual(stored.get('other')?.body, { count: 1 });
});

test('an event that creates its document stands while an earlier one waits for what was there', async () => {
  const build = newBuild();
  const { store, time, stored } = forgetful(build);
  for (const types of [
    ['Counted', 'Begun'],
    ['Counted', 'Counted', 'Begun'],
  ]) {
    await foldEvents(
      build,
      store,
      types.map((type) => event('s', type)),
      time,
    );
    await time.rest();
    assert.deepEqual(stored.get('s')?.body, { count: 0 });
  }
});

test("an event before its document's creation quarantines that document alone", async () => {
  const build = newBuild();
  const reported: (string | undefined)[] = [];
  build.report = ({ documentId }) => void reported.push(documentId);
  const { store, time, stored } = forgetful(build);
  await foldEvents(
    build,
    store,
    [event('good', 'Begun'), event('bad', 'Counted'), event('good', 'Counted'), event('bad', 'Counted')],
    time,
  );
  await time.rest();
  assert.deepEqual(
    build.quarantined.map(({ documentId, cause }) => [documentId, cause]),
    [['bad', 'counted before it was begun']],
  );
  assert.deepEqual(stored.get('good')?.body, { count: 1 });
  assert.deepEqual(reported, ['bad']);
});

test('an event that names no document is quarantined by itself', async () => {
  const build = newBuild();
  const { store, time } = forgetful(build);
  const nameless = { ...event('any', 'Begun'), stream: undefined as unknown as string };
  await foldEvents(build, store, [nameless, event('good', 'Begun')], { ...time, due: () => false });
  assert.deepEqual(
    build.quarantined.map(({ eventId, documentId, cause }) => [eventId, documentId, cause]),
    [[nameless.id, undefined, 'Begun names no document of counts']],
  );
  assert.deepEqual([...build.dirty.keys()], ['good']);
});

test.run();

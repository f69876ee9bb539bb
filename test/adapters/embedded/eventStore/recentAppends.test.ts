import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { feed } from '../../../../src/adapters/embedded/eventStore/feed.js';
import { positionOf } from '../../../../src/adapters/embedded/eventStore/log.js';
import type { EventReader } from '../../../../src/adapters/embedded/eventStore/reader.js';
import { openRecentAppends } from '../../../../src/adapters/embedded/eventStore/recentAppends.js';
import type { EventStore, NewEvent, RecordedEvent } from '../../../../src/ports/eventStore.js';
import { batchesOf, event, events, readUntil } from '../../../support/engines/eventStoreEvents.js';
import { inFolder } from '../../../support/engines/eventStoreFolder.js';

const test = suite('Embedded event store: what it has just appended');
const ALL = (): boolean => true;
const fields = (...types: string[]): string[] =>
  types.flatMap((type) => [type, `id-${type}`, '2026-01-01T00:00:00.000Z', `{"is":"${type}"}`, '{}']);
const typesOf = (slice: { readonly events: readonly RecordedEvent[] } | undefined): string[] | undefined =>
  slice?.events.map(({ type }) => type);

/** Metadata and all: events as plain data. */
const plain = (all: readonly RecordedEvent[]): unknown => JSON.parse(JSON.stringify(all));
const readAll = async (store: EventStore): Promise<RecordedEvent[]> =>
  (await batchesOf(store.readAll(undefined))).flatMap((batch) => batch.events);

test('gives events from any position in it to its end, and none from before', () => {
  const recent = openRecentAppends();
  assert.is(recent.after(0, 10, ALL), undefined);
  recent.add({ stream: 'a', revision: 4, position: 12, fields: fields('A', 'B') });
  recent.add({ stream: 'b', revision: 0, position: 13, fields: fields('C') });
  const { events: all, ...rest } = recent.after(10, 10, ALL)!;
  assert.equal(rest, { through: 13, last: true });
  assert.equal(
    all.map(({ position, stream, revision, type, id, data }) => [position, stream, revision, type, id, data]),
    [
      [positionOf(11), 'a', 3, 'A', 'id-A', { is: 'A' }],
      [positionOf(12), 'a', 4, 'B', 'id-B', { is: 'B' }],
      [positionOf(13), 'b', 0, 'C', 'id-C', { is: 'C' }],
    ],
  );
  assert.equal(typesOf(recent.after(12, 10, ALL)), ['C']);
  for (const position of [0, 9, 13, 14]) assert.is(recent.after(position, 10, ALL), undefined, `after ${position}`);
});

test('gives matching events, and looks no further than asked', () => {
  const recent = openRecentAppends();
  recent.add({ stream: 'a', revision: 3, position: 4, fields: fields('A', 'B', 'A', 'B') });
  const onlyA = (_: string, type: string): boolean => type === 'A';
  assert.equal(recent.after(0, 1, onlyA)!.through, 1);
  assert.equal(recent.after(1, 1, onlyA), { events: recent.after(1, 1, onlyA)!.events, through: 3, last: false });
  assert.equal(recent.after(3, 1, onlyA), { events: [], through: 4, last: true });
  assert.is(recent.after(0, 1, ALL)!.events[0], recent.after(0, 9, onlyA)!.events[0], 'made once for all');
});

test('starts again behind appends of others', () => {
  const recent = openRecentAppends();
  recent.add({ stream: 'a', revision: 0, position: 1, fields: fields('A') });
  recent.add({ stream: 'a', revision: 2, position: 3, fields: fields('C') });
  assert.is(recent.after(0, 10, ALL), undefined);
  assert.is(recent.after(1, 10, ALL), undefined);
  assert.equal(typesOf(recent.after(2, 10, ALL)), ['C']);
});

test('is bounded by number and by size', () => {
  const many = openRecentAppends();
  for (let position = 1; position <= 5_000; position++)
    many.add({ stream: 'a', revision: position, position, fields: fields('A') });
  assert.is(many.after(3_900, 9_999, ALL), undefined);
  assert.is(many.after(4_500, 9_999, ALL)?.events.length, 500);
  const large = openRecentAppends();
  const text = JSON.stringify({ text: 'x'.repeat(900_000) });
  for (let position = 1; position <= 12; position++)
    large.add({ stream: 'a', revision: position, position, fields: ['L', 'id', 'at', text, '{}'] });
  assert.is(large.after(6, 10, ALL), undefined);
  assert.is(large.after(10, 10, ALL)?.events.length, 2);
});

test('gives followers the same objects as they would have read', () =>
  inFolder(async ({ open }) => {
    const store = await open();
    await store.append('before', events(3), 'none');
    const seen: RecordedEvent[][] = [[], []];
    const following = seen.map(
      async (into) =>
        void into.push(...(await readUntil(store.follow(undefined), (all) => all.some(({ type }) => type === 'Last')))),
    );
    const odd = { ...event('Odd', { kept: 'ü\u2028', gone: undefined, when: new Date(0) }) } as NewEvent;
    for (let n = 0; n < 20; n++) await store.append('gift-1', [event('Some', { n })], n === 0 ? 'none' : n - 1);
    await store.append('gift-1', [odd, event('Last')], 19);
    await Promise.all(following);
    assert.equal(plain(seen[0]!), plain(await readAll(store)));
    assert.equal(seen[0]!.at(-2)!.data, { kept: 'ü\u2028', when: '1970-01-01T00:00:00.000Z' });
    assert.is(seen[0]!.at(-1), seen[1]!.at(-1), 'not read from the file by each');
  }));

test('shows the log as it is, each event once, despite repeats, conflicts and other processes', () =>
  inFolder(async ({ open }) => {
    const [ours, theirs] = [await open(), await open()];
    const last = (all: readonly RecordedEvent[]): boolean => all.filter(({ type }) => type === 'Last').length === 2;
    const following = [ours, theirs].map((store) => readUntil(store.follow(undefined), last));
    const filtered = readUntil(ours.follow(undefined, { types: ['Odd', 'Last'], streams: ['ours-', 'theirs-'] }), last);
    for (let n = 0; n < 60; n++) {
      const own = [event(n % 2 === 0 ? 'Even' : 'Odd', { n })];
      await Promise.all([
        ours.append(`ours-${n % 3}`, own, 'any'),
        n % 4 === 0 ? theirs.append(`theirs-${n % 5}`, events(2), 'any') : undefined,
        ours.append('ours-0', [event('Refused')], 1_000).catch(() => undefined),
      ]);
      if (n % 7 === 0) await ours.append(`ours-${n % 3}`, own, 'any');
    }
    await Promise.all([
      ours.append('ours-9', [event('Last')], 'none'),
      theirs.append('theirs-9', [event('Last')], 'none'),
    ]);
    const log = plain(await readAll(ours)) as RecordedEvent[];
    assert.is(log.length, 60 + 30 + 2);
    for (const seen of await Promise.all(following)) assert.equal(plain(seen), log);
    assert.equal(
      plain(await filtered),
      log.filter(({ type }) => type === 'Odd' || type === 'Last'),
    );
  }));

test('says that a batch reaches the log’s end only where it does', async () => {
  const recent = openRecentAppends();
  recent.add({ stream: 'a', revision: 4, position: 5, fields: fields('A', 'B', 'C', 'D', 'E') });
  const unread = (): never => {
    throw new Error('the file is read');
  };
  const reader: EventReader = {
    end: () => 5,
    startOfLast: unread,
    lastOf: unread,
    timedWithin: () => 0,
    readStream: unread,
    inSnapshot: unread,
    unsequenced: unread,
    scan: unread,
    scanTexts: unread,
  };
  const batches = await batchesOf(
    feed(undefined, {}, { batchSize: 2 }, { reader, recentAppends: recent, closed: () => false }),
  );
  assert.equal(
    batches.map(({ events: all, position, caughtUp }) => [all.length, position, caughtUp]),
    [
      [2, positionOf(2), false],
      [2, positionOf(4), false],
      [1, positionOf(5), true],
    ],
  );
});

test('lets a follower that falls far behind read on from the file', () =>
  inFolder(async ({ open }) => {
    const store = await open();
    await store.append('s-0', [event()], 'none');
    const seen: number[] = [];
    for await (const batch of store.follow(undefined, {}, { batchSize: 100 })) {
      // More than is kept in memory, before the next read.
      if (seen.length === 0)
        await Promise.all(Array.from({ length: 2_999 }, (_, n) => store.append(`s-${n + 1}`, [event()], 'none')));
      seen.push(...batch.events.map(({ position }) => Number(position)));
      if (seen.length >= 3_000) break;
    }
    assert.equal(
      seen,
      Array.from({ length: 3_000 }, (_, n) => n + 1),
    );
  }));

test.run();

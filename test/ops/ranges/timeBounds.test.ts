import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { generateHistory } from '../../../bench/support/history.js';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import { logRange, readRange } from '../../../src/ops/ranges/range.js';
import { asOf, streamAsOf } from '../../../src/ops/ranges/timeBounds.js';
import { timeZone } from '../../../src/ops/ranges/times.js';
import type { EventStore, NewEvent } from '../../../src/ports/eventStore.js';

const positionAt = async (store: EventStore, time: string): Promise<string | undefined> =>
  (await asOf(store, time))?.position;

const test = suite('audit/timeBounds');

test('an engine that can only be read through gives the same place as one that looks it up', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'time-bounds-'));
  const { events: count } = generateHistory({ dir, events: 8_000 });
  const events = await openEmbeddedEventStore({ dir });
  try {
    const readable: EventStore = { ...events };
    delete readable.timeBounds;
    assert.ok(events.timeBounds !== undefined);
    const times: string[] = [];
    for await (const { events: batch } of events.readAll(undefined)) times.push(...batch.map(({ at }) => at));
    assert.is(times.length, count);
    const between = Array.from({ length: 12 }, (_, n) => times[Math.floor((n / 12) * times.length)]!);
    for (const time of [
      '1999-01-01T00:00:00.000Z',
      times[0]!,
      ...between,
      ...between.map((at) => new Date(Date.parse(at) - 1).toISOString()),
      times.at(-1)!,
      '2999-01-01T00:00:00.000Z',
    ]) {
      const before = times.filter((at) => at <= time).length;
      const expected = before === 0 ? undefined : String(before).padStart(16, '0');
      assert.equal([await positionAt(events, time), await positionAt(readable, time)], [expected, expected], time);
    }
  } finally {
    await events.close();
    rmSync(dir, { recursive: true });
  }
});

test('keeps the position of a past time while the log grows, though times fall', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'time-bounds-'));
  const events = await openEmbeddedEventStore({ dir });
  const readable: EventStore = { ...events };
  delete readable.timeBounds;
  const time = (ms: number): string => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
  const metadata = { commandId: 'c', correlationId: 'c', by: {} } as NewEvent['metadata'];
  // Each was decided up to 7 ms before it was appended.
  const times = Array.from({ length: 64 }, (_, n) => time(n * 2 + ((n * 5) % 8)));
  const places = new Map<string, readonly (string | undefined)[]>();
  try {
    for (const [n, at] of times.entries()) {
      await events.append(
        'gift-000',
        [{ id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`, type: 'GiftClaimed', at, data: {}, metadata }],
        'any',
      );
      // Whatever is appended from now on is later than this.
      const requested = Array.from({ length: n * 2 }, (_, ms) => time(ms));
      for (const one of requested) {
        const found = [await positionAt(events, one), await positionAt(readable, one)];
        assert.equal(found, places.get(one) ?? found, `${one} after ${n + 1} events`);
        places.set(one, found);
      }
      for (const engine of [0, 1]) {
        const inOrder = requested.map((one) => places.get(one)?.[engine] ?? '');
        assert.equal(inOrder, inOrder.toSorted(), 'a later time has no earlier place');
      }
    }
  } finally {
    await events.close();
    rmSync(dir, { recursive: true });
  }
});

test('hides no event of a span from either way of finding it, for a clock ahead or behind', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'time-bounds-'));
  const events = await openEmbeddedEventStore({ dir });
  const readable: EventStore = { ...events };
  delete readable.timeBounds;
  const metadata = { commandId: 'c', correlationId: 'c', by: {} } as NewEvent['metadata'];
  const minute = (n: number): string => new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString();
  // A day and a half ahead from the 20th to the 29th, an hour behind from the 40th to the 44th.
  const times = Array.from({ length: 60 }, (_, n) =>
    minute(n >= 20 && n < 30 ? n + 2_160 : n >= 40 && n < 45 ? n - 60 : n),
  );
  try {
    for (const [n, at] of times.entries()) {
      await events.append(
        'gift-000',
        [{ id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`, type: 'GiftClaimed', at, data: {}, metadata }],
        'any',
      );
    }
    const zone = timeZone('UTC');
    const spans = [
      [0, 15],
      [10, 25],
      [35, 50],
      [-30, 5],
      [2_170, 2_185],
      [50, 2_182],
      [100, 200],
      [-100, 5_000],
      [59, 59],
    ].map(([from = 0, to = 0]) => [minute(from), minute(to)] as const);
    for (const [from, to] of spans) {
      const wanted = times.filter((at) => at >= from && at <= to);
      for (const store of [events, readable]) {
        for (const edges of [{ from, to }, { from }, { to }, {}]) {
          const range = await logRange(store, { zone, ...edges });
          const found: string[] = [];
          for await (const batch of readRange(store, range, {})) found.push(...batch.events.map(({ at }) => at));
          const expected = times.filter((at) => at >= (edges.from ?? '') && at <= (edges.to ?? '~'));
          assert.equal(found, expected, `${JSON.stringify(edges)}`);
        }
      }
      const part = await events.timeBounds?.({ from, to });
      const places =
        wanted.length === 0
          ? undefined
          : [times.indexOf(wanted[0]!), times.lastIndexOf(wanted.at(-1)!) + 1].map((n) =>
              n === 0 ? undefined : String(n).padStart(16, '0'),
            );
      assert.equal(
        part === undefined ? undefined : [part.after, part.through],
        places,
        `${from} to ${to}: the narrowest part`,
      );
      // A state is a beginning of the log that leaves out nothing of that time or before.
      const last = times.findLastIndex((at) => at <= to) + 1;
      const place = last === 0 ? undefined : String(last).padStart(16, '0');
      assert.equal([await positionAt(events, to), await positionAt(readable, to)], [place, place], to);
    }
    assert.is(await events.timeBounds!({ from: minute(0), after: (await events.end())! }), undefined);
  } finally {
    await events.close();
    rmSync(dir, { recursive: true });
  }
});

test('as of a time counts the events before its position that are stamped later', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'stamped-later-'));
  const events = await openEmbeddedEventStore({ dir });
  const readable: EventStore = { ...events };
  delete readable.timeBounds;
  const metadata = { commandId: 'c', correlationId: 'c', by: {} } as NewEvent['metadata'];
  const day = (n: number): string => `2026-11-${String(n).padStart(2, '0')}T12:00:00.000Z`;
  try {
    for (const [n, at] of [day(20), day(28), day(30), day(29), day(27), day(30)].entries())
      await events.append('gift-a', [{ id: `e${n}`, type: 'GiftClaimed', at, data: {}, metadata }], 'any');
    const stream = await events.read('gift-a');
    for (const [time, place, later, revisions] of [
      [day(19), undefined, undefined, []],
      [day(20), 1, 0, [0]],
      [day(27), 5, 3, [0, 4]],
      [day(28), 5, 2, [0, 1, 4]],
      [day(29), 5, 1, [0, 1, 3, 4]],
      [day(30), 6, 0, [0, 1, 2, 3, 4, 5]],
    ] as const)
      for (const store of [events, readable]) {
        const then = await asOf(store, time);
        assert.equal(
          [then === undefined ? undefined : Number(then.position), then?.stampedLater],
          [place, later],
          time,
        );
        assert.equal(then === undefined ? [] : streamAsOf(stream, then).map(({ revision }) => revision), revisions);
      }
    // A stream is not there before its first event, though a later one has an earlier time.
    assert.equal(streamAsOf(stream.slice(2), (await asOf(events, day(29)))!), []);
  } finally {
    await events.close();
    rmSync(dir, { recursive: true });
  }
});

test.run();

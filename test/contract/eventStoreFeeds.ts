import * as assert from 'uvu/assert';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventBatch, EventFilter, EventStore, NewEvent, RecordedEvent } from '../../src/ports/eventStore.js';
import type { Promised } from '../support/engines/eventStoreEvents.js';
import { until } from '../support/assertions/until.js';
import {
  batchesOf,
  event,
  events,
  eventsOf,
  idsOf,
  newStream,
  readUntil,
  within,
} from '../support/engines/eventStoreEvents.js';

async function readAfter(
  store: EventStore,
  start: string | undefined,
  filter: EventFilter,
  batchSize = 1_000,
): Promise<EventBatch[]> {
  return batchesOf(store.readAll(start, filter, { batchSize }));
}

/** The port's guarantees of `readAll` and `follow`. */
export const FEED_PROMISES: Readonly<Record<string, Promised>> = {
  // First, so that it meets a log that holds nothing yet, where the server is a new one.
  async 'a feed without matches stays within the log, and its stored position misses nothing'(store) {
    const type = newStream('Matched');
    const filter = { types: [type] };
    const ending = new AbortController();
    const kept: string[] = [];
    const found: RecordedEvent[] = [];
    let failure: Error | undefined;
    const inLog = async ({ position, events: own }: EventBatch): Promise<void> => {
      const end = await store.end();
      for (const one of [position, ...own.map((event) => event.position)])
        assert.ok(store.isPosition(one) && end !== undefined && one <= end, `${one} in a log that ends at ${end}`);
    };
    const following = (async () => {
      for await (const batch of store.follow(undefined, filter, { signal: ending.signal })) {
        await inLog(batch);
        kept.push(batch.position);
        found.push(...batch.events);
      }
    })().catch((error: unknown) => (failure = error as Error));
    const sees = async (what: string, holds: () => boolean): Promise<void> =>
      until(() => {
        if (failure !== undefined) throw failure;
        return holds();
      }, what);
    // An empty log has no end.
    await sleep(300);
    assert.ok(kept.length > 0 || (await store.end()) === undefined);
    const passedBy = await store.append(newStream(), events(3), 'none');
    await sees('it has passed by what does not match', () => kept.some((position) => position >= passedBy.position));
    for (const batch of await readAfter(store, undefined, filter)) await inLog(batch);
    const before = [...kept];
    const wanted = [event(type), event(type)];
    for (const one of wanted) await store.append(newStream(), [one], 'none');
    await sees('what matches', () => found.length === 2);
    ending.abort();
    await following;
    assert.equal(idsOf(found), idsOf(wanted));
    for (const position of new Set(before)) {
      assert.equal(idsOf(await eventsOf(store.readAll(position, filter))), idsOf(wanted), `read after ${position}`);
      assert.equal(
        idsOf(await readUntil(store.follow(position, filter), (all) => all.length === 2)),
        idsOf(wanted),
        `followed after ${position}`,
      );
    }
  },

  async 'readAll gives 10,000 events once, in order, in batches'(store) {
    const start = await store.end();
    const prefix = newStream();
    const appended: NewEvent[] = [];
    for (let n = 0; n < 10; n++) {
      const batch = events(1_000);
      await store.append(`${prefix}-${n % 3}`, batch, 'any');
      appended.push(...batch);
    }
    const batches = await readAfter(store, start, { streams: [prefix] }, 512);
    const read = batches.flatMap((batch) => batch.events);
    assert.equal(idsOf(read), idsOf(appended));
    assert.ok(batches.every((batch) => batch.events.length <= 512));
    assert.equal(
      batches.map((batch) => batch.caughtUp).indexOf(true),
      batches.length - 1,
      'only the last has caught up',
    );
    assert.ok(read.every((one, index) => index === 0 || one.position > read[index - 1]!.position));
    assert.ok(batches.every((batch) => batch.events.every((one) => one.position <= batch.position)));
    assert.equal(
      idsOf(await eventsOf(store.readAll(read[4_999]!.position, { streams: [prefix] }))),
      idsOf(appended.slice(5_000)),
      'the position itself is not read again',
    );
    assert.equal(
      idsOf((await eventsOf(store.readAll(undefined))).filter(({ stream }) => stream.startsWith(prefix))),
      idsOf(appended),
      'without a filter, from the beginning',
    );
  },

  async 'a log that keeps texts gives them as appended, for the same events in the same order'(store) {
    assert.is(store.readTexts !== undefined, store.engine === 'embedded');
    if (store.readTexts === undefined) return;
    const start = await store.end();
    const appended = [event(), { ...event(), data: { b: 'é"\\n', 1: 1.5, a: [null, {}] } }, ...events(3)];
    await store.append(newStream(), appended, 'none');
    const batches = [];
    for await (const batch of store.readTexts(start, {}, { batchSize: 2 })) batches.push(batch);
    const texts = batches.flatMap((batch) => batch.events);
    assert.equal(
      texts.map(({ data, metadata }) => [data, metadata]),
      appended.map(({ data, metadata }) => [JSON.stringify(data), JSON.stringify(metadata)]),
    );
    assert.equal(
      texts.map((one) => ({ ...one, data: JSON.parse(one.data), metadata: JSON.parse(one.metadata) })),
      (await eventsOf(store.readAll(start))).map((one) => ({ ...one })),
    );
    assert.equal(
      batches.map(({ events: own, caughtUp }) => [own.length, caughtUp]),
      [
        [2, false],
        [2, false],
        [1, true],
      ],
    );
    assert.equal(batches.at(-1)!.position, await store.end());
    for await (const { events: none } of store.readTexts(start, { types: ['another'] })) assert.equal(none, []);
    for await (const _ of store.readTexts(await store.end())) assert.unreachable('it has not grown');
  },

  async 'readAll gives no batch when the log has not grown'(store) {
    await store.append(newStream(), [event()], 'none');
    const end = await store.end();
    assert.equal(await readAfter(store, end, {}), []);
    assert.equal(await readAfter(store, end, { types: [] }), []);
  },

  async 'filters: types, prefixes of stream names, and both'(store) {
    const start = await store.end();
    const run = newStream('run').replaceAll('-', '');
    const a = [event(`A${run}`), event(`B${run}`), event(`C${run}`)];
    const b = [event(`A${run}`), event(`B${run}`)];
    const c = [event(`A${run}`)];
    await store.append(`${run}_x-1`, a, 'none');
    await store.append(`${run}_x-2`, b, 'none');
    await store.append(`${run}Zx-1`, c, 'none');
    const found = async (filter: EventFilter): Promise<string[]> =>
      idsOf((await readAfter(store, start, filter)).flatMap((batch) => batch.events));
    assert.equal(await found({ types: [`A${run}`] }), idsOf([a[0]!, b[0]!, c[0]!]));
    assert.equal(await found({ types: [`A${run}`, `C${run}`] }), idsOf([a[0]!, a[2]!, b[0]!, c[0]!]));
    assert.equal(await found({ streams: [`${run}_x-`] }), idsOf([...a, ...b]), 'a prefix is no pattern');
    assert.equal(await found({ streams: [`${run}_x-2`, `${run}Z`] }), idsOf([...b, ...c]));
    assert.equal(
      await found({ types: [`B${run}`], streams: [`${run}_x-`, `${run}_x-1`] }),
      idsOf([a[1]!, b[1]!]),
      'once, though two prefixes match',
    );
    assert.equal(await found({ types: [`C${run}`], streams: [`${run}Zx`] }), []);
    assert.equal(await found({ types: [`a${run}`] }), [], 'case matters');
    assert.equal(await found({ types: [] }), []);
    assert.equal(await found({ streams: [] }), []);
    assert.equal(await found({ types: [], streams: [run] }), []);
    assert.equal(
      (await found({ streams: [''] })).slice(0, 3),
      (await found({})).slice(0, 3),
      'everything begins with nothing',
    );
  },

  async 'a filtered read advances over what it passes by'(store) {
    const start = await store.end();
    const [wanted, other] = [newStream('wanted'), newStream('other')];
    await store.append(wanted, [event()], 'none');
    const { position } = await store.append(other, events(20), 'none');
    const batches = await readAfter(store, start, { streams: [wanted] });
    assert.is(batches.flatMap((batch) => batch.events).length, 1);
    assert.ok(batches.at(-1)!.position >= position);
    assert.is(batches.at(-1)!.caughtUp, true);
    const [empty, ...more] = await readAfter(store, start, { types: ['None such'] });
    assert.equal(more, []);
    assert.equal([empty!.events, empty!.caughtUp], [[], true]);
    assert.ok(empty!.position >= position);
    await store.append(wanted, [event()], 0);
    assert.equal(
      (await readAfter(store, batches.at(-1)!.position, { streams: [wanted] }))
        .flatMap((batch) => batch.events)
        .map(({ revision }) => revision),
      [1],
    );
  },

  async 'follow gives what is there, says when it has caught up, and goes on with what comes'(store) {
    const start = await store.end();
    const prefix = newStream();
    const old = events(3);
    await store.append(`${prefix}-1`, old, 'none');
    const ending = new AbortController();
    const caughtUpWith: number[] = [];
    const fresh = events(4);
    const seen = await readUntil(
      store.follow(start, { streams: [prefix] }, { signal: ending.signal }),
      (all, { caughtUp }) => {
        if (caughtUp) caughtUpWith.push(all.length);
        const next = fresh[all.length - 3];
        if (caughtUp && next !== undefined) void store.append(`${prefix}-2`, [next], 'any');
        return all.length === 7;
      },
    );
    assert.equal(idsOf(seen), idsOf([...old, ...fresh]));
    assert.is(caughtUpWith[0], 3);
  },

  async 'follow misses and repeats nothing while many append at once'(store) {
    const start = await store.end();
    const prefix = newStream();
    const followers = [1, 7, 1_000].map((batchSize) =>
      readUntil(store.follow(start, { streams: [prefix] }, { batchSize }), (all) => all.length === 600),
    );
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      for (let n = 0; n < 25; n++) await store.append(`${prefix}-${writer}`, events(3), n === 0 ? 'none' : n * 3 - 1);
    });
    await Promise.all(writers);
    const [first, ...others] = await Promise.all(followers);
    assert.is(new Set(idsOf(first!)).size, 600);
    assert.ok(first!.every((one, index) => index === 0 || one.position > first![index - 1]!.position));
    for (const other of others) assert.equal(idsOf(other), idsOf(first!));
    const next = new Map<string, number>();
    for (const { stream, revision } of first!) {
      assert.is(revision, next.get(stream) ?? 0);
      next.set(stream, revision + 1);
    }
  },

  async 'a slow follower is waited for'(store) {
    const start = await store.end();
    const stream = newStream();
    const sizes: number[] = [];
    const seen: RecordedEvent[] = [];
    const following = (async () => {
      for await (const batch of store.follow(start, { streams: [stream] }, { batchSize: 50 })) {
        sizes.push(batch.events.length);
        seen.push(...batch.events);
        if (seen.length === 300) return;
        await sleep(20);
      }
    })();
    for (let n = 0; n < 100; n++) await store.append(stream, events(3), n === 0 ? 'none' : n * 3 - 1);
    await within(30_000, following);
    assert.equal(
      seen.map(({ revision }) => revision),
      Array.from({ length: 300 }, (_, revision) => revision),
    );
    assert.ok(Math.max(...sizes) <= 50);
  },

  async 'a follower that gathers misses nothing, and has at once what it is hurried for'(store) {
    const start = await store.end();
    const stream = newStream();
    const ending = new AbortController();
    const seen: RecordedEvent[] = [];
    const following = (async () => {
      const options = { gatherMs: 600_000, signal: ending.signal };
      for await (const batch of store.follow(start, { streams: [stream] }, options)) seen.push(...batch.events);
    })();
    const appended = events(12);
    for (const [n, one] of appended.entries()) {
      const { position } = await store.append(stream, [one], n === 0 ? 'none' : n - 1);
      store.hurry?.(position);
      await until(() => seen.length === n + 1, `event ${n}`);
    }
    ending.abort();
    await within(20_000, following);
    assert.equal(idsOf(seen), idsOf(appended));
  },

  async 'follow advances when only what it passes by was appended'(store) {
    const start = await store.end();
    const { position } = await store.append(newStream(), [event()], 'none');
    let later: string | undefined;
    const seen = await readUntil(store.follow(start, { types: ['None such'] }), (_, batch) => {
      assert.is(batch.caughtUp, true);
      if (batch.position < position) return false;
      if (later === undefined) {
        later = 'to come';
        // The feed may deliver it before its append is answered: then the next one ends the test.
        void store
          .append(newStream(), [event()], 'none')
          .then((appended) => (later = appended.position))
          .then(() => store.append(newStream(), [event()], 'none'));
        return false;
      }
      return batch.position >= later;
    });
    assert.equal(seen, []);
  },

  async 'a signal ends readAll and follow without an error'(store) {
    const stream = newStream();
    await store.append(stream, events(10), 'none');
    const filter = { streams: [stream] };
    assert.equal(await batchesOf(store.readAll(undefined, filter, { signal: AbortSignal.abort() })), []);
    assert.equal(await batchesOf(store.follow(undefined, filter, { signal: AbortSignal.abort() })), []);
    for (const read of [store.readAll.bind(store), store.follow.bind(store)]) {
      const ending = new AbortController();
      let batches = 0;
      for await (const batch of read(undefined, filter, { batchSize: 2, signal: ending.signal })) {
        batches += 1;
        if (batch.events.length > 0) ending.abort();
      }
      assert.ok(batches >= 1);
    }
    const waiting = new AbortController();
    const following = batchesOf(store.follow(await store.end(), filter, { signal: waiting.signal }));
    setTimeout(() => waiting.abort(), 30);
    assert.equal(
      (await within(20_000, following)).flatMap((batch) => batch.events),
      [],
    );
  },

  async 'leaving a feed early disturbs nothing'(store) {
    const stream = newStream();
    await store.append(stream, events(10), 'none');
    for (let n = 0; n < 20; n++) {
      for await (const batch of store.readAll(undefined, { streams: [stream] }, { batchSize: 1 })) {
        if (batch.events.length > 0) break;
      }
    }
    assert.is((await eventsOf(store.readAll(undefined, { streams: [stream] }))).length, 10);
  },
};

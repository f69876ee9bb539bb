/** What a batch costs a follower, on the server's double: how often one comes. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventBatch, EventStore, ReadOptions } from '../../../src/ports/eventStore.js';
import { event, idsOf, newStream, within } from '../../support/engines/eventStoreEvents.js';
import { eventually, until } from '../../support/assertions/until.js';
import { onDouble } from '../../support/engines/eventStoreDb.js';

const test = suite('EventStoreDB: gathering');

const EVENTS = 60;

/** Appends events for over half a second, one by one. @returns the follower's batches since, up to `enough` */
async function batchesWhile(
  store: EventStore,
  stream: string,
  types: readonly string[],
  options: ReadOptions,
  enough: (batches: readonly EventBatch[], last: string) => boolean,
): Promise<EventBatch[]> {
  const ending = new AbortController();
  const batches: EventBatch[] = [];
  const start = await store.end();
  const following = (async () => {
    for await (const batch of store.follow(start, { types }, { ...options, signal: ending.signal }))
      batches.push(batch);
  })();
  let last = '';
  for (let n = 0; n < EVENTS; n++) {
    const appended = await store.append(stream, [event('Counted')], n === 0 ? 'none' : n - 1);
    last = appended.position;
    await sleep(10);
  }
  await until(() => enough(batches, last), 'the last event');
  ending.abort();
  await within(20_000, following);
  return batches;
}

test('events that come one by one are gathered, after a few that come at once', async () => {
  const { store, destroy } = await onDouble();
  try {
    const count = (batches: readonly EventBatch[]): number => batches.flatMap(({ events }) => events).length;
    const stream = newStream();
    const batches = await batchesWhile(store, stream, ['Counted'], { gatherMs: 200 }, (all) => count(all) === EVENTS);
    const stored = await store.read(stream);
    assert.equal(idsOf(batches.flatMap(({ events }) => events)), idsOf(stored));
    assert.ok(batches.length >= 6 && batches.length <= EVENTS / 2, `${batches.length} batches`);
    for (const { events } of batches.slice(0, 4)) assert.ok(events.length <= 3, `${events.length} events at once`);
  } finally {
    await destroy();
  }
});

test('what was hurried leaves no debt: the next event waits no longer than ever', async () => {
  const { store, destroy } = await onDouble();
  const ending = new AbortController();
  try {
    const stream = newStream();
    const start = await store.end();
    let seen = 0;
    const following = (async () => {
      const options = { gatherMs: 200, signal: ending.signal };
      for await (const { events } of store.follow(start, { streams: [stream] }, options)) seen += events.length;
    })();
    for (let n = 0; n <= EVENTS; n++) {
      const { position } = await store.append(stream, [event()], n === 0 ? 'none' : n - 1);
      if (n < EVENTS) store.hurry?.(position);
      await eventually(() => seen === n + 1, `event ${n}`);
    }
    ending.abort();
    await within(20_000, following);
  } finally {
    ending.abort();
    await destroy();
  }
});

test('a follower is seldom woken by what its filter leaves out, and advances all the same', async () => {
  const { store, destroy } = await onDouble();
  try {
    await store.append(newStream(), [event('Before')], 'none');
    const passed = (batches: readonly EventBatch[], last: string): boolean => (batches.at(-1)?.position ?? '') >= last;
    const batches = await batchesWhile(store, newStream(), ['None such'], {}, passed);
    assert.ok(batches.length <= EVENTS / 3, `${batches.length} batches`);
    assert.ok(batches.every(({ events }) => events.length === 0));
  } finally {
    await destroy();
  }
});

test.run();

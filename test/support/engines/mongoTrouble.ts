/** Calls of tests with a server in trouble, and their deadlines. */
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { CollectionSpec, ReadStore } from '../../../src/ports/readStore.js';
import { at, batch, doc, projectionOf, rejectionOf } from './readStoreDocuments.js';

/** A call's time, in ms, and its rejection. */
export async function failing(work: () => Promise<unknown>): Promise<{ readonly error: Error; readonly ms: number }> {
  const started = performance.now();
  const error = await rejectionOf(work());
  return { error, ms: performance.now() - started };
}

/** Asks again and again until it is answered. @returns after how many ms. */
export async function recovered(ask: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  for (;;) {
    const answered = await ask().then(
      () => true,
      () => false,
    );
    const ms = performance.now() - started;
    if (answered) return ms;
    assert.ok(ms < 60_000, 'it never recovers');
    await sleep(20);
  }
}

/** Everything that a caller may ask, on a collection of one document. */
export function everyCall(store: ReadStore, collection: CollectionSpec): Record<string, () => Promise<unknown>> {
  return {
    get: () => store.get(collection, 'd1'),
    getMany: () => store.getMany(collection, ['d1']),
    find: () => store.find(collection, { where: { n: 1 } }),
    count: () => store.count(collection, {}),
    write: () => store.write([batch(collection, [doc('d1', 1, { n: 1 })], 1)]),
    checkpoint: () => store.checkpoint(projectionOf(collection)),
    reached: () => store.reached(projectionOf(collection), at(99), 0),
    active: () => store.active(collection.name),
    activate: () => store.activate(collection.name, 1),
    boundTo: () => store.boundTo('log'),
    ensure: () => store.ensure(collection),
    'records.get': () => store.records.get('r'),
    'records.put': () => store.records.put('r', 1),
    'records.delete': () => store.records.delete('r'),
    'records.list': () => store.records.list(''),
    ping: () => store.ping(),
  };
}

/** Calls of tests with a server in trouble. */
import type { CollectionSpec, ReadStore } from '../../../src/ports/readStore.js';
import { until } from '../assertions/until.js';
import { at, batch, doc, projectionOf } from './readStoreDocuments.js';

/** Asks again and again until it is answered. */
export async function recovered(ask: () => Promise<unknown>): Promise<void> {
  await until(
    async () =>
      ask().then(
        () => true,
        () => false,
      ),
    'an answer',
  );
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

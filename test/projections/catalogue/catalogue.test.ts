import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type CatalogueDocument, catalogueProjection } from '../../../src/projections/catalogue/catalogue.js';
import { importInto, wholeFile } from '../../support/fixtures/importFile.js';
import { type MemoryEvents, memoryEvents } from '../../support/engines/memoryEvents.js';

function project(events: MemoryEvents): Map<string, CatalogueDocument> {
  const documents = new Map<string, CatalogueDocument>();
  for (const event of events.log.filter(({ type }) => catalogueProjection.types.includes(type))) {
    catalogueProjection
      .documentIds(event)
      .forEach((id, index) => documents.set(id, catalogueProjection.evolve(documents.get(id), event, id, index)));
  }
  return documents;
}

const test = suite('projections/catalogue');

test('every entry of the catalogue has its document, and no account has', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const documents = project(events);
  assert.equal(
    [...documents.keys()],
    [
      'integration-1',
      'merchant-m1',
      'segment-g1',
      'brand-b1',
      'brand-b2',
      'product-p1',
      'product-p2',
      'store-s1',
      'category-c1',
    ],
  );
  const product = documents.get('product-p1');
  assert.is(product?.entry, 'product');
  assert.is(product?.added, product?.changed);
  assert.is(product?.retired, false);
  assert.is(product?.value.name, 'Coffee');
});

test('records in a document where it was first added and last changed', () => {
  const events = memoryEvents();
  events.given('store-s', { type: 'StoreAdded', data: { id: 's', name: 'S' } });
  events.given('store-s', { type: 'StoreChanged', data: { name: 'T' } });
  events.given('store-s', { type: 'StoreRetired', data: { reason: '' } });
  const [added, , retired] = events.log.map(({ position }) => position);
  assert.equal(project(events).get('store-s'), {
    entry: 'store',
    added,
    changed: retired,
    retired: true,
    value: { id: 's', name: 'T' },
  });
  events.given('store-s', { type: 'StoreChanged', data: { name: 'U' } });
  assert.is(project(events).get('store-s')?.retired, true);
  events.given('store-s', { type: 'StoreAdded', data: { id: 's', name: 'V' } });
  assert.equal(project(events).get('store-s'), {
    entry: 'store',
    added,
    changed: events.log.at(-1)?.position,
    retired: false,
    value: { id: 's', name: 'V' },
  });
});

test('a change before anything was added is an error', () => {
  const events = memoryEvents();
  events.given('store-s', { type: 'StoreChanged', data: {} });
  assert.throws(() => project(events), 'StoreChanged comes before anything was added to store-s');
});

test.run();

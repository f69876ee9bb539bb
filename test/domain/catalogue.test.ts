import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CATALOGUE_KINDS, catalogueStream } from '../../src/domain/catalogue.js';
import { entryEventType } from '../../src/domain/entry.js';

const test = suite('domain/catalogue');

test('imports entries before those that refer to them', () => {
  const before = (first: (typeof CATALOGUE_KINDS)[number], second: (typeof CATALOGUE_KINDS)[number]): void =>
    assert.ok(CATALOGUE_KINDS.indexOf(first) < CATALOGUE_KINDS.indexOf(second), `${first} before ${second}`);
  before('integration', 'brand');
  before('merchant', 'brand');
  before('brand', 'product');
  before('segment', 'product');
  before('brand', 'store');
  before('product', 'category');
});

test('streams and event types are named by kind', () => {
  assert.is(catalogueStream('product', 'a-b'), 'product-a-b');
  assert.is(entryEventType('product', 'Added'), 'ProductAdded');
  assert.is(entryEventType('paymentMethod', 'Retired'), 'PaymentMethodRetired');
});

test.run();

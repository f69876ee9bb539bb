import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  brandEntity,
  categoryEntity,
  integrationEntity,
  productEntity,
  segmentEntity,
  storeEntity,
} from '../../src/entities/catalogue.js';
import { embeddedCollector } from '../../src/entities/embedded.js';
import { brand, catalogueOf, category, product, segment, store } from '../support/fixtures/catalogue.js';

const test = suite('entities');

test('a product has its price in pence and in pounds', () => {
  const shown = productEntity(
    product('p', 'b', {
      name: 'Tea',
      description: 'Hot',
      sale_price: 1050,
      image_url: 'https://x.example/p',
      segments: ['s'],
      valid_days: 30,
    }),
  );
  assert.equal(shown, {
    id: 'p',
    brand_id: 'b',
    name: 'Tea',
    description: 'Hot',
    sale_price: 1050,
    price: '10.50',
    image_url: 'https://x.example/p',
    active: true,
    segments: ['s'],
    valid_days: 30,
  });
});

test("shows a brand's products as far as the caller may see them, and never who else sees it", async () => {
  const own = brand('own', {
    integration_id: '3',
    consolidated_products: ['many', 'few', 'off', 'gone'],
    visible_to: ['ada'],
    description: 'd',
    image_url: 'https://x.example/b',
  });
  const catalogue = await catalogueOf({
    brand: [own, brand('all', { consolidated: 1 }), brand('some', { consolidated: 1, visible_to: ['ben'] })],
    product: [
      product('a', 'own'),
      product('b', 'own', { active: false }),
      product('many', 'all'),
      product('few', 'some'),
      product('off', 'all', { active: false }),
    ],
  });
  assert.equal(brandEntity(catalogue, own, 'ada'), {
    id: 'own',
    name: 'Brand own',
    description: 'd',
    image_url: 'https://x.example/b',
    merchant_id: 'merchant',
    integration_id: '3',
    active: true,
    consolidated: 0,
    products: ['a'],
    consolidated_products: ['many'],
  });
  assert.equal(brandEntity(catalogue, own, undefined).products, [], 'its own products are as invisible as the brand');
});

test('a consolidated brand accepts no consolidated products', async () => {
  const both = brand('c', { consolidated: 1, consolidated_products: ['p'] });
  const catalogue = await catalogueOf({ brand: [both], product: [product('p', 'c')] });
  const shown = brandEntity(catalogue, both, undefined);
  assert.equal([shown.products, shown.consolidated_products], [['p'], []]);
});

test('a category names the products that the caller may see, in its own order', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('open'), brand('closed', { visible_to: ['ada'] })],
    product: [product('one', 'open'), product('two', 'closed'), product('three', 'open', { active: false })],
  });
  const listed = category('k', ['two', 'three', 'one', 'unknown'], { featured: 1, image_url: 'https://x.example/k' });
  assert.equal(categoryEntity(catalogue, listed, undefined), {
    id: 'k',
    name: 'Category k',
    image_url: 'https://x.example/k',
    type: 'Category',
    featured: 1,
    products: ['one'],
  });
  assert.equal(categoryEntity(catalogue, listed, 'ada').products, ['two', 'one']);
});

test('stores, segments and integrations show what they are', () => {
  const shop = store('s', 'b', { address: '1 High Street', postcode: 'CF10 1AT', longitude: -3.1792, latitude: 51.48 });
  assert.equal(storeEntity(shop), {
    id: 's',
    brand_id: 'b',
    name: 'Store s',
    address: '1 High Street',
    postcode: 'CF10 1AT',
    longitude: -3.1792,
    latitude: 51.48,
  });
  const kind = segment('g', { voucherType: 'alpha/pin', expiry: 30, configuration: { digits: 16 } });
  assert.equal(segmentEntity(kind), {
    id: 'g',
    name: 'Segment g',
    voucherType: 'alpha/pin',
    expiry: 30,
    configuration: { digits: 16 },
  });
  assert.equal(integrationEntity({ id: '1', name: 'Till' }), { id: '1', name: 'Till' });
});

test('an entity is embedded once, made once, and a kind that is only requested is empty', () => {
  const collector = embeddedCollector();
  let made = 0;
  const make = (): object => ({ made: ++made });
  collector.request('brands');
  collector.add('products', '1', make);
  collector.add('products', '2', make);
  collector.add('products', '1', make);
  collector.request('products');
  assert.equal(collector.result(), { brands: [], products: [{ made: 1 }, { made: 2 }] });
  assert.equal(embeddedCollector().result(), {});
});

test.run();

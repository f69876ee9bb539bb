import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { productRoutes } from '../../../src/api/catalogue/products.js';
import type { Route } from '../../../src/api/pipeline/route.js';
import { asUser, bodyOf, type Request } from '../../support/service/calls.js';
import { brand, catalogueOf, product, viewOf } from '../../support/fixtures/catalogue.js';
import { turnsDuring } from '../../support/assertions/turns.js';

const test = suite('products');

const LIST = '/api/v2/products';
let routes: Route[];

test.before(async () => {
  const catalogue = await catalogueOf({
    brand: [brand('open'), brand('other'), brand('closed', { visible_to: ['ada'] }), brand('off', { active: false })],
    product: [
      product('tea', 'open', { name: 'Pot of tea', description: 'Leaf tea with milk', sale_price: 500 }),
      product('coffee', 'open', { name: 'Flat white', description: 'Coffee with milk', sale_price: 375 }),
      product('brulee', 'other', { name: 'Crème brûlée', description: 'Cracked at the table', sale_price: 900 }),
      product('secret', 'closed', { name: 'Staff lunch', description: 'With milk', sale_price: 600 }),
      product('sold', 'open', { name: 'Old blend', active: false }),
      product('orphan', 'off', { name: 'Old brand' }),
    ],
  });
  routes = productRoutes({ catalogue: viewOf(catalogue) });
});

async function ids(query: string, as?: Request['as']): Promise<string[]> {
  const body = await bodyOf(routes, LIST, { query, ...(as === undefined ? {} : { as }) });
  return (body['data'] as { id: string }[]).map(({ id }) => id);
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'answered',
    (error: unknown) => (error as Error).message,
  );
}

test('shows a client the active products of active brands that everyone sees, in order', async () => {
  assert.equal(await ids(''), ['tea', 'coffee', 'brulee']);
});

test('a user sees those of brands visible to them besides', async () => {
  assert.equal(await ids('', asUser('ada')), ['tea', 'coffee', 'brulee', 'secret']);
  assert.equal(await ids('', asUser('ben')), ['tea', 'coffee', 'brulee']);
});

test('prices are bounds that belong to the range', async () => {
  assert.equal(await ids('min_price=500'), ['tea', 'brulee']);
  assert.equal(await ids('max_price=500'), ['tea', 'coffee']);
  assert.equal(await ids('min_price=500&max_price=500'), ['tea']);
  assert.equal(await ids('min_price=0'), ['tea', 'coffee', 'brulee']);
  assert.equal(await ids('max_price=0'), []);
  assert.equal(await ids('min_price=900&max_price=100'), []);
});

test('prices are whole pence', async () => {
  assert.is(await refusal(ids('min_price=-1')), 'min_price must be at least 0');
  for (const price of ['9007199254740993', '9'.repeat(400)])
    assert.is(await refusal(ids(`max_price=${price}`)), 'max_price must be at most 2147483647');
  assert.is(await refusal(ids('max_price=ten')), 'max_price must be a whole number');
  assert.is(await refusal(ids('max_price=9.99')), 'max_price must be a whole number');
});

test('brand_id and id are lists of which any will do; together both must hold', async () => {
  assert.equal(await ids('brand_id[]=other'), ['brulee']);
  assert.equal(await ids('brand_id[]=other&brand_id[]=open'), ['tea', 'coffee', 'brulee']);
  assert.equal(await ids('id[]=coffee&id[]=brulee&id[]=unknown'), ['coffee', 'brulee']);
  assert.equal(await ids('id=coffee'), ['coffee']);
  assert.equal(await ids('brand_id[]=open&id[]=brulee'), []);
  assert.equal(await ids('id[]=secret&id[]=sold&id[]=orphan'), [], 'a filter shows nothing that the list would not');
});

test('q finds by name and description, and the other filters hold as well', async () => {
  assert.equal(await ids('q=creme%20brulee'), ['brulee']);
  assert.equal((await ids('q=milk')).sort(), ['coffee', 'tea']);
  assert.equal(await ids('q=milk&max_price=400'), ['coffee']);
  assert.equal(await ids('q=staff'), []);
  assert.equal(await ids('q=staff', asUser('ada')), ['secret']);
  assert.equal(
    (await ids('q=staff%20milk')).sort(),
    ['coffee', 'tea'],
    'what nobody else sees hides nothing from them',
  );
  assert.equal(await ids('q=staff%20milk', asUser('ada')), ['secret']);
  assert.equal(await ids('q=pot%20milk&max_price=400'), ['coffee'], 'nor does what was filtered out');
});

test('a blank q filters nothing, one of signs finds nothing', async () => {
  assert.equal(await ids('q='), ['tea', 'coffee', 'brulee']);
  assert.equal(await ids('q=%20%09'), ['tea', 'coffee', 'brulee']);
  assert.equal(await ids('q=%F0%9F%8E%81%21'), []);
});

test('q has at most 200 characters', async () => {
  assert.equal(await ids(`q=${'x'.repeat(200)}`), []);
  assert.is(await refusal(ids(`q=${'x'.repeat(201)}`)), 'q: at most 200 characters');
});

test('brands are embedded once each, and only on request', async () => {
  assert.equal(Object.keys(await bodyOf(routes, LIST)), ['data']);
  const { embedded } = await bodyOf(routes, LIST, { query: 'embed[]=brand' });
  assert.equal(
    (embedded as { brands: { id: string }[] }).brands.map(({ id }) => id),
    ['open', 'other'],
  );
  assert.equal((await bodyOf(routes, LIST, { query: 'embed[]=brand&id[]=none' }))['embedded'], { brands: [] });
});

test('one product, with its brand on request', async () => {
  const alone = await bodyOf(routes, `${LIST}/:id`, { params: { id: 'tea' } });
  assert.equal([Object.keys(alone), (alone['data'] as { price: string }).price], [['data'], '5.00']);
  const { embedded } = await bodyOf(routes, `${LIST}/:id`, { params: { id: 'tea' }, query: 'embed[]=brand' });
  assert.equal(
    (embedded as { brands: { id: string; products: string[] }[] }).brands.map(({ id, products }) => [id, products]),
    [['open', ['tea', 'coffee']]],
  );
});

test('a product that the caller may not buy is not found, like one that does not exist', async () => {
  for (const id of ['unknown', 'secret', 'sold', 'orphan', '__proto__', '']) {
    assert.is(await refusal(bodyOf(routes, `${LIST}/:id`, { params: { id } })), 'Product not found', id);
  }
  assert.is(await refusal(bodyOf(routes, `${LIST}/:id`)), 'Product not found');
  assert.is(
    ((await bodyOf(routes, `${LIST}/:id`, { params: { id: 'secret' }, as: asUser('ada') }))['data'] as { id: string })
      .id,
    'secret',
  );
});

test('a long list lets other requests have their turn while it is put together', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    product: Array.from({ length: 50_000 }, (_, n) => product(`p${n}`, 'b')),
  });
  const large = productRoutes({ catalogue: viewOf(catalogue) });
  assert.ok((await turnsDuring(() => bodyOf(large, '/api/v2/products', { query: 'embed[]=brand' }))) > 1);
});

test.run();

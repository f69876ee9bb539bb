import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { categoryRoutes } from '../../../src/api/catalogue/categories.js';
import type { Route } from '../../../src/api/pipeline/route.js';
import { asUser, bodyOf } from '../../support/service/calls.js';
import { brand, catalogueOf, category, product, viewOf } from '../../support/fixtures/catalogue.js';
import { turnsDuring } from '../../support/assertions/turns.js';

const test = suite('categories');

const LIST = '/api/v2/product-tags/categories';
let routes: Route[];

test.before(async () => {
  const catalogue = await catalogueOf({
    brand: [brand('cafe'), brand('staff', { visible_to: ['ada'] })],
    product: [product('tea', 'cafe'), product('cake', 'cafe'), product('lunch', 'staff')],
    category: [
      category('drinks', ['tea'], { featured: 1 }),
      category('food', ['lunch', 'cake', 'tea']),
      category('hidden', ['lunch']),
      ...Array.from({ length: 20 }, (_, index) => category(`more-${index}`, [])),
    ],
  });
  routes = categoryRoutes({ catalogue: viewOf(catalogue), publicUrl: 'http://gifts.example' });
});

function idsOf(list: unknown): string[] {
  return (list as { id: string }[]).map(({ id }) => id);
}

test('a page of categories, with its neighbours', async () => {
  const first = await bodyOf(routes, LIST);
  assert.equal(idsOf(first['data']).slice(0, 3), ['drinks', 'food', 'hidden']);
  assert.equal(
    [first['total'], first['per_page'], first['last_page'], first['from'], first['to'], first['embedded']],
    [23, 20, 2, 1, 20, []],
  );
  const second = await bodyOf(routes, LIST, { query: 'page=4&per_page=5&embed[]=products' });
  assert.equal(idsOf(second['data']), ['more-12', 'more-13', 'more-14', 'more-15', 'more-16']);
  assert.is(second['next_page_url'], `http://gifts.example${LIST}?page=5&per_page=5&embed%5B%5D=products`);
  assert.is(second['path'], `http://gifts.example${LIST}`);
});

test('pages count from 1 and hold at most 100', async () => {
  for (const [query, message] of [
    ['page=0', 'page must be at least 1'],
    ['page=x', 'page must be a whole number'],
    ['page=', 'page must be a whole number'],
    ['per_page=0', 'per_page must be at least 1'],
    ['per_page=101', 'per_page must be at most 100'],
    ['page=1&page=2', 'page must be given only once'],
  ] as const) {
    assert.is(
      await bodyOf(routes, LIST, { query }).then(
        () => 'answered',
        (error: unknown) => (error as Error).message,
      ),
      message,
      query,
    );
  }
});

test('products that the caller may not see are left out, the category stays', async () => {
  const asClient = await bodyOf(routes, LIST, { query: 'per_page=3' });
  assert.equal(
    (asClient['data'] as { products: string[] }[]).map(({ products }) => products),
    [['tea'], ['cake', 'tea'], []],
  );
  const asAda = await bodyOf(routes, LIST, { query: 'per_page=3', as: asUser('ada') });
  assert.equal(
    (asAda['data'] as { products: string[] }[]).map(({ products }) => products),
    [['tea'], ['lunch', 'cake', 'tea'], ['lunch']],
  );
});

test('products are embedded once each, and only those of the page', async () => {
  const { embedded } = await bodyOf(routes, LIST, { query: 'per_page=2&embed[]=products' });
  assert.equal(
    Object.entries(embedded as object).map(([kind, list]) => [kind, idsOf(list)]),
    [['products', ['tea', 'cake']]],
  );
  assert.equal((await bodyOf(routes, LIST, { query: 'page=2&embed[]=products.brand' }))['embedded'], {
    products: [],
    brands: [],
  });
});

test('products.brand embeds products and brands', async () => {
  const { embedded } = await bodyOf(routes, LIST, { query: 'embed[]=products.brand', as: asUser('ada') });
  assert.equal(
    Object.entries(embedded as object).map(([kind, list]) => [kind, idsOf(list)]),
    [
      ['products', ['tea', 'lunch', 'cake']],
      ['brands', ['cafe', 'staff']],
    ],
  );
});

test('one category', async () => {
  const alone = await bodyOf(routes, `${LIST}/:id`, { params: { id: 'drinks' } });
  assert.equal(alone, {
    data: { id: 'drinks', name: 'Category drinks', image_url: '', type: 'Category', featured: 1, products: ['tea'] },
  });
  const { embedded } = await bodyOf(routes, `${LIST}/:id`, { params: { id: 'food' }, query: 'embed[]=products' });
  assert.equal(idsOf((embedded as { products: unknown }).products), ['cake', 'tea']);
});

test('an unknown category is not found', async () => {
  for (const params of [{ id: 'unknown' }, {}]) {
    const message = await bodyOf(routes, `${LIST}/:id`, { params: params as Record<string, string> }).then(
      () => 'answered',
      (error: unknown) => (error as Error).message,
    );
    assert.is(message, 'Category not found');
  }
});

test('a large page lets other requests have their turn while it is put together', async () => {
  const names = Array.from({ length: 100 }, (_, n) => `c${n}`);
  const products = names.flatMap((name) => Array.from({ length: 300 }, (_, n) => `${name}p${n}`));
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    product: products.map((name) => product(name, 'b')),
    category: names.map((name) =>
      category(
        name,
        products.filter((one) => one.startsWith(`${name}p`)),
      ),
    ),
  });
  const large = categoryRoutes({ catalogue: viewOf(catalogue), publicUrl: 'https://gifts.example' });
  assert.ok(
    (await turnsDuring(() =>
      bodyOf(large, '/api/v2/product-tags/categories', { query: 'per_page=100&embed[]=products' }),
    )) > 1,
  );
});

test.run();

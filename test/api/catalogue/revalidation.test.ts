import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { brandRoutes } from '../../../src/api/catalogue/brands.js';
import { productRoutes } from '../../../src/api/catalogue/products.js';
import { revalidated } from '../../../src/api/catalogue/revalidation.js';
import type { Call, Route } from '../../../src/api/pipeline/route.js';
import type { Principal } from '../../../src/api/pipeline/principal.js';
import type { Catalogue } from '../../../src/projections/catalogue/wholeCatalogue.js';
import { brand, catalogueOf, product } from '../../support/fixtures/catalogue.js';
import { asUser } from '../../support/service/calls.js';
import { eventually } from '../../support/assertions/until.js';
import { type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('revalidation of the catalogue');

const PATHS = [
  '/api/v2/products?embed[]=brand',
  '/api/v2/products?q=coffee',
  '/api/v2/brands',
  '/api/v2/product-tags/categories',
  '/api/v2/tiles/-0.14,51.52:-0.11,51.50',
];
let service: Service;

test.before(async () => {
  service = await startService();
  // A tag names what a process knows of the catalogue: from here on that is all of the import.
  const shown = await service.ask('GET', '/api/v2/brands', {
    token: await service.clientToken(),
    headers: { 'gift-position': `${service.events.logId}:${await service.events.end()}` },
  });
  assert.equal(shown.status, 200, shown.text);
});
test.after(() => service.close());

async function get(path: string, condition?: string, token?: string): Promise<Reply> {
  return service.ask('GET', path, {
    token: token ?? (await service.clientToken()),
    headers: condition === undefined ? {} : { 'If-None-Match': condition },
  });
}

const tagOf = ({ headers }: { readonly headers: Headers }): string => headers.get('etag') ?? '';

test('answers 304 without a body to a caller that has the present answer', async () => {
  const tags = new Set<string>();
  for (const path of PATHS) {
    const first = await get(path);
    const tag = tagOf(first);
    assert.deepEqual([first.status, first.headers.get('cache-control')], [200, 'private, no-cache'], path);
    assert.match(tag, /^W\/"[\w-]{22}"$/);
    tags.add(tag);
    for (const condition of [tag, tag.slice(2), `"other", ${tag}`, '*']) {
      const again = await get(path, condition);
      assert.deepEqual(
        [again.status, again.text, tagOf(again), again.headers.get('cache-control')],
        [304, '', tag, 'private, no-cache'],
        `${path} ${condition}`,
      );
      assert.equal(again.headers.get('content-type'), null);
      assert.ok(again.headers.get('x-request-id'));
    }
    for (const condition of ['"other"', `${tag.slice(0, -2)}"`, 'nonsense'])
      assert.equal((await get(path, condition)).status, 200, condition);
  }
  assert.equal(tags.size, PATHS.length);
});

test('refuses a request before it looks at its condition', async () => {
  const [path = ''] = PATHS;
  for (const [requested, status, token] of [
    [path, 401, 'nonsense'],
    ['/api/v2/products/unknown', 404, undefined],
    ['/api/v2/products?min_price=x', 422, undefined],
    ['/api/v2/tiles/nowhere', 422, undefined],
  ] as const)
    assert.equal((await get(requested, '*', token)).status, status, requested);
});

test('answers anew after an import', async () => {
  const path = '/api/v2/product-tags/categories';
  const tag = tagOf(await get(path));
  assert.equal((await get(path, tag)).status, 304);
  await service.import({ categories: [{ id: 'fresh', name: 'Fresh', image_url: '', featured: 0, products: [] }] });
  const fresh = await eventually(async () => {
    const reply = await get(path, tag);
    return reply.status === 304 ? undefined : reply;
  });
  assert.equal(fresh.status, 200);
  assert.ok(fresh.text.includes('"fresh"'));
  assert.notEqual(tagOf(fresh), tag);
});

const callOf = (path: string, principal: Principal, condition?: string): Call =>
  ({ params: {}, query: {}, embeds: [], principal, path, rawQuery: '', header: () => condition }) as unknown as Call;

const answered = async (route: Route | undefined, principal: Principal, condition?: string) => {
  const answer = await route?.handle?.(callOf('/api/v2/brands', principal, condition));
  return { status: answer?.status ?? 200, tag: answer?.headers?.['ETag'] };
};

const catalogueWith = (price: number): Promise<Catalogue> =>
  catalogueOf({
    brand: [brand('cafe'), brand('staff', { visible_to: ['ada'] })],
    product: [product('tea', 'cafe', { sale_price: price }), product('lunch', 'staff')],
  });

test('tags what the caller sees: alike for those who see the same, and by content alone', async () => {
  const of = (catalogue: Catalogue, version = '1'): Route | undefined => {
    const view = { current: () => catalogue, close: async () => undefined };
    return revalidated(brandRoutes({ catalogue: view }), { catalogue: view, publicUrl: 'http://x', version })[0];
  };
  const route = of(await catalogueWith(100));
  const { tag } = await answered(route, asUser('ben'));
  assert.ok(tag);
  assert.equal((await answered(route, asUser('dan'))).tag, tag);
  assert.notEqual((await answered(route, asUser('ada'))).tag, tag);
  assert.equal((await answered(route, asUser('ada'), tag)).status, 200);
  assert.equal((await answered(of(await catalogueWith(100)), asUser('ben'))).tag, tag);
  assert.notEqual((await answered(of(await catalogueWith(101)), asUser('ben'))).tag, tag);
  assert.notEqual((await answered(of(await catalogueWith(100), '2'), asUser('ben'))).tag, tag);
});

test('gives no tag where the catalogue changes while the answer is made', async () => {
  const states = [await catalogueWith(100), await catalogueWith(100), await catalogueWith(101)];
  const view = { current: () => states.shift() ?? assert.fail(), close: async () => undefined };
  const [route] = revalidated(brandRoutes({ catalogue: view }), {
    catalogue: view,
    publicUrl: 'http://x',
    version: '1',
  });
  assert.deepEqual(await answered(route, asUser('ben'), '*'), { status: 200, tag: undefined });
});

test('gives no tag where the catalogue changes after the entity was found', async () => {
  const states = [await catalogueWith(100), await catalogueWith(101)];
  const view = { current: () => states[0] ?? assert.fail(), close: async () => undefined };
  const routes = revalidated(productRoutes({ catalogue: view }), {
    catalogue: view,
    publicUrl: 'http://x',
    version: '1',
  });
  const call = { ...callOf('/api/v2/products/tea', asUser('ben')), params: { id: 'tea' } };
  const handler = await routes.find(({ open }) => open !== undefined)?.open?.(call);
  states.shift();
  const answer = await handler?.(call);
  const body = answer?.body as { readonly data: { readonly sale_price: number } } | undefined;
  assert.equal(body?.data.sale_price, 100);
  assert.equal(answer?.headers?.['ETag'], undefined);
});

test.run();

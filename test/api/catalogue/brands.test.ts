import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { brandRoutes } from '../../../src/api/catalogue/brands.js';
import type { Route } from '../../../src/api/pipeline/route.js';
import { asUser, bodyOf, type Request } from '../../support/service/calls.js';
import { brand, catalogueOf, product, store, viewOf } from '../../support/fixtures/catalogue.js';
import { turnsDuring } from '../../support/assertions/turns.js';

const test = suite('brands');

const LIST = '/api/v2/brands';
let routes: Route[];

test.before(async () => {
  const catalogue = await catalogueOf({
    brand: [
      brand('cafe', { consolidated_products: ['card', 'card-off'] }),
      brand('accepts', { consolidated_products: ['card', 'staff-card'] }),
      brand('accepts-none', { consolidated_products: ['card-off', 'staff-card'] }),
      brand('empty'),
      brand('off', { active: false }),
      brand('staff', { visible_to: ['ada'] }),
      brand('gather', { consolidated: 1 }),
      brand('gather-staff', { consolidated: 1, visible_to: ['ada'] }),
    ],
    product: [
      product('tea', 'cafe'),
      product('tea-off', 'cafe', { active: false }),
      product('none', 'empty', { active: false }),
      product('late', 'off'),
      product('lunch', 'staff'),
      product('card', 'gather'),
      product('card-off', 'gather', { active: false }),
      product('staff-card', 'gather-staff'),
    ],
    store: [store('s1', 'cafe'), store('s2', 'cafe'), store('s3', 'staff'), store('s4', 'off')],
  });
  routes = brandRoutes({ catalogue: viewOf(catalogue) });
});

interface BrandsBody {
  readonly data: { id: string; products: string[]; consolidated_products: string[] }[];
  readonly embedded?: Record<string, { id: string }[]>;
}

async function brands(query: string, as?: Request['as']): Promise<BrandsBody> {
  return (await bodyOf(routes, LIST, { query, ...(as === undefined ? {} : { as }) })) as unknown as BrandsBody;
}

async function ids(query: string, as?: Request['as']): Promise<string[]> {
  return (await brands(query, as)).data.map(({ id }) => id);
}

test('lists brands that are active, visible and have active products, their own or accepted ones', async () => {
  assert.equal(await ids(''), ['cafe', 'accepts', 'gather']);
  assert.equal(await ids('', asUser('ben')), ['cafe', 'accepts', 'gather']);
  assert.equal(await ids('', asUser('ada')), ['cafe', 'accepts', 'accepts-none', 'staff', 'gather', 'gather-staff']);
});

test('products are the active ones of their own, consolidated products those of others', async () => {
  const { data } = await brands('');
  assert.equal(
    data.map(({ products, consolidated_products: accepted }) => [products, accepted]),
    [
      [['tea'], ['card']],
      [[], ['card']],
      [['card'], []],
    ],
  );
});

test('consolidated chooses consolidated brands or the others', async () => {
  for (const yes of ['1', 'true']) assert.equal(await ids(`consolidated=${yes}`), ['gather']);
  for (const no of ['0', 'false']) assert.equal(await ids(`consolidated=${no}`), ['cafe', 'accepts']);
  const wrong = await ids('consolidated=maybe').then(
    () => 'answered',
    (error: unknown) => (error as Error).message,
  );
  assert.is(wrong, 'consolidated must be true or false');
});

test('nothing is embedded unless requested', async () => {
  assert.equal(Object.keys(await brands('')), ['data']);
});

test('products and consolidated products share their list, each once', async () => {
  const only = async (query: string): Promise<unknown> =>
    Object.entries((await brands(query)).embedded ?? {}).map(([kind, list]) => [kind, list.map(({ id }) => id)]);
  assert.equal(await only('embed[]=products'), [['products', ['tea', 'card']]]);
  assert.equal(await only('embed[]=consolidated_products'), [['products', ['card']]]);
  assert.equal(await only('embed[]=products&embed[]=consolidated_products'), [['products', ['tea', 'card']]]);
});

test('stores are those of the brands listed; a kind with nothing in it is empty', async () => {
  assert.equal(
    (await brands('embed[]=stores')).embedded?.['stores']?.map(({ id }) => id),
    ['s1', 's2'],
  );
  assert.equal(
    (await brands('embed[]=stores', asUser('ada'))).embedded?.['stores']?.map(({ id }) => id),
    ['s1', 's2', 's3'],
  );
  assert.equal((await brands('embed[]=stores&embed[]=consolidated_products&consolidated=1')).embedded, {
    products: [],
    stores: [],
  });
});

test('a large list lets other requests have their turn while it is put together', async () => {
  const names = Array.from({ length: 200 }, (_, n) => `b${n}`);
  const catalogue = await catalogueOf({
    brand: names.map((name) => brand(name)),
    product: names.flatMap((name) => Array.from({ length: 50 }, (_, n) => product(`${name}p${n}`, name))),
    store: names.flatMap((name) => Array.from({ length: 200 }, (_, n) => store(`${name}s${n}`, name))),
  });
  const large = brandRoutes({ catalogue: viewOf(catalogue) });
  assert.ok((await turnsDuring(() => bodyOf(large, LIST, { query: 'embed[]=products&embed[]=stores' }))) > 1);
});

test.run();

import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { storePins, type ClusterPin, type StorePin } from '../../../src/api/catalogue/storePins.js';
import { tileRoutes } from '../../../src/api/catalogue/tiles.js';
import type { Store } from '../../../src/domain/catalogue.js';
import type { Catalogue } from '../../../src/projections/catalogue/wholeCatalogue.js';
import { asUser, bodyOf, type Request } from '../../support/service/calls.js';
import { brand, catalogueOf, store, viewOf } from '../../support/fixtures/catalogue.js';
import { turnsDuring } from '../../support/assertions/turns.js';

const test = suite('tiles');

const PATH = '/api/v2/tiles/:tiles';
const LONDON = '-0.20,51.55:-0.05,51.48';
const WORLD = '-180.0,-90.0:180.0,90.0';

interface Tile {
  readonly id: string;
  readonly bounds: { readonly west: number; readonly south: number; readonly east: number; readonly north: number };
  readonly pins: (StorePin | ClusterPin)[];
}

async function tilesOf(catalogue: Catalogue, tiles: string, query = '', as?: Request['as']): Promise<Tile[]> {
  const routes = tileRoutes({ catalogue: viewOf(catalogue) });
  return (await bodyOf(routes, PATH, { params: { tiles }, query, ...(as === undefined ? {} : { as }) }))[
    'data'
  ] as Tile[];
}

async function pinsOf(...request: Parameters<typeof tilesOf>): Promise<(StorePin | ClusterPin)[]> {
  return (await tilesOf(...request)).flatMap(({ pins }) => pins);
}

async function refusal(tiles: string, query = ''): Promise<string> {
  const catalogue = await catalogueOf({});
  return tilesOf(catalogue, tiles, query).then(
    () => 'answered',
    (error: unknown) => (error as Error).message,
  );
}

const COVENT = { longitude: -0.124991, latitude: 51.514038 };
const SOHO = { longitude: -0.136401, latitude: 51.515569 };
const LEITH = { longitude: -3.179669, latitude: 55.980059 };

test('every tile is answered, with the stores in it', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    store: [store('c', 'b', COVENT), store('s', 'b', SOHO), store('l', 'b', LEITH)],
  });
  const tiles = await tilesOf(catalogue, LONDON);
  assert.ok(tiles.length > 2 && tiles.length <= 64);
  assert.ok(tiles.some(({ pins }) => pins.length === 0));
  const [covent] = tiles.flatMap((tile) => tile.pins.map((pin) => ({ tile, pin }))).filter(({ pin }) => pin.id === 'c');
  assert.equal(covent?.pin, { id: 'c', type: 'store', brand_id: 'b', name: 'Store c', ...COVENT });
  const { west = 0, south = 0, east = 0, north = 0 } = covent?.tile.bounds ?? {};
  assert.ok(
    west <= COVENT.longitude && COVENT.longitude < east && south <= COVENT.latitude && COVENT.latitude <= north,
  );
  assert.equal((await pinsOf(catalogue, LONDON)).map(({ id }) => id).sort(), ['c', 's']);
});

test('a tile has all its stores, those outside the box too', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    store: [store('near', 'b', { longitude: -0.1277, latitude: 51.50725 })],
  });
  assert.equal(
    (await pinsOf(catalogue, '-0.1276,51.5072:-0.1276,51.5072')).map(({ id }) => id),
    ['near'],
  );
});

test('stores are shown of brands that are active and visible to the caller', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('open'), brand('off', { active: false }), brand('staff', { visible_to: ['ada'] })],
    store: [store('s1', 'open'), store('s2', 'off'), store('s3', 'staff'), store('s4', 'unknown')],
  });
  for (const query of ['', 'granularity=20']) {
    const seen = async (as?: Request['as']): Promise<number> =>
      (await pinsOf(catalogue, LONDON, query, as)).reduce(
        (sum, pin) => sum + (pin.type === 'cluster' ? pin.count : 1),
        0,
      );
    assert.equal(
      [await seen(), await seen(asUser('ben')), await seen(asUser('ada')), await seen()],
      [1, 1, 2, 1],
      query,
    );
  }
});

test('granularity clusters what a map of that zoom would show on top of each other', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    store: [store('c', 'b', COVENT), store('s', 'b', SOHO), store('l', 'b', LEITH)],
  });
  const [cluster, ...others] = (await pinsOf(catalogue, WORLD, 'granularity=8')).sort((a, b) =>
    a.type.localeCompare(b.type),
  );
  assert.equal(
    others.map(({ id, type }) => [id, type]),
    [['l', 'store']],
  );
  assert.ok(cluster?.type === 'cluster' && cluster.count === 2);
  assert.equal(cluster.area, {
    west: SOHO.longitude,
    south: COVENT.latitude,
    east: COVENT.longitude,
    north: SOHO.latitude,
  });
  assert.ok(
    Math.abs(cluster.longitude - (COVENT.longitude + SOHO.longitude) / 2) < 1e-6 &&
      Math.abs(cluster.latitude - (COVENT.latitude + SOHO.latitude) / 2) < 1e-6,
  );
  assert.equal(
    (await pinsOf(catalogue, WORLD, 'granularity=0')).map((pin) => pin.type === 'cluster' && pin.count),
    [3],
  );
  assert.equal(
    (await pinsOf(catalogue, WORLD, 'granularity=20')).map(({ type }) => type),
    ['store', 'store', 'store'],
  );
  assert.equal(
    (await pinsOf(catalogue, WORLD)).map(({ type }) => type),
    ['store', 'store', 'store'],
  );
});

test('stores at the very same place are one cluster even at granularity 20', async () => {
  const catalogue = await catalogueOf({ brand: [brand('b')], store: [store('x', 'b'), store('y', 'b')] });
  const [pin, ...others] = await pinsOf(catalogue, LONDON, 'granularity=20');
  assert.ok(others.length === 0 && pin?.type === 'cluster' && pin.count === 2);
  const { longitude, latitude } = store('x', 'b');
  assert.equal(
    [pin.longitude, pin.latitude, pin.area],
    [longitude, latitude, { west: longitude, south: latitude, east: longitude, north: latitude }],
    'where they stand, to the last digit',
  );
});

test('the id of a cluster stays with its stores and granularity, and changes with either', async () => {
  const shops = [store('c', 'b', COVENT), store('s', 'b', SOHO)];
  const id = async (stores: readonly Store[], query: string, box = LONDON): Promise<string | undefined> => {
    const catalogue = await catalogueOf({ brand: [brand('b')], store: [...stores, store('l', 'b', LEITH)] });
    return (await pinsOf(catalogue, box, query)).find(({ type }) => type === 'cluster')?.id;
  };
  const one = await id(shops, 'granularity=8');
  assert.type(one, 'string');
  assert.is(await id(shops.toReversed(), 'granularity=8', WORLD), one, 'in another import, seen from elsewhere');
  assert.is(
    await id(
      shops.map((shop) => ({ ...shop, name: 'Renamed' })),
      'granularity=8',
    ),
    one,
  );
  assert.is.not(await id(shops, 'granularity=7'), one);
  assert.is.not(await id([...shops, store('m', 'b', { ...SOHO, latitude: 51.5156 })], 'granularity=8'), one);
});

test('a malformed box is an invalid tile, wherever it breaks', async () => {
  for (const tiles of [
    '',
    'x',
    '0,0:1,1',
    '0.0,0.0',
    '0.0,91.0:1.0,1.0',
    '181.0,0.0:1.0,1.0',
    '0.0,0.0:1.0,1',
    '0.0,0.0:1.0,1.0:',
    '%30.0,0.0:1.0,1.0',
  ]) {
    assert.is(await refusal(tiles), 'Invalid tile.', tiles);
  }
  const routes = tileRoutes({ catalogue: viewOf(await catalogueOf({})) });
  assert.is(
    await bodyOf(routes, PATH).then(
      () => 'answered',
      (error: unknown) => (error as Error).message,
    ),
    'Invalid tile.',
  );
});

test('platform and granularity are checked', async () => {
  for (const [query, message] of [
    ['platform=web', 'platform must be app or imessage'],
    ['platform=', 'platform must be app or imessage'],
    ['granularity=21', 'granularity must be at most 20'],
    ['granularity=-1', 'granularity must be at least 0'],
    ['granularity=1.5', 'granularity must be a whole number'],
    ['granularity=', 'granularity must be a whole number'],
  ] as const) {
    assert.is(await refusal(LONDON, query), message, query);
  }
});

test('both platforms get the same tiles', async () => {
  const catalogue = await catalogueOf({ brand: [brand('b')], store: [store('c', 'b', COVENT)] });
  const app = await tilesOf(catalogue, LONDON);
  assert.equal(await tilesOf(catalogue, LONDON, 'platform=app'), app);
  assert.equal(await tilesOf(catalogue, LONDON, 'platform=imessage'), app);
});

test('pins are worked out once for each state, choice of brands and granularity', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('b'), brand('staff', { visible_to: ['ada'] })],
    store: [store('s', 'b'), store('t', 'staff')],
  });
  const pins = storePins();
  for (const granularity of [undefined, 3]) {
    const [first, second] = await Promise.all([
      pins.of(catalogue, undefined, granularity),
      pins.of(catalogue, 'ben', granularity),
    ]);
    assert.is(first, second);
    assert.is.not(await pins.of(catalogue, 'ada', granularity), first);
  }
  const later = await catalogueOf({ brand: [brand('b')], store: [] });
  assert.equal(await pins.of(later, undefined, undefined), []);
});

/** Anywhere on the globe, its very edges included, many of them close together. */
const point = fc.oneof(
  fc.record({
    longitude: fc.double({ min: -180, max: 180, noNaN: true }),
    latitude: fc.double({ min: -90, max: 90, noNaN: true }),
  }),
  fc.record({
    longitude: fc.constantFrom(-180, 0, 179.999, 180),
    latitude: fc.constantFrom(-90, -85.06, 0, 85.06, 90),
  }),
  fc.record({
    longitude: fc.double({ min: -0.2, max: 0, noNaN: true }),
    latitude: fc.double({ min: 51.4, max: 51.6, noNaN: true }),
  }),
);
const places = fc.array(point, { maxLength: 40 });
const granularity = fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined });

test('each store stands in exactly one tile of the world, and clusters count them all', async () => {
  await fc.assert(
    fc.asyncProperty(places, granularity, async (found, zoom) => {
      const stores = found.map((at, index) => store(`s${index}`, 'b', at));
      const pins = await pinsOf(
        await catalogueOf({ brand: [brand('b')], store: stores }),
        WORLD,
        zoom === undefined ? '' : `granularity=${zoom}`,
      );
      const single = pins.filter(({ type }) => type === 'store').map(({ id }) => id);
      const clusters = pins.filter((pin) => pin.type === 'cluster');
      assert.is(new Set(pins.map(({ id }) => id)).size, pins.length);
      assert.is(single.length + clusters.reduce((sum, { count }) => sum + count, 0), stores.length);
      assert.ok(clusters.every(({ count }) => count >= 2));
      if (zoom === undefined) assert.equal(single.sort(), stores.map(({ id }) => id).sort());
    }),
    { numRuns: 60 },
  );
});

test('the pins of two neighbouring boxes never show a store twice in a tile of the same zoom', async () => {
  const demo = JSON.parse(readFileSync('examples/demo.json', 'utf8')) as { stores: Store[] };
  const catalogue = await catalogueOf({
    brand: [...new Set(demo.stores.map(({ brand_id: id }) => id))].map((id) => brand(id)),
    store: demo.stores,
  });
  const boxes = ['-0.20,51.55:-0.10,51.48', '-0.10,51.55:0.00,51.48'];
  for (const query of ['', 'granularity=12']) {
    const tiles = new Map<string, Tile>();
    for (const box of boxes) {
      for (const tile of await tilesOf(catalogue, box, query)) {
        if (tiles.has(tile.id)) assert.equal(tile, tiles.get(tile.id), 'a tile is the same whoever asks');
        tiles.set(tile.id, tile);
      }
    }
    const ids = [...tiles.values()].flatMap(({ pins }) => pins.map(({ id }) => id));
    assert.ok(ids.length > 5);
    assert.is(new Set(ids).size, ids.length);
  }
});

test('lets other requests run while tens of thousands of stores are put on the map', async () => {
  const stores = Array.from({ length: 40_000 }, (_, n) =>
    store(`s${(n * 7919) % 40_000}`, 'b', { longitude: (n % 300) / 300, latitude: 50 + (n % 700) / 700 }),
  );
  const catalogue = await catalogueOf({ brand: [brand('b')], store: stores });
  const pins = storePins();
  assert.ok((await turnsDuring(() => pins.of(catalogue, undefined, undefined))) > 2);
  const ids = (await pins.of(catalogue, undefined, undefined)).map(({ pin }) => pin.id);
  assert.equal(ids, stores.map(({ id }) => id).sort());
});

test.run();

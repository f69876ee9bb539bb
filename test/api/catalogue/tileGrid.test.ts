import * as fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { coveringGrid, parseBox, pointOf, tileIndex, tilesOf, type Box } from '../../../src/api/catalogue/tileGrid.js';

const test = suite('tile grid');

test('reads two points, latitudes in any order', () => {
  const box = { west: -0.14, south: 51.5, east: -0.11, north: 51.52 };
  assert.equal(parseBox('-0.14,51.52:-0.11,51.50'), box);
  assert.equal(parseBox('-0.14,51.50:-0.11,51.52'), box);
  assert.equal(parseBox('180.0,90.0:-180.0,-90.000'), { west: 180, south: -90, east: -180, north: 90 });
});

test('anything malformed or out of range is refused', () => {
  const good: readonly string[] = ['-0.14', '51.52', '-0.11', '51.50'];
  const text = (numbers: readonly string[]): string => `${numbers[0]},${numbers[1]}:${numbers[2]},${numbers[3]}`;
  for (const bad of [
    '51',
    '51.',
    '.5',
    '-',
    '',
    '1e1',
    '5.0e0',
    '+5.1',
    ' 5.1',
    '5.1 ',
    '5.1.1',
    '5,1',
    'NaN',
    'Infinity',
    '0x5.1',
    '1234.5',
    '٥.١',
    '--5.1',
    '5.1\n',
  ]) {
    for (const at of [0, 1, 2, 3]) assert.is(parseBox(text(good.with(at, bad))), undefined, `${bad} at ${at}`);
  }
  for (const [at, bad] of [
    [0, '180.1'],
    [0, '-180.1'],
    [1, '90.1'],
    [1, '-90.1'],
    [2, '180.0000001'],
    [2, '-999.9'],
    [3, '90.0000001'],
    [3, '-91.0'],
  ] as const) {
    assert.is(parseBox(text(good.with(at, bad))), undefined, `${bad} at ${at}`);
  }
  for (const bad of [
    '',
    ':',
    '0.1,0.1',
    '0.1,0.1:',
    '0.1,0.1:0.2',
    '0.1:0.1,0.2:0.2',
    '0.1,0.1:0.2,0.2:0.3,0.3',
    '0.1,0.1;0.2,0.2',
    '0.1;0.1:0.2;0.2',
  ]) {
    assert.is(parseBox(bad), undefined, bad);
  }
});

test('central London, as other maps number its tiles', () => {
  const grid = coveringGrid({ west: -0.14, south: 51.5, east: -0.11, north: 51.52 });
  const tiles = tilesOf(grid);
  // The formulas of the OpenStreetMap wiki.
  const column = (lon: number): number => Math.floor(((lon + 180) / 360) * 2 ** 16);
  const row = (lat: number): number =>
    Math.floor(((1 - Math.asinh(Math.tan((lat * Math.PI) / 180)) / Math.PI) / 2) * 2 ** 16);
  assert.equal(
    [tiles[0]?.id, tiles.at(-1)?.id],
    [`16/${column(-0.14)}/${row(51.52)}`, `16/${column(-0.11)}/${row(51.5)}`],
  );
  assert.is(tiles.length, grid.columns * grid.rows);
});

test('a point takes a single tile of zoom 18', () => {
  const tiles = tilesOf(coveringGrid({ west: -0.1276, south: 51.5072, east: -0.1276, north: 51.5072 }));
  assert.is(tiles.length, 1);
  assert.match(tiles[0]?.id ?? '', /^18\//);
});

test('the whole world takes 64 tiles of zoom 3', () => {
  const tiles = tilesOf(coveringGrid({ west: -180, south: -90, east: 180, north: 90 }));
  assert.is(tiles.length, 64);
  assert.is(tiles[0]?.id, '3/0/0');
  assert.equal([tiles[0]?.bounds.west, tiles[63]?.bounds.east], [-180, 180]);
});

test('a box over the antimeridian goes on at the western edge of the map', () => {
  const grid = coveringGrid({ west: 179.9, south: -17, east: -179.9, north: -16.9 });
  const columns = new Set(tilesOf(grid).map(({ id }) => Number(id.split('/')[1])));
  const size = 2 ** grid.z;
  assert.ok(columns.has(size - 1) && columns.has(0));
  assert.ok(columns.size < size / 2, 'not the long way round');
  assert.is(tileIndex(grid, pointOf(0, -16.95)), -1);
});

test('nearly all round the world, each tile once', () => {
  const tiles = tilesOf(coveringGrid({ west: 0.2, south: -80, east: 0.1, north: 80 }));
  assert.is(new Set(tiles.map(({ id }) => id)).size, tiles.length);
});

test('every edge of the map has a place on it', () => {
  for (const [longitude, latitude] of [
    [180, 0],
    [-180, 0],
    [0, 90],
    [0, -90],
    [180, 90],
    [-180, -90],
  ] as const) {
    const { x, y } = pointOf(longitude, latitude);
    assert.ok(x >= 0 && x < 1 && y >= 0 && y < 1, `${longitude},${latitude}`);
  }
  assert.equal(pointOf(10, 90), pointOf(10, 85.0511));
  assert.ok(pointOf(179.99999999999997, 0).x > 0.9, 'just short of the antimeridian is not beyond it');
  assert.ok(tilesOf(coveringGrid({ west: 180, south: 1, east: 180, north: 1 }))[0]?.id.startsWith('18/262143/'));
});

const longitude = fc.double({ min: -180, max: 180, noNaN: true });
const latitude = fc.double({ min: -90, max: 90, noNaN: true });
const box: fc.Arbitrary<Box> = fc
  .tuple(longitude, longitude, latitude, latitude)
  .map(([west, east, a, b]) => ({ west, east, south: Math.min(a, b), north: Math.max(a, b) }));
/** Small boxes anywhere: those that people look at. */
const smallBox: fc.Arbitrary<Box> = fc
  .tuple(
    longitude,
    latitude,
    fc.double({ min: 0, max: 0.2, noNaN: true }),
    fc.double({ min: 0, max: 0.2, noNaN: true }),
  )
  .map(([west, south, wide, high]) => ({
    west,
    south,
    east: west + wide > 180 ? west + wide - 360 : west + wide,
    north: Math.min(90, south + high),
  }));

test('at most 64 tiles, and no larger zoom would do', () => {
  fc.assert(
    fc.property(fc.oneof(box, smallBox), (area) => {
      const grid = coveringGrid(area);
      const count = grid.columns * grid.rows;
      assert.ok(count >= 1 && count <= 64 && grid.z <= 18);
      if (grid.z < 18) {
        // One zoom deeper, counted from the corners' tiles alone.
        const size = 2 ** (grid.z + 1);
        const [from, to] = [pointOf(area.west, area.north), pointOf(area.east, area.south)];
        const columns = Math.floor(to.x * size) - Math.floor(from.x * size) + 1 + (area.west > area.east ? size : 0);
        assert.ok(Math.min(size, columns) * (Math.floor(to.y * size) - Math.floor(from.y * size) + 1) > 64);
      }
    }),
  );
});

test('the tiles cover the box: every point of it stands in one of them', () => {
  fc.assert(
    fc.property(
      fc.oneof(box, smallBox),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (area, right, up) => {
        const width = area.east - area.west + (area.west > area.east ? 360 : 0);
        const along = area.west + Math.min(right * width, width);
        const point = {
          longitude: right === 1 ? area.east : along > 180 ? along - 360 : along,
          latitude: Math.min(area.north, area.south + up * (area.north - area.south)),
        };
        const grid = coveringGrid(area);
        const index = tileIndex(grid, pointOf(point.longitude, point.latitude));
        const tile = tilesOf(grid)[index];
        assert.ok(tile, `${JSON.stringify(point)} is in no tile of ${JSON.stringify(area)}`);
        const inside = Math.max(-85.0511, Math.min(85.0511, point.latitude));
        const slack = 1e-9;
        assert.ok(tile.bounds.south - slack <= inside && inside <= tile.bounds.north + slack);
        assert.ok(tile.bounds.west - slack <= point.longitude && point.longitude <= tile.bounds.east + slack);
      },
    ),
  );
});

test('the bounds of the tiles lie side by side', () => {
  fc.assert(
    fc.property(fc.oneof(box, smallBox), (area) => {
      const grid = coveringGrid(area);
      const tiles = tilesOf(grid);
      for (let row = 0; row < grid.rows; row++) {
        for (let column = 1; column < grid.columns; column++) {
          const left = tiles[row * grid.columns + column - 1]?.bounds.east;
          const right = tiles[row * grid.columns + column]?.bounds.west;
          assert.ok(left === right || (left === 180 && right === -180));
        }
      }
    }),
  );
});

test.run();

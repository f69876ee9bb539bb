/** Geometry of map tiles (docs/api/catalogue.md#covering-tiles). Degrees are WGS 84. */
import { pointToTileFraction, tileToBBOX } from '@mapbox/tilebelt';

/** The edge of Web Mercator; latitudes beyond are clamped. */
const MAX_LATITUDE = 85.0511;
const MAX_ZOOM = 18;
const MAX_TILES = 64;
/** The largest number below 1: the 180th meridian belongs to the last column, not the first. */
const BELOW_ONE = 1 - 2 ** -53;

/** Pattern of a number with digits on both sides of the decimal point: not `51`, `.5`, `5.` or `5e0`. */
const NUMBER = '(-?\\d{1,3}\\.\\d+)';
const BOX = new RegExp(`^${NUMBER},${NUMBER}:${NUMBER},${NUMBER}$`);

/** A box on the map, in degrees. `west` > `east`: the box crosses the antimeridian. */
export interface Box {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/** Position in the unit square, 0 ≤ x, y < 1, from the north-western corner. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Tiles of one zoom: `columns` eastwards from `west`, wrapping past the last column; `rows` southwards from `top`. */
interface TileGrid {
  readonly z: number;
  readonly west: number;
  readonly columns: number;
  readonly top: number;
  readonly rows: number;
}

/**
 * Reads `x,y:x,y`: longitude and latitude of the western and the eastern point; `undefined`: malformed or out of range.
 */
export function parseBox(text: string): Box | undefined {
  const numbers = BOX.exec(text)?.slice(1).map(Number);
  if (numbers === undefined) return undefined;
  const [west, a, east, b] = numbers as [number, number, number, number];
  if (Math.abs(west) > 180 || Math.abs(east) > 180 || Math.abs(a) > 90 || Math.abs(b) > 90) return undefined;
  return { west, south: Math.min(a, b), east, north: Math.max(a, b) };
}

export function pointOf(longitude: number, latitude: number): Point {
  const clamped = Math.min(MAX_LATITUDE, Math.max(-MAX_LATITUDE, latitude));
  const [, y] = pointToTileFraction(longitude, clamped, 0);
  // The library's x wraps at 180 degrees, and a rounding error before that, so it is not used.
  return { x: Math.min(BELOW_ONE, longitude / 360 + 0.5), y };
}

/** The grid that covers the box at the largest zoom with at most 64 tiles, never over 18. */
export function coveringGrid(box: Box): TileGrid {
  const start = pointOf(box.west, box.north);
  const end = pointOf(box.east, box.south);
  const at = (z: number): TileGrid => gridAt(z, start, end, box.west > box.east);
  let grid = at(MAX_ZOOM);
  while (grid.columns * grid.rows > MAX_TILES) grid = at(grid.z - 1);
  return grid;
}

/** Scaling by a power of two is exact, so `tileIndex` finds the same tile. */
function gridAt(z: number, start: Point, end: Point, crossing: boolean): TileGrid {
  const size = 2 ** z;
  const west = Math.floor(start.x * size);
  const east = Math.floor(end.x * size) + (crossing ? size : 0);
  const top = Math.floor(start.y * size);
  return { z, west, columns: Math.min(size, east - west + 1), top, rows: Math.floor(end.y * size) - top + 1 };
}

/** Index of the position's tile, counted row by row; -1 outside of the grid. */
export function tileIndex(grid: TileGrid, point: Point): number {
  const size = 2 ** grid.z;
  const row = Math.floor(point.y * size) - grid.top;
  if (row < 0 || row >= grid.rows) return -1;
  const column = (Math.floor(point.x * size) - grid.west + size) % size;
  return column < grid.columns ? row * grid.columns + column : -1;
}

/** A tile of the map; its `id` is `z/x/y`. */
export interface TileAddress {
  readonly id: string;
  readonly bounds: Box;
}

/** Tiles of the grid, row by row from the north-west, in the order of `tileIndex`. */
export function tilesOf(grid: TileGrid): TileAddress[] {
  const size = 2 ** grid.z;
  const tiles: TileAddress[] = [];
  for (let row = 0; row < grid.rows; row++) {
    for (let column = 0; column < grid.columns; column++) {
      const x = (grid.west + column) % size;
      const y = grid.top + row;
      const [west, south, east, north] = tileToBBOX([x, y, grid.z]) as [number, number, number, number];
      tiles.push({ id: `${grid.z}/${x}/${y}`, bounds: { west, south, east, north } });
    }
  }
  return tiles;
}

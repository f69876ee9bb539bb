/** Routes for map tiles (docs/api/catalogue.md#list-map-tiles). */
import { inSlices } from '../../lib/async/slices.js';
import type { CatalogueView } from '../../projections/catalogue/view.js';
import { HttpError } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import { callerId } from './callerId.js';
import { choiceSchema, countSchema, dataAnswer, listSchema, querySchema } from '../pipeline/schemas.js';
import { tileExample, tileSchema } from './schemas.js';
import { MAX_GRANULARITY, storePins, type PlacedPin } from './storePins.js';
import { coveringGrid, parseBox, tileIndex, tilesOf, type TileAddress } from './tileGrid.js';

interface Tile extends TileAddress {
  readonly pins: PlacedPin['pin'][];
}

export function tileRoutes({ catalogue }: { readonly catalogue: CatalogueView }): Route[] {
  const pins = storePins();
  return [
    {
      method: 'GET',
      path: '/api/v2/tiles/:tiles',
      operation: 'listTiles',
      summary: 'The map tiles between two points, with the stores in them',
      description:
        'The Web Mercator tiles that cover the box between the two points, at the largest zoom with at most 64 tiles (never over 18), row by row from the north-west. ' +
        'Each has all its stores, also those outside the box; empty tiles are answered too. Shown are stores of active brands that the caller may see. ' +
        'With `granularity` stores that a map of that zoom would show on top of each other are one cluster. A western point east of the eastern one: the box crosses the antimeridian.',
      tag: 'Map tiles',
      caller: 'any',
      params: {
        tiles:
          'Western and eastern point, `longitude,latitude:longitude,latitude` in degrees, each number with a decimal point: `-0.14,51.52:-0.11,51.50`.',
      },
      query: querySchema({
        platform: choiceSchema(['app', 'imessage'], 'Where the map is shown. Both get the same tiles.', {
          default: 'app',
        }),
        granularity: countSchema(
          'Clusters stores as a map at this zoom would show them. Absent: every pin is a store.',
          { maximum: MAX_GRANULARITY },
        ),
      }),
      answers: [dataAnswer('The tiles.', listSchema(tileSchema), [tileExample])],
      errors: ['invalid_tile'],
      async handle({ params, query, principal }) {
        const box = parseBox(params['tiles'] ?? '');
        if (box === undefined) throw new HttpError('invalid_tile');
        const grid = coveringGrid(box);
        const tiles: Tile[] = tilesOf(grid).map((address) => ({ ...address, pins: [] }));
        await inSlices(
          await pins.of(catalogue.current(), callerId(principal), query['granularity'] as number | undefined),
          ({ point, pin }) => {
            tiles[tileIndex(grid, point)]?.pins.push(pin);
          },
        );
        return { body: { data: tiles } };
      },
    },
  ];
}

/** Pins of the map (docs/api/catalogue.md#tile-pins). */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import Supercluster, { type PointFeature } from 'supercluster';
import { inSlices } from '../../lib/async/slices.js';
import type { Brand, Store } from '../../domain/catalogue.js';
import { nextTurn } from '../../lib/world.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';
import { pointOf, type Box, type Point } from './tileGrid.js';

export const MAX_GRANULARITY = 20;
/** Sets of pins that are cached for each state of the catalogue. */
const REMEMBERED = 32;
/** Stores sorted at once, in 1 to 2 ms. */
const A_RUN = 2_000;

/** Pin of one store. Coordinates are in degrees. */
export interface StorePin {
  readonly id: string;
  readonly type: 'store';
  readonly brand_id: string;
  readonly name: string;
  readonly longitude: number;
  readonly latitude: number;
}

/** Pin of several stores. Coordinates are in degrees. The same stores and granularity have the same id. */
export interface ClusterPin {
  readonly id: string;
  readonly type: 'cluster';
  readonly count: number;
  readonly longitude: number;
  readonly latitude: number;
  readonly area: Box;
}

export interface PlacedPin {
  readonly point: Point;
  readonly pin: StorePin | ClusterPin;
}

/** Pins are cached as long as the catalogue's state. */
interface StorePins {
  /**
   * All pins visible to the caller (a user's id; `undefined`: a client): stores, or with a granularity (0 to 20) stores
   * and clusters. Each store is in exactly one pin.
   */
  of(catalogue: Catalogue, userId: string | undefined, granularity: number | undefined): Promise<readonly PlacedPin[]>;
}

export function storePins(): StorePins {
  const states = new WeakMap<Catalogue, CatalogueState>();
  return {
    async of(catalogue, userId, granularity) {
      let state = states.get(catalogue);
      if (state === undefined) {
        state = catalogueState(catalogue);
        states.set(catalogue, state);
      }
      return state(userId, granularity);
    },
  };
}

type PinsByGranularity = (granularity: number | undefined) => Promise<readonly PlacedPin[]>;
type CatalogueState = (userId: string | undefined, granularity: number | undefined) => Promise<readonly PlacedPin[]>;

/** Callers with the same visible brands share their pins; nearly all see the same brands. */
function catalogueState(catalogue: Catalogue): CatalogueState {
  const brands = [...catalogue.brands.values()];
  const restricted = brands.filter((brand) => brand.visible_to !== null);
  const choices = new LRUCache<string, PinsByGranularity>({ max: REMEMBERED });
  return (userId, granularity) => {
    const key = JSON.stringify(restricted.filter((brand) => catalogue.visible(brand, userId)).map((brand) => brand.id));
    let choice = choices.get(key);
    if (choice === undefined) {
      choice = pinsOf(storesShown(catalogue, brands, userId));
      choices.set(key, choice);
    }
    return choice(granularity);
  };
}

/** Stores of the visible brands, sorted by id: the same stores make the same clusters. */
async function storesShown(
  catalogue: Catalogue,
  brands: readonly Brand[],
  userId: string | undefined,
): Promise<Store[]> {
  const stores = brands
    .filter((brand) => catalogue.visible(brand, userId))
    .flatMap((brand) => catalogue.storesOf(brand.id));
  const inOrder = (a: Store, b: Store): number => (a.id < b.id ? -1 : 1);
  const runs: Store[] = [];
  await inSlices(range(0, stores.length, A_RUN), (at) => {
    for (const store of stores.slice(at, at + A_RUN).sort(inOrder)) runs.push(store);
  });
  // Merges sorted runs; one sort of all stores would block other requests.
  return runs.sort(inOrder);
}

function* range(from: number, to: number, step: number): Generator<number> {
  for (let at = from; at < to; at += step) yield at;
}

/** Makes the pins of each granularity once, also for concurrent callers. */
function pinsOf(shown: Promise<readonly Store[]>): PinsByGranularity {
  const single = shown.then(async (stores) => {
    const pins: PlacedPin[] = [];
    await inSlices(stores, (store) =>
      pins.push({ point: pointOf(store.longitude, store.latitude), pin: storePin(store) }),
    );
    return pins;
  });
  const clustered = new Map<number, Promise<readonly PlacedPin[]>>();
  return async (granularity) => {
    const [stores, pinsOfStores] = await Promise.all([shown, single]);
    if (granularity === undefined) return pinsOfStores;
    let pins = clustered.get(granularity);
    if (pins === undefined) {
      pins = clusteredPins(stores, pinsOfStores, granularity);
      clustered.set(granularity, pins);
    }
    return pins;
  };
}

function storePin(store: Store): StorePin {
  return {
    id: store.id,
    type: 'store',
    brand_id: store.brand_id,
    name: store.name,
    longitude: store.longitude,
    latitude: store.latitude,
  };
}

interface Member {
  readonly index: number;
}

async function clusteredPins(
  stores: readonly Store[],
  single: readonly PlacedPin[],
  granularity: number,
): Promise<readonly PlacedPin[]> {
  const points: PointFeature<Member>[] = [];
  await inSlices(stores, ({ longitude, latitude }, index) => {
    points.push({
      type: 'Feature',
      properties: { index },
      geometry: { type: 'Point', coordinates: [longitude, latitude] },
    });
  });
  await nextTurn();
  const clusters = new Supercluster<Member>({ minZoom: granularity, maxZoom: granularity, minPoints: 2 }).load(points);
  await nextTurn();
  const pins: PlacedPin[] = [];
  await inSlices(clusters.getClusters([-180, -90, 180, 90], granularity), ({ properties, geometry }) => {
    if (!('cluster_id' in properties)) {
      pins.push(single[properties.index] as PlacedPin);
      return;
    }
    const leaves = clusters.getLeaves(properties.cluster_id as number, Infinity);
    const members = leaves
      .map((leaf) => leaf.properties.index)
      .sort((a, b) => a - b)
      .map((index) => stores[index] as Store);
    const pin = clusterPin(members, granularity, geometry.coordinates as [number, number]);
    pins.push({ point: pointOf(pin.longitude, pin.latitude), pin });
  });
  return pins;
}

function clusterPin(
  members: readonly Store[],
  granularity: number,
  [longitude, latitude]: readonly [number, number],
): ClusterPin {
  const area = { west: 180, south: 90, east: -180, north: -90 };
  for (const store of members) {
    area.west = Math.min(area.west, store.longitude);
    area.south = Math.min(area.south, store.latitude);
    area.east = Math.max(area.east, store.longitude);
    area.north = Math.max(area.north, store.latitude);
  }
  const name = JSON.stringify([granularity, ...members.map((store) => store.id)]);
  return {
    id: createHash('sha256').update(name).digest('hex').slice(0, 20),
    type: 'cluster',
    count: members.length,
    // The library rounds to single precision: a centre may be some metres off.
    longitude: within(area.west, longitude, area.east),
    latitude: within(area.south, latitude, area.north),
    area,
  };
}

const within = (least: number, value: number, most: number): number => Math.min(most, Math.max(least, value));

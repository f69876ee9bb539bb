/** Catalogue entries with what a test doesn't care about filled in. */
import type {
  Brand,
  CatalogueKind,
  CatalogueKinds,
  Category,
  Product,
  Segment,
  Store,
} from '../../src/domain/catalogue.js';
import type { CatalogueDocument } from '../../src/projections/catalogue/catalogue.js';
import { catalogueState } from '../../src/projections/catalogue/state.js';
import type { CatalogueView } from '../../src/projections/catalogue/view.js';
import type { Catalogue } from '../../src/projections/catalogue/wholeCatalogue.js';

/** A product of `brand` at 10 pounds. */
export function product(id: string, brand_id: string, fields: Partial<Product> = {}): Product {
  return {
    id,
    brand_id,
    name: `Product ${id}`,
    description: '',
    sale_price: 1000,
    image_url: '',
    active: true,
    segments: [],
    valid_days: 365,
    ...fields,
  };
}

/** An active brand that everyone sees. */
export function brand(id: string, fields: Partial<Brand> = {}): Brand {
  return {
    id,
    name: `Brand ${id}`,
    merchant_id: 'merchant',
    integration_id: null,
    consolidated: 0,
    consolidated_products: [],
    description: '',
    image_url: '',
    active: true,
    visible_to: null,
    ...fields,
  };
}

/** A store in the middle of London. */
export function store(id: string, brand_id: string, fields: Partial<Store> = {}): Store {
  return {
    id,
    brand_id,
    name: `Store ${id}`,
    address: '',
    postcode: '',
    longitude: -0.1276,
    latitude: 51.5072,
    ...fields,
  };
}

/** A category of these products. */
export function category(id: string, products: readonly string[], fields: Partial<Category> = {}): Category {
  return { id, name: `Category ${id}`, image_url: '', featured: 0, products, ...fields };
}

/** A segment of QR codes that are valid for 90 days. */
export function segment(id: string, fields: Partial<Segment> = {}): Segment {
  return { id, name: `Segment ${id}`, voucherType: 'qr', expiry: 90, configuration: {}, ...fields };
}

/** A view of one state. */
export function viewOf(catalogue: Catalogue): CatalogueView {
  return { current: () => catalogue, close: async () => {} };
}

/** A catalogue of these entries, none of them retired, in this order. */
export async function catalogueOf(entries: {
  readonly [K in CatalogueKind]?: readonly CatalogueKinds[K][];
}): Promise<Catalogue> {
  const state = catalogueState();
  let at = 0;
  const documents = (Object.entries(entries) as [CatalogueKind, readonly CatalogueKinds[CatalogueKind][]][]).flatMap(
    ([entry, values]) =>
      values.map((value) => {
        const position = String(++at).padStart(10, '0');
        return { entry, added: position, changed: position, retired: false, value } as CatalogueDocument;
      }),
  );
  await state.apply(documents);
  return state.catalogue();
}

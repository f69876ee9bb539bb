/**
 * Builds catalogues from documents, whole kinds at a time. Works in slices, so that 100,000 stores never block the
 * event loop.
 */
import type { Brand, CatalogueKind, CatalogueKinds, Product, Store } from '../../domain/catalogue.js';
import { idOf, kindOf } from '../../domain/streamName.js';
import { nextTurn } from '../../lib/world.js';
import type { Position } from '../../ports/eventStore.js';
import type { CatalogueDocument, EntryDocument } from './catalogue.js';
import type { Catalogue } from './wholeCatalogue.js';

/** Entries between two turns of the event loop: about 2 ms. Reading the clock costs more than an entry. */
const SLICE = 4_000;

/** The catalogue built from documents. Calls of `apply` must not overlap. */
export interface CatalogueState {
  /** Ignores documents that are not newer. @returns the next state; `undefined`: no change */
  apply(documents: readonly CatalogueDocument[]): Promise<Catalogue | undefined>;
  catalogue(): Catalogue;
  /** The document of an entry. `stream`: name of the entry's stream. */
  document(stream: string): CatalogueDocument | undefined;
}

type Documents = { readonly [K in CatalogueKind]: Map<string, EntryDocument<K>> };

/** The brands and products whose gifts are valid for a merchant. */
interface Validity {
  readonly brands: Set<string>;
  readonly consolidated: Set<string>;
}

/** Each part is made from the entries of one kind, and immutable. */
interface Parts {
  products: ReadonlyMap<string, Product>;
  productsByBrand: ReadonlyMap<string, readonly Product[]>;
  brands: ReadonlyMap<string, Brand>;
  audiences: ReadonlyMap<string, ReadonlySet<string>>;
  validity: ReadonlyMap<string, Validity>;
  stores: ReadonlyMap<string, Store>;
  storesByBrand: ReadonlyMap<string, readonly Store[]>;
  segments: Catalogue['segments'];
  integrations: Catalogue['integrations'];
  merchants: Catalogue['merchants'];
  categories: Catalogue['categories'];
  /** Ids of retired entries. */
  retired: Readonly<Record<CatalogueKind, ReadonlySet<string>>>;
}

export function catalogueState(): CatalogueState {
  const documents: Documents = {
    integration: new Map(),
    merchant: new Map(),
    segment: new Map(),
    brand: new Map(),
    product: new Map(),
    store: new Map(),
    category: new Map(),
  };
  /** Position of the first addition of the latest entry of each kind. */
  const lastAdded: Partial<Record<CatalogueKind, Position>> = {};
  let parts = emptyParts();
  let present = catalogueOfParts(parts);
  return {
    async apply(incoming) {
      const touched = new Set<CatalogueKind>();
      const unordered = new Set<CatalogueKind>();
      await sliced(incoming, (document) => {
        const kind = document.entry;
        const known = documents[kind] as Map<string, CatalogueDocument>;
        const before = known.get(document.value.id);
        if (before !== undefined && before.changed >= document.changed) return;
        // A map keeps the order of insertion, which is nearly always the order of imports.
        if (before === undefined && (lastAdded[kind] ?? '') > document.added) unordered.add(kind);
        else if (before === undefined) lastAdded[kind] = document.added;
        known.set(document.value.id, document);
        touched.add(kind);
      });
      if (touched.size === 0) return undefined;
      for (const kind of unordered) reorder(documents[kind] as Map<string, CatalogueDocument>);
      const next = { ...parts, retired: { ...parts.retired } };
      for (const kind of touched) await renew(next, documents, kind);
      parts = next;
      present = catalogueOfParts(parts);
      return present;
    },
    catalogue: () => present,
    document: (stream) => documents[kindOf(stream) as CatalogueKind].get(idOf(stream)),
  };
}

function emptyParts(): Parts {
  const none = new Set<string>();
  return {
    products: new Map(),
    productsByBrand: new Map(),
    brands: new Map(),
    audiences: new Map(),
    validity: new Map(),
    stores: new Map(),
    storesByBrand: new Map(),
    segments: new Map(),
    integrations: new Map(),
    merchants: new Map(),
    categories: new Map(),
    retired: {
      integration: none,
      merchant: none,
      segment: none,
      brand: none,
      product: none,
      store: none,
      category: none,
    },
  };
}

/** Rebuilds the parts of one kind. */
async function renew(
  parts: Parts & { retired: Record<CatalogueKind, ReadonlySet<string>> },
  documents: Documents,
  kind: CatalogueKind,
): Promise<void> {
  parts.retired[kind] = await retiredOf<CatalogueKind>(documents[kind]);
  switch (kind) {
    case 'product':
      parts.products = await valuesOf<'product'>(documents.product);
      parts.productsByBrand = await groupByBrand(parts.products, (product) => product.active);
      return;
    case 'store':
      parts.stores = await valuesOf<'store'>(documents.store, (document) => !document.retired);
      parts.storesByBrand = await groupByBrand(parts.stores, () => true);
      return;
    case 'brand': {
      parts.brands = await valuesOf<'brand'>(documents.brand);
      const audiences = new Map<string, ReadonlySet<string>>();
      const validity = new Map<string, Validity>();
      await sliced(parts.brands.values(), (brand) => {
        if (brand.visible_to !== null) audiences.set(brand.id, new Set(brand.visible_to));
        const merchant = validity.get(brand.merchant_id) ?? { brands: new Set(), consolidated: new Set() };
        validity.set(brand.merchant_id, merchant);
        merchant.brands.add(brand.id);
        // A retired brand honours only its own gifts.
        if (!parts.retired.brand.has(brand.id))
          for (const product of brand.consolidated_products) merchant.consolidated.add(product);
      });
      Object.assign(parts, { audiences, validity });
      return;
    }
    case 'category':
      parts.categories = await valuesOf<'category'>(documents.category, (document) => !document.retired);
      return;
    case 'segment':
      parts.segments = await valuesOf<'segment'>(documents.segment);
      return;
    case 'integration':
      parts.integrations = await valuesOf<'integration'>(documents.integration);
      return;
    case 'merchant':
      parts.merchants = await valuesOf<'merchant'>(documents.merchant);
      return;
    default:
      kind satisfies never;
  }
}

function catalogueOfParts(parts: Parts): Catalogue {
  const {
    products,
    brands,
    stores,
    segments,
    integrations,
    merchants,
    categories,
    productsByBrand,
    storesByBrand,
    audiences,
    validity,
    retired,
  } = parts;
  const visible: Catalogue['visible'] = (brand, userId) =>
    brand.active &&
    (brand.visible_to === null || (userId !== undefined && (audiences.get(brand.id)?.has(userId) ?? false)));
  const brandIdOf: (gift: Parameters<Catalogue['brandOf']>[0]) => string = ({ product_id, brand_id }) =>
    products.get(product_id)?.brand_id ?? brand_id;
  return {
    products,
    brands,
    stores,
    segments,
    integrations,
    merchants,
    categories,
    storesOf: (brandId) => storesByBrand.get(brandId) ?? [],
    productsOf: (brandId) => productsByBrand.get(brandId) ?? [],
    brandOf: (gift) => brands.get(brandIdOf(gift)),
    validFor(gift, merchantId) {
      const merchant = validity.get(merchantId);
      if (merchant === undefined || retired.merchant.has(merchantId)) return false;
      return merchant.brands.has(brandIdOf(gift)) || merchant.consolidated.has(gift.product_id);
    },
    sellable(product, userId) {
      const brand = product.active ? brands.get(product.brand_id) : undefined;
      return brand !== undefined && visible(brand, userId);
    },
    visible,
    retired: (kind, id) => retired[kind].has(id),
  };
}

async function valuesOf<K extends CatalogueKind>(
  documents: ReadonlyMap<string, EntryDocument<K>>,
  accepts: (document: EntryDocument<K>) => boolean = () => true,
): Promise<ReadonlyMap<string, CatalogueKinds[K]>> {
  const values = new Map<string, CatalogueKinds[K]>();
  await sliced(documents, ([id, document]) => {
    if (accepts(document)) values.set(id, document.value);
  });
  return values;
}

async function retiredOf<K extends CatalogueKind>(
  documents: ReadonlyMap<string, EntryDocument<K>>,
): Promise<ReadonlySet<string>> {
  const retired = new Set<string>();
  await sliced(documents, ([id, document]) => {
    if (document.retired) retired.add(id);
  });
  return retired;
}

async function groupByBrand<V extends { readonly brand_id: string }>(
  values: ReadonlyMap<string, V>,
  accepts: (value: V) => boolean,
): Promise<ReadonlyMap<string, readonly V[]>> {
  const groups = new Map<string, V[]>();
  await sliced(values.values(), (value) => {
    if (!accepts(value)) return;
    const group = groups.get(value.brand_id);
    if (group === undefined) groups.set(value.brand_id, [value]);
    else group.push(value);
  });
  return groups;
}

function reorder(documents: Map<string, CatalogueDocument>): void {
  const ordered = [...documents].sort(([, left], [, right]) => (left.added < right.added ? -1 : 1));
  documents.clear();
  for (const [id, document] of ordered) documents.set(id, document);
}

async function sliced<T>(items: Iterable<T>, each: (item: T) => void): Promise<void> {
  let count = 0;
  for (const item of items) {
    each(item);
    if (++count % SLICE === 0) await nextTurn();
  }
}

/**
 * Entries as the API shows them (docs/api/catalogue.md#product). `visible_to` stays hidden: it names other users.
 * `userId` is `undefined` for a client.
 */
import type { Brand, Category, Integration, Product, Segment, Store } from '../domain/catalogue.js';
import { pounds } from '../domain/money.js';
import type { Catalogue } from '../projections/catalogue/wholeCatalogue.js';

export function productEntity(product: Product) {
  return {
    id: product.id,
    brand_id: product.brand_id,
    name: product.name,
    description: product.description,
    sale_price: product.sale_price,
    price: pounds(product.sale_price),
    image_url: product.image_url,
    active: product.active,
    segments: product.segments,
    valid_days: product.valid_days,
  };
}

export function brandEntity(catalogue: Catalogue, brand: Brand, userId: string | undefined) {
  return {
    id: brand.id,
    name: brand.name,
    description: brand.description,
    image_url: brand.image_url,
    merchant_id: brand.merchant_id,
    integration_id: brand.integration_id,
    active: brand.active,
    consolidated: brand.consolidated,
    products: ownProducts(catalogue, brand, userId).map((product) => product.id),
    consolidated_products: consolidatedProducts(catalogue, brand, userId).map((product) => product.id),
  };
}

export function ownProducts(catalogue: Catalogue, brand: Brand, userId: string | undefined): readonly Product[] {
  return catalogue.productsOf(brand.id).filter((product) => catalogue.sellable(product, userId));
}

/** Consolidated products that a brand accepts; a consolidated brand accepts none (docs/api/catalogue.md#brand). */
export function consolidatedProducts(
  catalogue: Catalogue,
  brand: Brand,
  userId: string | undefined,
): readonly Product[] {
  return brand.consolidated === 1 ? [] : sellableProducts(catalogue, brand.consolidated_products, userId);
}

export function categoryEntity(catalogue: Catalogue, category: Category, userId: string | undefined) {
  return {
    id: category.id,
    name: category.name,
    image_url: category.image_url,
    type: 'Category',
    featured: category.featured,
    products: sellableProducts(catalogue, category.products, userId).map((product) => product.id),
  };
}

/** Products that can be sold to the user, in the order of `ids`. */
export function sellableProducts(
  catalogue: Catalogue,
  ids: readonly string[],
  userId: string | undefined,
): readonly Product[] {
  const products: Product[] = [];
  for (const id of ids) {
    const product = catalogue.products.get(id);
    if (product !== undefined && catalogue.sellable(product, userId)) products.push(product);
  }
  return products;
}

export function storeEntity(store: Store) {
  return {
    id: store.id,
    brand_id: store.brand_id,
    name: store.name,
    address: store.address,
    postcode: store.postcode,
    longitude: store.longitude,
    latitude: store.latitude,
  };
}

export function segmentEntity(segment: Segment) {
  return {
    id: segment.id,
    name: segment.name,
    voucherType: segment.voucherType,
    expiry: segment.expiry,
    configuration: segment.configuration,
  };
}

export function integrationEntity(integration: Integration) {
  return { id: integration.id, name: integration.name };
}

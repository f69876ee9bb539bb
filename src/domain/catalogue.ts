/**
 * The catalogue's entries (docs/import.md#import-arrays), one stream each: `product-{id}`, `brand-{id}` … A retired
 * entry is inactive, but history and embeds still show it.
 */
import type { EntryEvent } from './entry.js';

export interface Integration {
  readonly id: string;
  readonly name: string;
}

export interface Merchant {
  readonly id: string;
  readonly name: string;
  readonly adjustment_codes: readonly string[];
}

/** `visible_to: null`: visible to everyone. */
export interface Brand {
  readonly id: string;
  readonly name: string;
  readonly merchant_id: string;
  readonly integration_id: string | null;
  readonly consolidated: 0 | 1;
  readonly consolidated_products: readonly string[];
  readonly description: string;
  readonly image_url: string;
  readonly active: boolean;
  readonly visible_to: readonly string[] | null;
}

export interface Store {
  readonly id: string;
  readonly brand_id: string;
  readonly name: string;
  readonly address: string;
  readonly postcode: string;
  readonly longitude: number;
  readonly latitude: number;
}

/** `expiry` is in days. */
export interface Segment {
  readonly id: string;
  readonly name: string;
  readonly voucherType: string;
  readonly expiry: number;
  readonly configuration: Readonly<Record<string, unknown>>;
}

/** `sale_price` is in pence. */
export interface Product {
  readonly id: string;
  readonly brand_id: string;
  readonly name: string;
  readonly description: string;
  readonly sale_price: number;
  readonly image_url: string;
  readonly active: boolean;
  readonly segments: readonly string[];
  readonly valid_days: number;
}

export interface Category {
  readonly id: string;
  readonly name: string;
  readonly image_url: string;
  readonly featured: 0 | 1;
  readonly products: readonly string[];
}

export interface CatalogueKinds {
  readonly integration: Integration;
  readonly merchant: Merchant;
  readonly brand: Brand;
  readonly store: Store;
  readonly segment: Segment;
  readonly product: Product;
  readonly category: Category;
}

export type CatalogueKind = keyof CatalogueKinds;

/** An entry comes after those it refers to. */
export const CATALOGUE_KINDS = [
  'integration',
  'merchant',
  'segment',
  'brand',
  'product',
  'store',
  'category',
] as const satisfies readonly CatalogueKind[];

export const catalogueStream = (kind: CatalogueKind, id: string): string => `${kind}-${id}`;

/** No field is secret or personal. */
export type CatalogueEvent = { [K in CatalogueKind]: EntryEvent<K, CatalogueKinds[K]> }[CatalogueKind];

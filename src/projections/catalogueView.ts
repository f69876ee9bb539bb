/** The whole catalogue in memory, as commands and queries join it; each API process keeps its own, at most 250 ms behind the read model. */
import type { Brand, Category, Integration, Merchant, Product, Segment, Store } from '../domain/catalogue.js';

/** One consistent state of the catalogue. Never changes; a later state is another object. */
export interface Catalogue {
  readonly products: ReadonlyMap<string, Product>;
  readonly brands: ReadonlyMap<string, Brand>;
  readonly stores: ReadonlyMap<string, Store>;
  readonly segments: ReadonlyMap<string, Segment>;
  readonly integrations: ReadonlyMap<string, Integration>;
  readonly merchants: ReadonlyMap<string, Merchant>;
  readonly categories: ReadonlyMap<string, Category>;
  /** The stores of a brand. */
  storesOf(brandId: string): readonly Store[];
  /** The active products of a brand: its own. */
  productsOf(brandId: string): readonly Product[];
  /** Whether a gift of this product is valid for the merchant (decisions 2): one of the merchant's brands is the product's brand, or lists the product in `consolidated_products`. */
  validFor(gift: { readonly product_id: string; readonly brand_id: string }, merchantId: string): boolean;
  /** Whether the caller (a user's id; `undefined`: a client) may see and buy the product: it and its brand are active, the brand visible (decisions 5). */
  sellable(product: Product, userId: string | undefined): boolean;
  /** Whether the brand is active and visible to the caller. */
  visible(brand: Brand, userId: string | undefined): boolean;
}

/** Where the present state is had. */
export interface CatalogueView {
  /** The present state. @throws UnavailableError before it has been loaded for the first time. */
  current(): Catalogue;
  close(): Promise<void>;
}

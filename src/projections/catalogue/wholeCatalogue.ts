/** The catalogue as of now (`view.ts`) or of a position in the log. */
import type {
  Brand,
  CatalogueKind,
  Category,
  Integration,
  Merchant,
  Product,
  Segment,
  Store,
} from '../../domain/catalogue.js';

/** One consistent, immutable state of the catalogue. Maps are in the order of imports. */
export interface Catalogue {
  /** Maps include retired products, brands (both inactive), segments, integrations and merchants. */
  readonly products: ReadonlyMap<string, Product>;
  readonly brands: ReadonlyMap<string, Brand>;
  /** Stores, without retired ones. */
  readonly stores: ReadonlyMap<string, Store>;
  readonly segments: ReadonlyMap<string, Segment>;
  readonly integrations: ReadonlyMap<string, Integration>;
  readonly merchants: ReadonlyMap<string, Merchant>;
  /** Categories, without retired ones. */
  readonly categories: ReadonlyMap<string, Category>;
  storesOf(brandId: string): readonly Store[];
  /** The brand's own active products. */
  productsOf(brandId: string): readonly Product[];
  /** The product's present brand, not that of the purchase: gifts follow the catalogue. */
  brandOf(gift: { readonly product_id: string; readonly brand_id: string }): Brand | undefined;
  /**
   * docs/api/gifts.md#valid-merchants: one of the merchant's brands is the product's, or lists it in
   * `consolidated_products`.
   */
  validFor(gift: { readonly product_id: string; readonly brand_id: string }, merchantId: string): boolean;
  /**
   * docs/api/catalogue.md#sellable-products: product and brand are active, and the brand visible. `userId: undefined`:
   * a client.
   */
  sellable(product: Product, userId: string | undefined): boolean;
  /** Whether the brand is active, and visible to the caller. */
  visible(brand: Brand, userId: string | undefined): boolean;
  /** Whether an import pruned the entry, so that no new use is allowed. */
  retired(kind: CatalogueKind, id: string): boolean;
}

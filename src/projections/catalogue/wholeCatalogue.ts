/** The whole catalogue as commands and queries join it, of the present (`view.ts`) or of a position of the log. */
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

/** One consistent state. Never changes. */
export interface Catalogue {
  /**
   * With retired products and brands, which are inactive, and retired segments, integrations and merchants (`retired`).
   * Each map is in the order of imports.
   */
  readonly products: ReadonlyMap<string, Product>;
  readonly brands: ReadonlyMap<string, Brand>;
  /** Without retired ones. */
  readonly stores: ReadonlyMap<string, Store>;
  readonly segments: ReadonlyMap<string, Segment>;
  readonly integrations: ReadonlyMap<string, Integration>;
  readonly merchants: ReadonlyMap<string, Merchant>;
  /** Without retired ones. */
  readonly categories: ReadonlyMap<string, Category>;
  storesOf(brandId: string): readonly Store[];
  /** The active products of the brand itself. */
  productsOf(brandId: string): readonly Product[];
  /**
   * The present brand of a product, whatever it was when it was bought: whose gift it is, and who honours it, follow
   * the catalogue.
   */
  brandOf(gift: { readonly product_id: string; readonly brand_id: string }): Brand | undefined;
  /**
   * Whether a gift of this product is valid for the merchant (docs/decisions.md#valid-merchants): a brand of the
   * merchant is the product's, or lists it in `consolidated_products`.
   */
  validFor(gift: { readonly product_id: string; readonly brand_id: string }, merchantId: string): boolean;
  /**
   * Whether the caller (a user's id; `undefined`: a client) may see and buy the product
   * (docs/decisions.md#sellable-products): it and its brand are active, the brand visible.
   */
  sellable(product: Product, userId: string | undefined): boolean;
  /** Whether the brand is active and visible to the caller. */
  visible(brand: Brand, userId: string | undefined): boolean;
  /** Whether an import pruned the entry: nothing new may use it. */
  retired(kind: CatalogueKind, id: string): boolean;
}

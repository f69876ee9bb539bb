/**
 * The whole catalogue as commands and queries join it, whether of the present (`view.ts`) or of a position of the log.
 */
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

/** One consistent state of the catalogue. Never changes; a later state is another object. */
export interface Catalogue {
  /**
   * Retired products and brands are among these, inactive; so are retired segments, integrations and merchants (see
   * `retired`). Each map is in the order of imports.
   */
  readonly products: ReadonlyMap<string, Product>;
  readonly brands: ReadonlyMap<string, Brand>;
  /** Without retired ones: nobody redeems or shops there any more. */
  readonly stores: ReadonlyMap<string, Store>;
  readonly segments: ReadonlyMap<string, Segment>;
  readonly integrations: ReadonlyMap<string, Integration>;
  readonly merchants: ReadonlyMap<string, Merchant>;
  /** Without retired ones. */
  readonly categories: ReadonlyMap<string, Category>;
  /** The stores of a brand. */
  storesOf(brandId: string): readonly Store[];
  /** The active products of a brand: its own. */
  productsOf(brandId: string): readonly Product[];
  /**
   * The brand that a bought product is of today, whatever it was of when it was bought: whose gift it is, and who
   * honours it, follow the catalogue.
   */
  brandOf(gift: { readonly product_id: string; readonly brand_id: string }): Brand | undefined;
  /**
   * Whether a gift of this product is valid for the merchant (decisions 2): one of the merchant's brands is the
   * product's brand, or lists the product in `consolidated_products`.
   */
  validFor(gift: { readonly product_id: string; readonly brand_id: string }, merchantId: string): boolean;
  /**
   * Whether the caller (a user's id; `undefined`: a client) may see and buy the product: it and its brand are active,
   * the brand visible (decisions 5).
   */
  sellable(product: Product, userId: string | undefined): boolean;
  /** Whether the brand is active and visible to the caller. */
  visible(brand: Brand, userId: string | undefined): boolean;
  /** Whether an import pruned the entry: it is known to history, but nothing new may use it. */
  retired(kind: CatalogueKind, id: string): boolean;
}

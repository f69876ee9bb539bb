/**
 * Brands (docs/api/catalogue.md#list-brands): active, visible to the caller, with active products, their own or
 * accepted consolidated ones.
 */
import { inSlices } from '../../lib/async/slices.js';
import type { Brand } from '../../domain/catalogue.js';
import type { CatalogueView } from '../../projections/catalogue/view.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';
import { embeddedCollector, type Embedded } from '../../entities/embedded.js';
import type { Route } from '../pipeline/route.js';
import { callerId } from './callerId.js';
import {
  brandEntity,
  consolidatedProducts,
  ownProducts,
  productEntity,
  storeEntity,
} from '../../entities/catalogue.js';
import { brandExample, brandSchema, productExample, productSchema, storeExample, storeSchema } from './schemas.js';
import { dataSchema, embeddedSchema, flagSchema, jsonAnswer, listSchema, querySchema } from '../pipeline/schemas.js';

export function brandRoutes({ catalogue }: { readonly catalogue: CatalogueView }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/brands',
      operation: 'listBrands',
      summary: 'List brands that have active products',
      description:
        'The active brands visible to the caller, in the order of the catalogue. Their products and consolidated products are those that the caller may buy.',
      tag: 'Catalogue',
      caller: 'any',
      embeds: ['products', 'consolidated_products', 'stores'],
      query: querySchema({
        consolidated: flagSchema('True: only consolidated brands; false: none of them; absent: all brands.'),
      }),
      answers: [
        jsonAnswer(
          'The brands.',
          dataSchema(listSchema(brandSchema), embeddedSchema({ products: productSchema, stores: storeSchema })),
          { data: [brandExample], embedded: { products: [productExample], stores: [storeExample] } },
        ),
      ],
      async handle({ query, embeds, principal }) {
        const state = catalogue.current();
        const userId = callerId(principal);
        const consolidated = query['consolidated'] as boolean | undefined;
        const brands: Brand[] = [];
        const data: object[] = [];
        await inSlices(state.brands.values(), (brand) => {
          if (
            !state.visible(brand, userId) ||
            (consolidated !== undefined && consolidated !== (brand.consolidated === 1))
          )
            return;
          const entity = brandEntity(state, brand, userId);
          if (entity.products.length === 0 && entity.consolidated_products.length === 0) return;
          brands.push(brand);
          data.push(entity);
        });
        return { body: { data, ...(await embedding(state, brands, embeds, userId)) } };
      },
    },
  ];
}

async function embedding(
  state: Catalogue,
  brands: readonly Brand[],
  embeds: readonly string[],
  userId: string | undefined,
): Promise<{ embedded?: Embedded }> {
  if (embeds.length === 0) return {};
  const collector = embeddedCollector();
  const own = embeds.includes('products');
  const accepted = embeds.includes('consolidated_products');
  const stores = embeds.includes('stores');
  if (own || accepted) collector.request('products');
  if (stores) collector.request('stores');
  await inSlices(brands, (brand) => {
    const products = [
      ...(own ? ownProducts(state, brand, userId) : []),
      ...(accepted ? consolidatedProducts(state, brand, userId) : []),
    ];
    for (const product of products) collector.add('products', product.id, () => productEntity(product));
    for (const store of stores ? state.storesOf(brand.id) : [])
      collector.add('stores', store.id, () => storeEntity(store));
  });
  return { embedded: collector.result() };
}

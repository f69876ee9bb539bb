/** Routes for products (docs/api/catalogue.md#list-products). */
import { inSlices } from '../../lib/async/slices.js';
import type { Product } from '../../domain/catalogue.js';
import type { CatalogueView } from '../../projections/catalogue/view.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';
import { embeddedCollector, type Embedded } from '../../entities/embedded.js';
import { HttpError } from '../pipeline/errors.js';
import { MAX_WHOLE_NUMBER } from '../pipeline/query.js';
import type { Call, Route } from '../pipeline/route.js';
import { callerId } from './callerId.js';
import { brandEntity, productEntity } from '../../entities/catalogue.js';
import { brandExample, brandSchema, productExample, productSchema } from './schemas.js';
import { dataSchema, embeddedSchema, jsonAnswer, listSchema, querySchema, textSchema } from '../pipeline/schemas.js';
import { MAX_QUERY, productSearch } from './search.js';

const EMBEDDED = embeddedSchema({ brands: brandSchema });
const PENCE = { type: 'integer', minimum: 0, maximum: MAX_WHOLE_NUMBER } as const;
const IDS = listSchema(textSchema());

export function productRoutes({ catalogue }: { readonly catalogue: CatalogueView }): Route[] {
  const search = productSearch();
  return [
    {
      method: 'GET',
      path: '/api/v2/products',
      operation: 'listProducts',
      summary: 'List active products',
      description:
        'All products that the caller may buy. With `q` the best match comes first, otherwise they are in the order of the catalogue. All filters given must hold.',
      tag: 'Catalogue',
      caller: 'any',
      embeds: ['brand'],
      query: querySchema({
        q: textSchema(
          'Matched against name and description; forgives typing errors, accents and unfinished words. Blank: filters nothing.',
          { maxLength: MAX_QUERY },
        ),
        min_price: { ...PENCE, description: '`sale_price` is at least this, in pence.' },
        max_price: { ...PENCE, description: '`sale_price` is at most this, in pence.' },
        brand_id: { ...IDS, description: 'Products of any of these brands.' },
        id: { ...IDS, description: 'Products with any of these ids.' },
      }),
      answers: [
        jsonAnswer('The products.', dataSchema(listSchema(productSchema), EMBEDDED), {
          data: [productExample],
          embedded: { brands: [brandExample] },
        }),
      ],
      async handle({ query, embeds, principal }) {
        const state = catalogue.current();
        const userId = callerId(principal);
        const q = (query['q'] as string | undefined)?.trim() ?? '';
        const passes = filterOf(query);
        const accepts = (product: Product): boolean => passes(product) && state.sellable(product, userId);
        const products: Product[] = [];
        const data: object[] = [];
        await inSlices(q === '' ? state.products.values() : await search.find(state, q, accepts), (product) => {
          if (q === '' && !accepts(product)) return;
          products.push(product);
          data.push(productEntity(product));
        });
        return { body: { data, ...(await embedding(state, products, embeds, userId)) } };
      },
    },
    {
      method: 'GET',
      path: '/api/v2/products/:id',
      operation: 'getProduct',
      summary: 'One product',
      description:
        'What the list would show: a product that is no longer sold, or that the caller may not buy, is not found. Gifts and transactions still embed the product they were bought as.',
      tag: 'Catalogue',
      caller: 'any',
      embeds: ['brand'],
      params: { id: "The product's id." },
      answers: [
        jsonAnswer('The product.', dataSchema(productSchema, EMBEDDED), {
          data: productExample,
          embedded: { brands: [brandExample] },
        }),
      ],
      errors: ['product_not_found'],
      async open({ params, principal }) {
        const state = catalogue.current();
        const userId = callerId(principal);
        const product = state.products.get(params['id'] ?? '');
        if (product === undefined || !state.sellable(product, userId)) throw new HttpError('product_not_found');
        return async ({ embeds }) => ({
          body: { data: productEntity(product), ...(await embedding(state, [product], embeds, userId)) },
        });
      },
    },
  ];
}

function filterOf(query: Call['query']): (product: Product) => boolean {
  const { min_price: min = 0, max_price: max = Infinity } = query as {
    readonly min_price?: number;
    readonly max_price?: number;
  };
  const brands = setOf(query['brand_id']);
  const ids = setOf(query['id']);
  return (product) =>
    product.sale_price >= min &&
    product.sale_price <= max &&
    (brands?.has(product.brand_id) ?? true) &&
    (ids?.has(product.id) ?? true);
}

function setOf(list: unknown): ReadonlySet<string> | undefined {
  return list === undefined ? undefined : new Set(list as readonly string[]);
}

async function embedding(
  state: Catalogue,
  products: readonly Product[],
  embeds: readonly string[],
  userId: string | undefined,
): Promise<{ embedded?: Embedded }> {
  if (!embeds.includes('brand')) return {};
  const collector = embeddedCollector();
  collector.request('brands');
  await inSlices(products, ({ brand_id }) => {
    const brand = state.brands.get(brand_id);
    if (brand !== undefined) collector.add('brands', brand.id, () => brandEntity(state, brand, userId));
  });
  return { embedded: collector.result() };
}

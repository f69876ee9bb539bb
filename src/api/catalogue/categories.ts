/** Routes for categories (docs/api/catalogue.md#list-categories). */
import { inSlices } from '../../lib/async/slices.js';
import type { Category } from '../../domain/catalogue.js';
import type { CatalogueView } from '../../projections/catalogue/view.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';
import { embeddedCollector, type Embedded } from '../../entities/embedded.js';
import { HttpError } from '../pipeline/errors.js';
import { pageOf, pageParameters, pageRequest, pageSchema, paginate } from '../representation/pages.js';
import type { Route } from '../pipeline/route.js';
import { callerId } from './callerId.js';
import { brandEntity, categoryEntity, productEntity, sellableProducts } from '../../entities/catalogue.js';
import {
  brandExample,
  brandSchema,
  categoryExample,
  categorySchema,
  productExample,
  productSchema,
} from './schemas.js';
import { dataSchema, embeddedSchema, jsonAnswer, querySchema } from '../pipeline/schemas.js';

const PATH = '/api/v2/product-tags/categories';
const RELATIONS = ['products', 'products.brand'];
const EMBEDDED = embeddedSchema({ products: productSchema, brands: brandSchema });
const EMBEDDED_EXAMPLE = { products: [productExample], brands: [brandExample] };

export function categoryRoutes({
  catalogue,
  publicUrl,
}: {
  readonly catalogue: CatalogueView;
  readonly publicUrl: string;
}): Route[] {
  return [
    {
      method: 'GET',
      path: PATH,
      operation: 'listCategories',
      summary: 'List categories',
      description:
        'In the order of the catalogue. Their products are those that the caller may buy; a category without any is listed too.',
      tag: 'Catalogue',
      caller: 'any',
      embeds: RELATIONS,
      query: querySchema(pageParameters),
      answers: [
        jsonAnswer(
          'A page of categories.',
          pageSchema(categorySchema, EMBEDDED),
          paginate({
            publicUrl,
            path: PATH,
            rawQuery: '',
            page: 1,
            perPage: 20,
            total: 1,
            data: [categoryExample],
            embedded: EMBEDDED_EXAMPLE,
          }),
        ),
      ],
      async handle({ query, rawQuery, embeds, principal }) {
        const state = catalogue.current();
        const userId = callerId(principal);
        const request = pageRequest(query);
        const all = [...state.categories.values()];
        const categories = pageOf(all, request);
        const data = categories.map((category) => categoryEntity(state, category, userId));
        const embedded = await embedding(state, categories, embeds, userId);
        return {
          body: paginate({ publicUrl, path: PATH, rawQuery, ...request, total: all.length, data, embedded }),
        };
      },
    },
    {
      method: 'GET',
      path: `${PATH}/:id`,
      operation: 'getCategory',
      summary: 'One category',
      description: 'As in the list: with the products that the caller may buy.',
      tag: 'Catalogue',
      caller: 'any',
      embeds: RELATIONS,
      params: { id: "The category's id." },
      answers: [
        jsonAnswer('The category.', dataSchema(categorySchema, EMBEDDED), {
          data: categoryExample,
          embedded: EMBEDDED_EXAMPLE,
        }),
      ],
      errors: ['category_not_found'],
      async open({ params, principal }) {
        const state = catalogue.current();
        const userId = callerId(principal);
        const category = state.categories.get(params['id'] ?? '');
        if (category === undefined) throw new HttpError('category_not_found');
        return async ({ embeds }) => {
          const embedded = await embedding(state, [category], embeds, userId);
          return {
            body: { data: categoryEntity(state, category, userId), ...(embedded === undefined ? {} : { embedded }) },
          };
        };
      },
    },
  ];
}

/** Embeds the products of categories, and their brands. The relation `products.brand` implies `products`. */
async function embedding(
  state: Catalogue,
  categories: readonly Category[],
  embeds: readonly string[],
  userId: string | undefined,
): Promise<Embedded | undefined> {
  if (embeds.length === 0) return undefined;
  const collector = embeddedCollector();
  const brands = embeds.includes('products.brand');
  collector.request('products');
  if (brands) collector.request('brands');
  await inSlices(categories, ({ products }) => {
    for (const product of sellableProducts(state, products, userId)) {
      collector.add('products', product.id, () => productEntity(product));
      const brand = brands ? state.brands.get(product.brand_id) : undefined;
      if (brand !== undefined) collector.add('brands', brand.id, () => brandEntity(state, brand, userId));
    }
  });
  return collector.result();
}

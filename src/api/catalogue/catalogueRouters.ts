import type { CatalogueView } from '../../projections/catalogue/view.js';
import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import { brandRoutes } from './brands.js';
import { categoryRoutes } from './categories.js';
import { productRoutes } from './products.js';
import { tileRoutes } from './tiles.js';

export interface CatalogueDeps {
  readonly catalogue: CatalogueView;
  readonly publicUrl: string;
}

export function catalogueRouters(routerOf: RouterMaker, deps: CatalogueDeps): SubjectRouter[] {
  return [
    routerOf('/api/v2/products', productRoutes(deps)),
    routerOf('/api/v2/brands', brandRoutes(deps)),
    routerOf('/api/v2/product-tags', categoryRoutes(deps)),
    routerOf('/api/v2/tiles', tileRoutes(deps)),
  ];
}

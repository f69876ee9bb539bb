import type { Route } from '../pipeline/route.js';
import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import { brandRoutes } from './brands.js';
import { categoryRoutes } from './categories.js';
import { productRoutes } from './products.js';
import { revalidated, type Representation } from './revalidation.js';
import { tileRoutes } from './tiles.js';

export function catalogueRouters(routerOf: RouterMaker, deps: Representation): SubjectRouter[] {
  const router = (prefix: string, routes: readonly Route[]): SubjectRouter =>
    routerOf(prefix, revalidated(routes, deps));
  return [
    router('/api/v2/products', productRoutes(deps)),
    router('/api/v2/brands', brandRoutes(deps)),
    router('/api/v2/product-tags', categoryRoutes(deps)),
    router('/api/v2/tiles', tileRoutes(deps)),
  ];
}

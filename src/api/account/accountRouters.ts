import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import type { AccountDeps } from './deps.js';
import { meRoutes } from './me.js';
import { paymentMethodRoutes } from './paymentMethods.js';

export function accountRouters(routerOf: RouterMaker, deps: AccountDeps): SubjectRouter[] {
  return [routerOf('/api/v2/me', meRoutes(deps)), routerOf('/api/v2/payment-methods', paymentMethodRoutes(deps))];
}

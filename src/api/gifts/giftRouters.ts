import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import { giftRoutes } from './gifts.js';
import { type LaunchPageDeps, launchPageRoutes } from './launchPage.js';
import { redemptionRoutes } from './redemptions.js';
import { transactionRoutes } from './transactions.js';
import { voucherRoutes } from './vouchers.js';

export function giftRouters(routerOf: RouterMaker, deps: LaunchPageDeps): SubjectRouter[] {
  return [
    routerOf('/api/v2/gifts', [...giftRoutes(deps), ...redemptionRoutes(deps), ...voucherRoutes(deps)]),
    routerOf('/api/v2/transactions', transactionRoutes(deps)),
    routerOf('/g', launchPageRoutes(deps)),
  ];
}

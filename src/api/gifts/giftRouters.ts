import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import type { Route } from '../pipeline/route.js';
import { giftListRoutes } from './giftList.js';
import { giftRoutes } from './gifts.js';
import { type LaunchPageDeps, launchPageRoutes } from './launchPage.js';
import { idempotencyKeyRoutes } from './idempotencyKeys.js';
import type { RedemptionKeyDeps } from './redemptionKeys.js';
import { type MerchantRedemptionDeps, merchantRedemptionRoutes } from './merchantRedemptions.js';
import { redemptionListRoutes } from './redemptionList.js';
import { redemptionRoutes } from './redemptions.js';
import { transactionListRoutes } from './transactionList.js';
import { transactionRoutes } from './transactions.js';
import { voucherRoutes } from './vouchers.js';

/** @param more routes of other subjects below `/api/v2/gifts` */
export function giftRouters(
  routerOf: RouterMaker,
  deps: LaunchPageDeps & RedemptionKeyDeps & MerchantRedemptionDeps,
  more: readonly Route[],
): SubjectRouter[] {
  return [
    routerOf('/api/v2/gifts', [
      ...giftRoutes(deps),
      ...giftListRoutes(deps),
      ...redemptionRoutes(deps),
      ...redemptionListRoutes(deps),
      ...voucherRoutes(deps),
      ...more,
    ]),
    routerOf('/api/v2/transactions', [...transactionRoutes(deps), ...transactionListRoutes(deps)]),
    routerOf('/api/v2/redemptions', merchantRedemptionRoutes(deps)),
    routerOf('/api/v2/idempotency-keys', idempotencyKeyRoutes(deps)),
    routerOf('/g', launchPageRoutes(deps)),
  ];
}

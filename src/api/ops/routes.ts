/** All routes under `/ops`: each resource's file gives its own, `frame.ts` makes them routes. */
import { accessRecorder } from '../../commands/recordAccess.js';
import type { Route } from '../pipeline/route.js';
import { accessRoutes } from './access.js';
import { giftAuditRoutes } from './gifts.js';
import { giftCareRoutes } from './supportActions.js';
import type { OpsDeps } from './deps.js';
import { type OpsRoute, opsRoute } from './frame.js';
import { parkedRoutes } from './parked.js';
import { projectionRoutes } from './projections.js';
import { reconciliationRoutes } from './reconciliation.js';
import { redemptionAuditRoutes } from './redemptions.js';
import { refundRoutes } from './refunds.js';
import { totalsRoutes } from './totals.js';

/** The routes. */
export function opsRoutes(deps: OpsDeps): Route[] {
  const access = accessRecorder(deps.engines.events, deps.gifts.now);
  const routes: OpsRoute[] = [
    ...accessRoutes(deps),
    ...projectionRoutes(deps),
    ...giftAuditRoutes(deps),
    ...redemptionAuditRoutes(deps),
    ...totalsRoutes(deps),
    ...refundRoutes(deps),
    ...reconciliationRoutes(deps),
    ...parkedRoutes(deps),
    ...giftCareRoutes(deps),
  ];
  return routes.map((route) => opsRoute(access, route));
}

import { accessRecorder } from '../../commands/recordAccess.js';
import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import { accessRoutes } from './access.js';
import { giftAuditRoutes } from './gifts.js';
import { supportActionRoutes } from './supportActions.js';
import { erasureRoutes, openErasureRoutes } from './erasures.js';
import type { OpsDeps } from './deps.js';
import { diagnosisRoutes } from './diagnosis.js';
import { evidenceRoutes } from './evidence.js';
import { type OpsRoute, opsRoute } from './frame.js';
import { logRoutes } from './log.js';
import { manyActionRoutes } from './manyActions.js';
import { parkedGroupRoutes } from './parkedGroups.js';
import { parkedRoutes } from './parked.js';
import { foundGiftRoutes, peopleRoutes } from './people.js';
import { projectionRoutes } from './projections.js';
import { purchaseRoutes } from './purchases.js';
import { reconciliationRoutes } from './reconciliation.js';
import { redemptionAuditRoutes } from './redemptions.js';
import { refundRoutes } from './refunds.js';
import { totalsRoutes } from './totals.js';
import { webhookRoutes } from './webhooks.js';

/** @param ofGifts further routes below `/ops/gifts` */
export function opsRouters(routerOf: RouterMaker, deps: OpsDeps, ofGifts: readonly OpsRoute[]): SubjectRouter[] {
  const access = accessRecorder(deps.engines.events, deps.gifts.now);
  const router = (resource: string, routes: readonly OpsRoute[]): SubjectRouter =>
    routerOf(
      `/ops/${resource}`,
      routes.map((route) => opsRoute(access, route, deps.takeDaily)),
    );
  return [
    router('access', accessRoutes(deps)),
    router('log', logRoutes(deps)),
    router('diagnosis', diagnosisRoutes(deps)),
    router('evidence', evidenceRoutes(deps)),
    router('projections', projectionRoutes(deps)),
    router('gifts', [...foundGiftRoutes(deps), ...giftAuditRoutes(deps), ...ofGifts, ...supportActionRoutes(deps)]),
    router('actions', manyActionRoutes(deps)),
    router('redemptions', redemptionAuditRoutes(deps)),
    router('totals', totalsRoutes(deps)),
    router('transactions', [...purchaseRoutes(deps), ...refundRoutes(deps)]),
    router('payments', reconciliationRoutes(deps)),
    router('parked', [...parkedRoutes(deps), ...parkedGroupRoutes(deps)]),
    router('webhooks', webhookRoutes(deps)),
    router('people', [...peopleRoutes(deps), ...erasureRoutes(deps)]),
    router('erasures', openErasureRoutes(deps)),
  ];
}

/** All routes under `/ops`: each resource's file gives its own, `frame.ts` makes them routes. */
import { accessRecorder } from '../../commands/recordAccess.js';
import type { Engines } from '../../engines.js';
import type { ProviderSettings } from '../../providerSettings.js';
import type { ReadModels } from '../../readModels.js';
import type { GiftRouteDeps } from '../giftDeps.js';
import type { Route } from '../route.js';
import { accessRoutes } from './access.js';
import { giftAuditRoutes } from './gifts.js';
import { giftCareRoutes } from './giftCare.js';
import { type OpsRoute, opsRoute } from './frame.js';
import { parkedRoutes } from './parked.js';
import { projectionRoutes, type Upkeep } from './projections.js';
import { reconciliationRoutes } from './reconciliation.js';
import { redemptionAuditRoutes } from './redemptions.js';
import { refundRoutes } from './refunds.js';
import { totalsRoutes } from './totals.js';

/** What they work with. */
export interface OpsDeps {
  /** What the gifts' own routes work with: commands, the catalogue, where the service is reached, the present. */
  readonly gifts: GiftRouteDeps;
  readonly engines: Engines;
  readonly models: ReadModels;
  /** Who takes the money. */
  readonly payments: Pick<ProviderSettings, 'payments' | 'stripe'>;
  /** Of the read models. */
  readonly upkeep: Upkeep;
}

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

import { accessRecorder } from '../../commands/recordAccess.js';
import { opsRoute } from '../ops/frame.js';
import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import { checkpointRoute } from './checkpoint.js';
import type { EvidenceDeps } from './deps.js';
import { bundleRoutes } from './bundles.js';
import { tileRoutes } from './tiles.js';

export function evidenceRouters(routerOf: RouterMaker, deps: EvidenceDeps): SubjectRouter[] {
  const access = accessRecorder(deps.events, deps.now);
  return [
    routerOf('/checkpoint', [checkpointRoute(deps)]),
    routerOf('/tile', [...tileRoutes(deps), ...bundleRoutes(deps).map((route) => opsRoute(access, route))]),
  ];
}

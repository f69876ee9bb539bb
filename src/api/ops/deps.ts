/** What the routes under `/ops` work with. */
import type { Logger } from 'pino';
import type { Engines } from '../../ports/engines.js';
import type { Projection } from '../../runtime/readmodels/projection.js';
import type { Asked, RebuildDeps } from '../../runtime/readmodels/maintenance/rebuild.js';
import type { Tasks } from '../../runtime/readmodels/maintenance/tasks.js';
import type { ProviderSettings } from '../../providers/settings.js';
import type { ReadModels } from '../../projections/index.js';
import type { ServiceStatus } from '../../ops/status/serviceStatus.js';
import type { GiftRouteDeps } from '../gifts/deps.js';

/** What all of them work with. */
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

/** What the routes of projections need beside. */
export interface Upkeep {
  readonly tasks: Tasks;
  readonly status: ServiceStatus;
  readonly logger: Logger;
  /** Where a verification's copy is made. */
  readonly dataDir: string;
}

/** What a route on one projection works with. */
export interface Named {
  readonly projection: Projection;
  readonly deps: RebuildDeps;
  readonly asked: Asked;
}

import type { Logger } from 'pino';
import type { KeyedHash } from '../../domain/keyedHash.js';
import type { Engines } from '../../ports/engines.js';
import type { Asked, Projection, RebuildDeps, Tasks } from '../../runtime/readmodels/index.js';
import type { ProviderSettings } from '../../providers/settings.js';
import type { ReadModels } from '../../projections/index.js';
import type { ServiceStatus } from '../../ops/status/serviceStatus.js';
import type { ScratchStore } from '../../ops/readmodels/verifyReadModel.js';
import type { SignedLog } from '../../ops/readmodels/refuseAlteredLog.js';
import type { Erasures } from '../../ops/people/index.js';
import type { GiftRouteDeps } from '../gifts/deps.js';
import type { TakeDaily } from '../limits/dailyLimits.js';

export interface OpsDeps {
  readonly gifts: GiftRouteDeps;
  readonly engines: Engines;
  readonly hash: KeyedHash;
  readonly models: ReadModels;
  readonly payments: Pick<ProviderSettings, 'payments' | 'stripe'>;
  readonly upkeep: Upkeep;
  readonly erasures: Erasures;
  readonly erasureDelayMs: number;
  readonly takeDaily: TakeDaily;
}

export interface Upkeep {
  readonly tasks: Tasks;
  readonly status: ServiceStatus;
  readonly logger: Logger;
  /** Opens the store for the temporary copy that a verification builds. */
  readonly openScratch: () => Promise<ScratchStore>;
  /** Log that rebuilds and repairs read, with what verifies its signed heads. */
  readonly signedLog: SignedLog;
}

export interface Named {
  readonly projection: Projection;
  readonly deps: RebuildDeps;
  readonly asked: Asked;
}

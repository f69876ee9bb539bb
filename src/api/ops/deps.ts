import type { KeyedHash } from '../../domain/keyedHash.js';
import type { Engines } from '../../ports/engines.js';
import type { Requested, Projection } from '../../runtime/readmodels/index.js';
import type { ProviderSettings } from '../../providers/settings.js';
import type { ReadModels } from '../../projections/index.js';
import type { ServiceStatus } from '../../ops/status/serviceStatus.js';
import type { AwaitedOrders } from '../../ops/readmodels/orders.js';
import type { Finding } from '../../ops/diagnosis/index.js';
import type { EvidenceView } from '../../ops/evidence/index.js';
import type { DeliveryState } from '../../messages/webhookAttempts.js';
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
  /** How the deliveries to a webhook endpoint stand. */
  readonly deliveryState: (endpointId: string) => Promise<DeliveryState>;
  /** The latest signed heads, and their witnesses. */
  readonly evidence: () => Promise<EvidenceView>;
  readonly diagnose: () => Promise<readonly Finding[]>;
}

interface Upkeep {
  readonly orders: AwaitedOrders;
  readonly status: ServiceStatus;
}

export interface Named {
  readonly projection: Projection;
  readonly requested: Requested;
}

import type { EndpointDeps } from '../../commands/webhookEndpoints.js';
import type { AddressRules } from '../../lib/publicAddress.js';
import type { Records } from '../../ports/readStore.js';
import type { FeedDocument } from '../../projections/feed/feed.js';
import type { WebhookDocument } from '../../projections/webhookEndpoints.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import type { TakeDaily } from '../limits/dailyLimits.js';

export interface WebhookEndpointDeps extends EndpointDeps {
  readonly endpoints: ReadModel<WebhookDocument>;
  readonly feed: Pick<ReadModel<FeedDocument>, 'get'>;
  readonly records: Pick<Records, 'list'>;
  readonly urls: AddressRules;
  readonly takeDaily: TakeDaily;
  /** The present, ISO 8601, UTC. */
  now(): string;
}

import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { disableFailingEndpoint } from '../commands/webhookEndpoints.js';
import { signingSecrets } from '../commands/webhookSecrets.js';
import { currentTime } from '../lib/clock.js';
import type { AddressRules } from '../lib/publicAddress.js';
import type { Engines } from '../ports/engines.js';
import type { Position } from '../ports/eventStore.js';
import type { ReadModels } from '../projections/index.js';
import { feedProjection } from '../projections/feed/feed.js';
import { webhookEndpointsProjection } from '../projections/webhookEndpoints.js';
import { isOwnerActive } from '../projections/webhookOwners.js';
import type { Subjects } from '../runtime/personal/index.js';
import type { Followers } from '../runtime/supervision/followers.js';
import { addressPolicy } from './addresses.js';
import { type Deliveries, startDeliveries } from './deliveries.js';
import { openSender } from './sender.js';

/** User named in the log as having disabled a failing endpoint. */
const DELIVERY_USER = 'system:webhooks';

/** Names of the read models that deliveries need. */
const READ = [webhookEndpointsProjection.name, feedProjection.name];

export interface WebhooksOptions {
  readonly engines: Pick<Engines, 'events' | 'store'>;
  readonly models: Pick<ReadModels, 'accounts' | 'catalogue' | 'feed' | 'webhookEndpoints'>;
  readonly subjects: Pick<Subjects, 'secrets'>;
  readonly addressRules: AddressRules;
  /** Position at which outward work was last resumed. */
  readonly resumedAt: Position | undefined;
  readonly version: string;
  readonly logger: Logger;
  readonly holder: string;
  readonly followers: Pick<Followers, 'start'>;
}

export function startWebhooks({
  engines: { events, store },
  models,
  subjects,
  addressRules,
  version,
  ...deps
}: WebhooksOptions): Deliveries {
  return startDeliveries({
    ...deps,
    events,
    records: store.records,
    feed: models.feed,
    endpoints: models.webhookEndpoints,
    areBuilt: async () => {
      const used = await Promise.all(READ.map(async (name) => store.active(name)));
      return used.every((build) => build !== undefined);
    },
    sender: openSender({
      addresses: addressPolicy(addressRules),
      userAgent: `gift-commerce/${version}`,
    }),
    signingSecrets: ({ secrets }, at) => signingSecrets(subjects, secrets, at),
    isOwnerActive: async (owner) => isOwnerActive(models, owner),
    async disable(id, cause) {
      const commandId = randomUUID();
      await disableFailingEndpoint({ events }, id, cause, {
        commandId,
        correlationId: commandId,
        by: { user: DELIVERY_USER },
        now: currentTime(),
      });
    },
  });
}

import type { Logger } from 'pino';
import { disableFailingEndpoint } from '../commands/webhookEndpoints.js';
import { signingSecrets } from '../commands/webhookSecrets.js';
import { currentTime } from '../lib/clock.js';
import type { AddressRules } from '../lib/publicAddress.js';
import { randomUUID } from '../lib/world.js';
import type { Engines } from '../ports/engines.js';
import type { Position } from '../ports/eventStore.js';
import type { ReadModels } from '../projections/index.js';
import { feedProjection } from '../projections/feed/feed.js';
import { webhookEndpointsProjection } from '../projections/webhookEndpoints.js';
import type { Subjects } from '../runtime/personal/index.js';
import type { Followers } from '../runtime/supervision/followers.js';
import { addressPolicy } from './addresses.js';
import { type Deliveries, startDeliveries } from './deliveries.js';
import { openSender, type Sender } from './sender.js';
import { accountStream } from '../domain/account.js';
import { catalogueStream } from '../domain/catalogue.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { AccountDocument } from '../projections/accounts.js';
import type { CatalogueDocument } from '../projections/catalogue/catalogue.js';

/** User named in the log as having disabled a failing endpoint. */
const DELIVERY_USER = 'system:webhooks';

/** Names of the read models that deliveries need. */
const READ = [webhookEndpointsProjection.name, feedProjection.name];

interface WebhooksOptions {
  readonly engines: Pick<Engines, 'events' | 'store'>;
  readonly models: Pick<ReadModels, 'accounts' | 'catalogue' | 'feed' | 'webhookEndpoints'>;
  readonly subjects: Pick<Subjects, 'secrets'>;
  readonly addressRules: AddressRules;
  /** Sends the requests; default: over the network. */
  readonly sender?: Sender | undefined;
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
  sender = openSender({ addresses: addressPolicy(addressRules), userAgent: `gift-commerce/${version}` }),
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
    sender,
    signingSecrets: ({ secrets }, at) => signingSecrets(subjects, secrets, at),
    isOwnerActive: async (owner) => isOwnerActive(models, owner),
    async disable(endpoint, cause) {
      const commandId = randomUUID();
      await disableFailingEndpoint({ events }, endpoint, cause, {
        commandId,
        correlationId: commandId,
        by: { user: DELIVERY_USER },
        now: currentTime(),
      });
    },
  });
}

interface OwnerModels {
  readonly accounts: Pick<ReadModel<AccountDocument>, 'get'>;
  readonly catalogue: Pick<ReadModel<CatalogueDocument>, 'get'>;
}

/**
 * Whether the owner of webhook endpoints may still be sent anything: a client that is active, a merchant that is not
 * retired.
 * @param owner `client:{id}` or `merchant:{id}` @throws UnavailableError
 */
export async function isOwnerActive({ accounts, catalogue }: OwnerModels, owner: string): Promise<boolean> {
  const id = owner.slice(owner.indexOf(':') + 1);
  if (owner.startsWith('merchant:')) return (await catalogue.get(catalogueStream('merchant', id)))?.retired === false;
  const client = await accounts.get(accountStream('client', id));
  return client?.entry === 'client' && client.active;
}

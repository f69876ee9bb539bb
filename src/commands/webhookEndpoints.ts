/** What owners, and the deliveries, do to a webhook endpoint. */
import { Refusal } from '../domain/refusal.js';
import {
  changeEndpoint,
  deleteEndpoint,
  type DeliveryRequested,
  disableEndpoint,
  type DisabledBy,
  type EndpointChange,
  type EndpointOwner,
  type EndpointSettings,
  liveEndpoint,
  ownerName,
  requestDelivery,
  rotateSecret,
  type WebhookEndpoint,
  webhookEndpointAggregate,
  type WebhookEndpointEvent,
  webhookEndpointStream,
} from '../domain/webhookEndpoint.js';
import type { EventStore } from '../ports/eventStore.js';
import type { Subjects } from '../runtime/personal/subjects.js';
import type { CommandContext } from './context.js';
import { type Transacted, transact } from './transact.js';
import { secretOfCommand } from './webhookSecrets.js';

export interface EndpointDeps {
  readonly events: EventStore;
  readonly subjects: Pick<Subjects, 'ids' | 'secrets'>;
}

/** An endpoint of this owner; one of another is not found. */
export interface NamedEndpoint {
  readonly id: string;
  readonly owner: EndpointOwner;
}

/**
 * `mayAdd`: throws where the owner has too many; it is not asked for a repeated command.
 * @throws what `mayAdd` throws; UnavailableError
 */
export async function createEndpoint(
  { events, subjects }: EndpointDeps,
  { id, owner }: NamedEndpoint,
  settings: EndpointSettings,
  context: CommandContext,
  mayAdd: () => Promise<void>,
): Promise<Transacted<WebhookEndpoint>> {
  return run(events, id, context, async () => {
    await mayAdd();
    const secret_id = await secretOfCommand(subjects, id, context.commandId);
    return [{ type: 'WebhookEndpointCreated', data: { owner, ...settings, secret_id } }];
  });
}

/** @throws Refusal `webhook_endpoint_not_found`; UnavailableError */
export async function changeOwnEndpoint(
  { events }: Pick<EndpointDeps, 'events'>,
  named: NamedEndpoint,
  change: EndpointChange,
  context: CommandContext,
): Promise<Transacted<WebhookEndpoint>> {
  return run(events, named.id, context, (state) => changeEndpoint(ownOf(state, named), change));
}

/** @throws Refusal `webhook_endpoint_not_found`; UnavailableError */
export async function rotateOwnSecret(
  { events, subjects }: EndpointDeps,
  named: NamedEndpoint,
  context: CommandContext,
): Promise<Transacted<WebhookEndpoint>> {
  return run(events, named.id, context, async (state) => {
    ownOf(state, named);
    return rotateSecret(state, await secretOfCommand(subjects, named.id, context.commandId), context.now);
  });
}

/** @throws Refusal `webhook_endpoint_not_found`; UnavailableError */
export async function deleteOwnEndpoint(
  { events }: Pick<EndpointDeps, 'events'>,
  named: NamedEndpoint,
  context: CommandContext,
): Promise<Transacted<WebhookEndpoint>> {
  return run(events, named.id, context, (state) => deleteEndpoint(ownOf(state, named)));
}

/** @throws Refusal `webhook_endpoint_not_found`, `webhook_endpoint_disabled`; UnavailableError */
export async function requestOwnDelivery(
  { events }: Pick<EndpointDeps, 'events'>,
  named: NamedEndpoint,
  request: DeliveryRequested,
  context: CommandContext,
): Promise<Transacted<WebhookEndpoint>> {
  return run(events, named.id, context, (state) => requestDelivery(ownOf(state, named), request));
}

/** For the deliveries. No event for one that is disabled or gone. @throws UnavailableError */
export async function disableFailingEndpoint(
  { events }: Pick<EndpointDeps, 'events'>,
  id: string,
  cause: Exclude<DisabledBy, 'owner'>,
  context: CommandContext,
): Promise<Transacted<WebhookEndpoint>> {
  return run(events, id, context, (state) => disableEndpoint(state, cause));
}

/** @throws Refusal `webhook_endpoint_not_found` */
export function ownOf(state: WebhookEndpoint, { owner }: Pick<NamedEndpoint, 'owner'>): WebhookEndpoint {
  if (ownerName(liveEndpoint(state).owner) !== ownerName(owner)) throw new Refusal('webhook_endpoint_not_found');
  return state;
}

async function run(
  events: EventStore,
  id: string,
  context: CommandContext,
  decide: (state: WebhookEndpoint) => readonly WebhookEndpointEvent[] | Promise<readonly WebhookEndpointEvent[]>,
): Promise<Transacted<WebhookEndpoint>> {
  return transact(events, webhookEndpointAggregate, webhookEndpointStream(id), context, decide);
}

/** Commands on webhook endpoints, by their owners and by the deliveries. */
import { fold } from '../domain/decider.js';
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
  ownerName,
  refuseTooMany,
  requestDelivery,
  rotateSecret,
  type WebhookEndpoint,
  webhookEndpointAggregate,
  type WebhookEndpointEvent,
  webhookEndpointStream,
} from '../domain/webhookEndpoint.js';
import type { EventStore, RecordedEvent } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { Subjects } from '../runtime/personal/index.js';
import { type CommandContext, ownEvents, type Transacted, transact } from './transact.js';
import { secretOfCommand } from './webhookSecrets.js';

export interface EndpointDeps {
  readonly events: EventStore;
  readonly subjects: Pick<Subjects, 'ids' | 'secrets'>;
}

export interface NamedEndpoint {
  readonly id: string;
  readonly owner: EndpointOwner;
}

/** An endpoint with its stream as just read. */
export interface OwnEndpoint extends NamedEndpoint {
  readonly history: readonly RecordedEvent[];
}

type Events = Pick<EndpointDeps, 'events'>;
type Done = Promise<Transacted<WebhookEndpoint>>;

/**
 * A deleted endpoint is found only for a command that has already run on it.
 * @throws Refusal `webhook_endpoint_not_found`, also for an endpoint of another owner; `idempotency_key_reused`;
 * UnavailableError
 */
export async function openOwnEndpoint(
  deps: Events,
  { id, owner }: NamedEndpoint,
  context: CommandContext,
): Promise<OwnEndpoint> {
  const endpoint = await openEndpoint(deps, id, context);
  if (ownerName(endpoint.owner) !== ownerName(owner)) throw new Refusal('webhook_endpoint_not_found');
  return endpoint;
}

/**
 * The endpoint of any owner, for support. A deleted one is found only for a command that has already run on it.
 * @throws Refusal `webhook_endpoint_not_found`; `idempotency_key_reused`; UnavailableError
 */
export async function openEndpoint({ events }: Events, id: string, context: CommandContext): Promise<OwnEndpoint> {
  const history = await events.read(webhookEndpointStream(id));
  const state = fold(webhookEndpointAggregate, history);
  if (state.status === 'none' || (state.status === 'deleted' && ownEvents(history, context).length === 0))
    throw new Refusal('webhook_endpoint_not_found');
  return { id, owner: state.owner, history };
}

/**
 * `mayAdd` throws where the owner has too many endpoints; it is not called for a repeated command.
 * @throws what `mayAdd` throws; Refusal `idempotency_key_reused` for a user who works for another merchant by now;
 * UnavailableError
 */
export async function createEndpoint(
  { events, subjects }: EndpointDeps,
  { id, owner }: NamedEndpoint,
  settings: EndpointSettings,
  context: CommandContext,
  mayAdd: () => Promise<void>,
): Done {
  const done = await run(events, { id }, context, async () => {
    await mayAdd();
    const secret_id = await secretOfCommand(subjects, id, context.commandId);
    return [{ type: 'WebhookEndpointCreated', data: { owner, ...settings, secret_id } }];
  });
  const { replayed, state } = done;
  if (replayed && state.status !== 'none' && ownerName(state.owner) !== ownerName(owner))
    throw new Refusal('idempotency_key_reused');
  return done;
}

/** @throws Refusal `webhook_endpoint_not_found`; UnavailableError */
export async function changeOwnEndpoint(
  { events }: Events,
  endpoint: OwnEndpoint,
  change: EndpointChange,
  context: CommandContext,
): Done {
  return run(events, endpoint, context, (state) => changeEndpoint(state, change));
}

/** @throws Refusal `webhook_endpoint_not_found`; UnavailableError */
export async function rotateOwnSecret(
  { events, subjects }: EndpointDeps,
  endpoint: OwnEndpoint,
  context: CommandContext,
  graceSeconds?: number,
): Done {
  return run(events, endpoint, context, async (state) =>
    rotateSecret(state, await secretOfCommand(subjects, endpoint.id, context.commandId), context.now, graceSeconds),
  );
}

/** @throws UnavailableError */
export async function deleteOwnEndpoint({ events }: Events, endpoint: OwnEndpoint, context: CommandContext): Done {
  return run(events, endpoint, context, deleteEndpoint);
}

/** @throws Refusal `webhook_endpoint_not_found`, `webhook_endpoint_disabled`; UnavailableError */
export async function requestOwnDelivery(
  { events }: Events,
  endpoint: OwnEndpoint,
  request: DeliveryRequested,
  context: CommandContext,
): Done {
  return run(events, endpoint, context, (state) => requestDelivery(state, request));
}

/**
 * Called by the deliveries. No event for an endpoint that is disabled or deleted.
 * @param url the URL that fails @throws UnavailableError, also where the endpoint has another one by now
 */
export async function disableFailingEndpoint(
  { events }: Events,
  { id, url }: { readonly id: string; readonly url: string },
  cause: Exclude<DisabledBy, 'owner'>,
  context: CommandContext,
): Done {
  return run(events, { id }, context, (state) => {
    if (state.status === 'enabled' && state.url !== url)
      throw new UnavailableError('the webhook endpoint has another URL by now');
    return disableEndpoint(state, cause);
  });
}

async function run(
  events: EventStore,
  { id, history }: { readonly id: string; readonly history?: OwnEndpoint['history'] },
  context: CommandContext,
  decide: (state: WebhookEndpoint) => readonly WebhookEndpointEvent[] | Promise<readonly WebhookEndpointEvent[]>,
): Done {
  const decideWithinLimits = async (state: WebhookEndpoint): Promise<readonly WebhookEndpointEvent[]> => {
    const decided = await decide(state);
    refuseTooMany(state, decided, context.now);
    return decided;
  };
  return transact(events, webhookEndpointAggregate, webhookEndpointStream(id), context, decideWithinLimits, history);
}

/** Webhook endpoints, and requests to their deliveries. Documents hold no secret: the key store has them. */
import type { Happened } from '../domain/decider.js';
import { idOf } from '../domain/streamName.js';
import {
  type DisabledBy,
  type EndpointSettings,
  ownerName,
  rotated,
  type SigningSecret,
  type WebhookEndpointCreated,
  type WebhookEndpointEvent,
} from '../domain/webhookEndpoint.js';
import type { Position, RecordedEvent } from '../ports/eventStore.js';
import { type Projection, typesOf } from '../runtime/readmodels/index.js';
import { HIDDEN_FIELDS } from './hiddenFields.js';

/** `endpoint/{id}`. Times are ISO 8601, UTC, milliseconds. */
export interface EndpointDocument extends EndpointSettings {
  readonly endpoint_id: string;
  /** Name of the owner: `client:{id}` or `merchant:{id}`. */
  readonly owner: string;
  readonly state: 'enabled' | 'disabled' | 'deleted';
  readonly created_at: string;
  /** Signing secrets, the newest first. */
  readonly secrets: readonly SigningSecret[];
  /** Position of the creation, or of the last enabling: events after it are delivered. */
  readonly from: Position;
  /** When the endpoint was created, or enabled last. */
  readonly enabled_at: string;
  /** Cause of the disabling, while the endpoint is disabled. */
  readonly disabled_by?: DisabledBy;
  readonly disabled_at?: string;
  /** Position of the last `request/` document; absent: there is none. */
  readonly requested?: Position;
}

/**
 * `request/{endpoint id}/{position}`: stays once the request is done. `id`: the event's id, which is also the message's
 * id of a ping.
 */
export interface DeliveryRequest {
  readonly id: string;
  readonly at: string;
  readonly request:
    | { readonly kind: 'ping' }
    | { readonly kind: 'resend'; readonly event_id: string; readonly position: Position }
    | { readonly kind: 'recover'; readonly since: string };
}

export type WebhookDocument = EndpointDocument | DeliveryRequest;

export const endpointDocument = (endpointId: string): string => `endpoint/${endpointId}`;

/** Id of a request's document. Ids sort in log order, and that of position `''` before all. */
export const requestDocument = (endpointId: string, position: Position): string => `request/${endpointId}/${position}`;

/** A text that sorts after the ids of all requests of an endpoint. */
export const requestsEnd = (endpointId: string): string => `request/${endpointId}0`;

export const positionOfRequest = (id: string): Position => id.slice(id.lastIndexOf('/') + 1);

type Folded = Happened<WebhookEndpointEvent> & RecordedEvent;

export const webhookEndpointsProjection: Projection<WebhookDocument> = {
  name: 'webhook_endpoints',
  version: 1,
  hidden: HIDDEN_FIELDS,
  indexes: [{ fields: ['owner', 'state'] }, { fields: ['state'] }],
  types: typesOf<WebhookEndpointEvent['type']>({
    WebhookEndpointCreated: true,
    WebhookEndpointChanged: true,
    WebhookSecretRotated: true,
    WebhookEndpointDisabled: true,
    WebhookEndpointEnabled: true,
    WebhookEndpointDeleted: true,
    WebhookPingRequested: true,
    WebhookResendRequested: true,
    WebhookRecoverRequested: true,
  }),
  documentIds(event) {
    const id = idOf(event.stream);
    const request = requestOf(event as Folded);
    return [endpointDocument(id), ...(request === undefined ? [] : [requestDocument(id, event.position)])];
  },
  evolve(document, event, _, index) {
    const folded = event as Folded;
    if (index === 1) return deliveryRequestOf(folded);
    return folded.type === 'WebhookEndpointCreated' ? created(folded) : changed(document, folded);
  },
};

function created({ stream, position, at, data }: Folded & WebhookEndpointCreated): EndpointDocument {
  const { owner, secret_id, ...settings } = data;
  return {
    ...settings,
    endpoint_id: idOf(stream),
    owner: ownerName(owner),
    state: 'enabled',
    created_at: at,
    secrets: [{ id: secret_id }],
    from: position,
    enabled_at: at,
  };
}

function changed(document: WebhookDocument | undefined, event: Folded): EndpointDocument {
  if (document === undefined) throw new Error(`${event.type} of an endpoint that was never created`);
  const before = document as EndpointDocument;
  switch (event.type) {
    case 'WebhookEndpointChanged':
      return { ...before, ...event.data };
    case 'WebhookSecretRotated':
      return { ...before, secrets: rotated(before.secrets, event.data) };
    case 'WebhookEndpointDisabled':
      return { ...before, state: 'disabled', disabled_by: event.data.cause, disabled_at: event.at };
    case 'WebhookEndpointEnabled': {
      const { disabled_by: _, disabled_at: __, ...rest } = before;
      return { ...rest, state: 'enabled', from: event.position, enabled_at: event.at };
    }
    case 'WebhookEndpointDeleted':
      return { ...before, state: 'deleted' };
    default:
      return { ...before, requested: event.position };
  }
}

function requestOf({ type, data }: Folded): DeliveryRequest['request'] | undefined {
  switch (type) {
    case 'WebhookPingRequested':
      return { kind: 'ping' };
    case 'WebhookResendRequested':
      return { kind: 'resend', ...data };
    case 'WebhookRecoverRequested':
      return { kind: 'recover', ...data };
    default:
      return undefined;
  }
}

function deliveryRequestOf(event: Folded): DeliveryRequest {
  const request = requestOf(event);
  if (request === undefined) throw new Error(`${event.type} asks for no delivery`);
  return { id: event.id, at: event.at, request };
}

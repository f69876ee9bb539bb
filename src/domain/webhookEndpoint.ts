/**
 * A webhook endpoint: the URL to which its owner has events of the feed sent (docs/api/webhooks.md#webhook-endpoints).
 * Stream `webhookEndpoint-{id}`. Requests to the deliveries are events of this stream, too, so that they outlive the
 * process that accepted them.
 */
import type { Aggregate, DomainEvent, Happened } from './decider.js';
import { Refusal } from './refusal.js';

export const webhookEndpointStream = (id: string): string => `webhookEndpoint-${id}`;

/** A client gets the events of purchases made through it, a merchant those of redemptions at its locations. */
export interface EndpointOwner {
  readonly kind: 'client' | 'merchant';
  readonly id: string;
}

export const ownerName = ({ kind, id }: EndpointOwner): string => `${kind}:${id}`;

/** Number of endpoints that one owner may have at a time. */
export const MOST_ENDPOINTS = 20;

/**
 * Number of endpoints that one owner may create within 24 hours: events of deleted endpoints stay in the log for ever
 * (docs/api/limits.md#webhook-endpoints).
 */
export const MOST_CREATED_A_DAY = 100;

/** Maximum length of an endpoint's description in characters. */
export const LONGEST_DESCRIPTION = 256;

// Events

export interface EndpointSettings {
  readonly url: string;
  /** Types of the feed's entries to deliver; null: all types, also those of later releases. */
  readonly types: readonly string[] | null;
  /** The owner's description, which must name no person (docs/api/webhooks.md#webhook-endpoints). */
  readonly description: string | null;
}

/** `secret_id`: id of the signing secret in the key store. Events before this one in the log are not delivered. */
export type WebhookEndpointCreated = DomainEvent<
  'WebhookEndpointCreated',
  EndpointSettings & { readonly owner: EndpointOwner; readonly secret_id: string }
>;

type WebhookEndpointChanged = DomainEvent<'WebhookEndpointChanged', Partial<EndpointSettings>>;

/** `previous_until`: latest time until which earlier secrets also sign (ISO 8601, UTC). */
export type WebhookSecretRotated = DomainEvent<
  'WebhookSecretRotated',
  { readonly secret_id: string; readonly previous_until: string }
>;

/**
 * `failures`: nothing was delivered for days; `gone`: the receiver answered 410; `inactive`: the client or merchant is
 * disabled or retired.
 */
export type DisabledBy = 'owner' | 'failures' | 'gone' | 'inactive';

type WebhookEndpointDisabled = DomainEvent<'WebhookEndpointDisabled', { readonly cause: DisabledBy }>;

/** Events between the disabling and this event are delivered only on request. */
type WebhookEndpointEnabled = DomainEvent<'WebhookEndpointEnabled', Nothing>;

type WebhookEndpointDeleted = DomainEvent<'WebhookEndpointDeleted', Nothing>;

/** A request for a ping message, whose id is the id of this event. */
type WebhookPingRequested = DomainEvent<'WebhookPingRequested', Nothing>;

/** A request to send an entry of the feed again. `position`: position of the entry in this log. */
export type WebhookResendRequested = DomainEvent<
  'WebhookResendRequested',
  { readonly event_id: string; readonly position: string }
>;

/** A request to deliver all undelivered events that happened since `since` (ISO 8601, UTC). */
export type WebhookRecoverRequested = DomainEvent<'WebhookRecoverRequested', { readonly since: string }>;

type Nothing = Readonly<Record<never, never>>;

export type DeliveryRequested = WebhookPingRequested | WebhookResendRequested | WebhookRecoverRequested;

export type WebhookEndpointEvent =
  | WebhookEndpointCreated
  | WebhookEndpointChanged
  | WebhookSecretRotated
  | WebhookEndpointDisabled
  | WebhookEndpointEnabled
  | WebhookEndpointDeleted
  | DeliveryRequested;

// State

/** `until`: time at which the secret stops signing (ISO 8601, UTC); absent for the present secret. */
export interface SigningSecret {
  readonly id: string;
  readonly until?: string;
}

export type WebhookEndpoint =
  | { readonly status: 'none' }
  | { readonly status: 'deleted'; readonly owner: EndpointOwner }
  | (EndpointSettings & {
      readonly status: 'enabled' | 'disabled';
      readonly owner: EndpointOwner;
      /** Signing secrets, the newest first. */
      readonly secrets: readonly SigningSecret[];
      /** Times of the events that `MOST_A_DAY` limits, by type, within the 24 hours before the last one. */
      readonly recent: Readonly<Partial<Record<string, readonly string[]>>>;
    });

type LiveEndpoint = Extract<WebhookEndpoint, EndpointSettings>;

export const webhookEndpointAggregate: Aggregate<WebhookEndpoint, WebhookEndpointEvent> = {
  initial: { status: 'none' },
  evolve(state: WebhookEndpoint, event: Happened<WebhookEndpointEvent>): WebhookEndpoint {
    if (event.type === 'WebhookEndpointCreated') {
      const { secret_id, ...created } = event.data;
      return { ...created, status: 'enabled', secrets: [{ id: secret_id }], recent: {} };
    }
    if (!isLive(state)) return state;
    const counted = event.type in MOST_A_DAY ? counting(state, event) : state;
    return evolved(counted, event);
  },
};

function evolved(state: LiveEndpoint, event: Happened<WebhookEndpointEvent>): WebhookEndpoint {
  switch (event.type) {
    case 'WebhookEndpointCreated':
      return state;
    case 'WebhookEndpointChanged':
      return { ...state, ...event.data };
    case 'WebhookSecretRotated':
      return { ...state, secrets: rotated(state.secrets, event.data) };
    case 'WebhookEndpointDisabled':
      return { ...state, status: 'disabled' };
    case 'WebhookEndpointEnabled':
      return { ...state, status: 'enabled' };
    case 'WebhookEndpointDeleted':
      return { status: 'deleted', owner: state.owner };
    case 'WebhookPingRequested':
    case 'WebhookResendRequested':
    case 'WebhookRecoverRequested':
      return state;
    default:
      return (event satisfies never, state);
  }
}

const DAY_MS = 24 * 3_600_000;

/**
 * Number of these events that one endpoint takes within 24 hours, since each stays in the log for ever
 * (docs/api/limits.md#webhook-endpoints). Whatever a day of them changed can be undone within that day.
 */
export const MOST_A_DAY = {
  WebhookEndpointChanged: 100,
  WebhookEndpointEnabled: 100,
  WebhookSecretRotated: 20,
  WebhookPingRequested: 100,
  WebhookResendRequested: 1_000,
  WebhookRecoverRequested: 100,
} as const satisfies Partial<Record<WebhookEndpointEvent['type'], number>>;

const inTheDayBefore = (times: readonly string[] = [], now: string): readonly string[] => {
  const from = new Date(Date.parse(now) - DAY_MS).toISOString();
  return times.filter((at) => at > from);
};

function counting(state: LiveEndpoint, { type, at }: Happened<WebhookEndpointEvent>): LiveEndpoint {
  return { ...state, recent: { ...state.recent, [type]: [...inTheDayBefore(state.recent[type], at), at] } };
}

/** @param now ISO 8601, UTC @throws Refusal `too_many_webhook_requests` */
export function refuseTooMany(state: WebhookEndpoint, events: readonly WebhookEndpointEvent[], now: string): void {
  if (!isLive(state)) return;
  for (const { type } of events) {
    const most = (MOST_A_DAY as Readonly<Partial<Record<string, number>>>)[type];
    if (most !== undefined && inTheDayBefore(state.recent[type], now).length >= most)
      throw new Refusal('too_many_webhook_requests');
  }
}

const isLive = (state: WebhookEndpoint): state is LiveEndpoint =>
  state.status === 'enabled' || state.status === 'disabled';

/** Number of secrets that may sign at a time: each adds one signature to the headers of a delivery. */
const MOST_SECRETS = 5;

export function rotated(
  secrets: readonly SigningSecret[],
  { secret_id, previous_until: until }: WebhookSecretRotated['data'],
): readonly SigningSecret[] {
  const before = secrets.map(({ id, until: earlier = until }) => ({ id, until: earlier < until ? earlier : until }));
  return [{ id: secret_id }, ...before].slice(0, MOST_SECRETS);
}

/** Ids of the secrets that sign at the time `at` (ISO 8601, UTC), the newest first. */
export function signingSecretIds(secrets: readonly SigningSecret[], at: string): string[] {
  return secrets.filter(({ until }) => until === undefined || until > at).map(({ id }) => id);
}

// Decisions

/** Longest time in seconds for which earlier secrets also sign after a rotation; the default of `rotateSecret`. */
export const LONGEST_GRACE_SECONDS = 24 * 3_600;

/** @throws Refusal `webhook_endpoint_not_found` */
export function liveEndpoint(state: WebhookEndpoint): LiveEndpoint {
  if (!isLive(state)) throw new Refusal('webhook_endpoint_not_found');
  return state;
}

/** `disabled`: absent where the endpoint stays enabled or disabled as it is. */
export interface EndpointChange extends Partial<EndpointSettings> {
  readonly disabled?: boolean;
}

/** @throws Refusal `webhook_endpoint_not_found` */
export function changeEndpoint(
  state: WebhookEndpoint,
  { disabled, ...settings }: EndpointChange,
): WebhookEndpointEvent[] {
  const present = liveEndpoint(state);
  const changed = Object.fromEntries(
    Object.entries(settings).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(present[field as keyof EndpointSettings]),
    ),
  );
  const events: WebhookEndpointEvent[] = [];
  if (Object.keys(changed).length > 0) events.push({ type: 'WebhookEndpointChanged', data: changed });
  if (disabled === true) events.push(...disableEndpoint(state, 'owner'));
  if (disabled === false && present.status === 'disabled') events.push({ type: 'WebhookEndpointEnabled', data: {} });
  return events;
}

/** No event for an endpoint that is disabled or deleted. */
export function disableEndpoint(state: WebhookEndpoint, cause: DisabledBy): WebhookEndpointDisabled[] {
  return state.status === 'enabled' ? [{ type: 'WebhookEndpointDisabled', data: { cause } }] : [];
}

/**
 * A grace of 0 ends earlier secrets at once.
 * @param now ISO 8601, UTC @throws Refusal `webhook_endpoint_not_found`
 */
export function rotateSecret(
  state: WebhookEndpoint,
  secretId: string,
  now: string,
  graceSeconds = LONGEST_GRACE_SECONDS,
): WebhookSecretRotated[] {
  liveEndpoint(state);
  const previous_until = new Date(Date.parse(now) + graceSeconds * 1_000).toISOString();
  return [{ type: 'WebhookSecretRotated', data: { secret_id: secretId, previous_until } }];
}

export function deleteEndpoint(state: WebhookEndpoint): WebhookEndpointDeleted[] {
  return isLive(state) ? [{ type: 'WebhookEndpointDeleted', data: {} }] : [];
}

/** @throws Refusal `webhook_endpoint_not_found`, `webhook_endpoint_disabled` */
export function requestDelivery<E extends DeliveryRequested>(state: WebhookEndpoint, request: E): E[] {
  if (liveEndpoint(state).status === 'disabled') throw new Refusal('webhook_endpoint_disabled');
  return [request];
}

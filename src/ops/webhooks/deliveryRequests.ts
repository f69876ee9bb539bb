/**
 * What a person requests of the deliveries to a webhook endpoint: its owner, or support
 * (docs/api/webhooks.md#webhook-endpoints).
 */
import type { OwnEndpoint } from '../../commands/webhookEndpoints.js';
import { fold } from '../../domain/decider.js';
import { Refusal } from '../../domain/refusal.js';
import {
  type WebhookRecoverRequested,
  type WebhookResendRequested,
  webhookEndpointAggregate,
} from '../../domain/webhookEndpoint.js';
import { timeWithZone } from '../../lib/writtenTime.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { parsedPosition } from '../../ports/positionText.js';
import type { Records } from '../../ports/readStore.js';
import { entryId, type FeedDocument, type FeedEntry } from '../../projections/feed/feed.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { attemptsOf } from './attempts.js';

/** A field of the request is invalid; the message goes on from its name. */
export class DeliveryFault extends Error {
  override readonly name = 'DeliveryFault';
  readonly field: 'event_id' | 'position' | 'since';
  constructor(field: DeliveryFault['field'], message: string) {
    super(message);
    this.field = field;
  }
}

interface ResendDeps {
  readonly events: Pick<EventStore, 'logId' | 'isPosition'>;
  readonly feed: Pick<ReadModel<FeedDocument>, 'get'>;
  readonly records: Pick<Records, 'list'>;
}

/** The event to resend. `position`: as the feed writes it; absent: it is looked for among the attempts. */
export interface ResendEvent {
  readonly event_id: string;
  readonly position?: string | undefined;
}

/**
 * Only for an event that the endpoint's owner may see.
 * @throws Refusal `event_not_found`; DeliveryFault; UnavailableError
 */
export async function resendRequest(
  deps: ResendDeps,
  { id, owner, history }: OwnEndpoint,
  { event_id, position: given }: ResendEvent,
): Promise<WebhookResendRequested> {
  const position =
    given === undefined
      ? (await attemptsOf(deps.records, id)).find((attempt) => attempt.event_id === event_id)?.position
      : positionIn(given, deps);
  const entry =
    position === undefined ? undefined : ((await deps.feed.get(entryId(position))) as FeedEntry | undefined);
  if (position === undefined || entry?.event_id !== event_id || entry[owner.kind] !== owner.id)
    throw new Refusal('event_not_found', 'event_id');
  const endpoint = fold(webhookEndpointAggregate, history);
  if ('types' in endpoint && endpoint.types?.includes(entry.type) === false)
    throw new DeliveryFault('event_id', `is of the type ${entry.type}, which the endpoint does not get`);
  return { type: 'WebhookResendRequested', data: { event_id, position } };
}

/** The position that a text names; `undefined`: a position in another log. @throws DeliveryFault */
function positionIn(text: string, { events }: Pick<ResendDeps, 'events'>): Position | undefined {
  const parsed = parsedPosition(text);
  const isOurs = parsed?.log === events.logId;
  if (parsed === undefined || (isOurs && !events.isPosition(parsed.position)))
    throw new DeliveryFault('position', 'must be the `position` of an event');
  return isOurs ? parsed.position : undefined;
}

/**
 * @param since a time with its zone
 * @throws DeliveryFault, also for a time to come: nothing happened from then on
 */
export function recoverRequest(since: string, now: string): WebhookRecoverRequested {
  const ms = timeWithZone(since);
  if (ms === undefined) throw new DeliveryFault('since', 'must be a time, such as 2026-05-04T12:30:00Z');
  const time = new Date(ms).toISOString();
  if (time > now) throw new DeliveryFault('since', `is still to come: it is ${now} now`);
  return { type: 'WebhookRecoverRequested', data: { since: time } };
}

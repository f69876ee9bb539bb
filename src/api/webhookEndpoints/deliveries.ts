/**
 * Routes by which owners request deliveries to an endpoint: ping, resend and recover
 * (docs/api/webhooks.md#webhook-endpoints).
 */
import { type OwnEndpoint, requestOwnDelivery } from '../../commands/webhookEndpoints.js';
import { fold } from '../../domain/decider.js';
import { Refusal } from '../../domain/refusal.js';
import { type DeliveryRequested, webhookEndpointAggregate } from '../../domain/webhookEndpoint.js';
import type { Position } from '../../ports/eventStore.js';
import { timeWithZone } from '../../lib/writtenTime.js';
import { parsedPosition } from '../../ports/positionText.js';
import { entryId, type FeedEntry } from '../../projections/feed/feed.js';
import { faultOf } from '../pipeline/errors.js';
import type { Call, Route, RouteDescription, Schema } from '../pipeline/route.js';
import { dataSchema, record } from '../representation/schemas.js';
import { attemptsOf } from './attempts.js';
import type { WebhookEndpointDeps } from './deps.js';
import { ENDPOINT_PATH, NAMED, openedBy, written } from './endpoints.js';
import { attemptExample } from './schemas.js';

const EVENT_ID = { type: 'string', minLength: 1, maxLength: 64 } as const;

type DeliveryBody = {
  readonly event_id: string;
  readonly position?: string;
};

/** The position that a text names; `undefined`: a position in another log. @throws HttpError `schema` */
function positionIn(text: string, { events }: Pick<WebhookEndpointDeps, 'events'>): Position | undefined {
  const parsed = parsedPosition(text);
  const isOurs = parsed?.log === events.logId;
  if (parsed === undefined || (isOurs && !events.isPosition(parsed.position)))
    throw faultOf('position', 'must be the `position` of an event');
  return isOurs ? parsed.position : undefined;
}

/**
 * Position in the log of an event that the owner may see.
 * @throws Refusal `event_not_found`; HttpError `schema`; UnavailableError
 */
async function positionOfEvent(
  deps: WebhookEndpointDeps,
  { id, owner, history }: OwnEndpoint,
  { event_id, position: given }: DeliveryBody,
): Promise<Position> {
  const position =
    given === undefined
      ? (await attemptsOf(deps, id)).find((attempt) => attempt.event_id === event_id)?.position
      : positionIn(given, deps);
  const entry =
    position === undefined ? undefined : ((await deps.feed.get(entryId(position))) as FeedEntry | undefined);
  if (position === undefined || entry?.event_id !== event_id || entry[owner.kind] !== owner.id)
    throw new Refusal('event_not_found', 'event_id');
  const endpoint = fold(webhookEndpointAggregate, history);
  if ('types' in endpoint && endpoint.types?.includes(entry.type) === false)
    throw faultOf('event_id', `is of the type ${entry.type}, which the endpoint does not get`);
  return position;
}

const NO_TIME = 'must be a time, such as 2026-05-04T12:30:00Z';

/** @throws HttpError `schema`, also for a time to come: nothing happened from then on */
function pastTime(since: string, now: string): string {
  const ms = timeWithZone(since);
  if (ms === undefined) throw faultOf('since', NO_TIME);
  const time = new Date(ms).toISOString();
  if (time > now) throw faultOf('since', `is still to come: it is ${now} now`);
  return time;
}

/** A requested delivery. `data` makes the answer's data from the id of the event that records the request. */
interface Requested {
  readonly request: DeliveryRequested;
  readonly data: (eventId: string) => object;
}

export function deliveryRoutes(deps: WebhookEndpointDeps): Route[] {
  /** Makes a route that requests deliveries. The request is in the log once it is answered. */
  function asking(
    described: Pick<RouteDescription, 'path' | 'operation' | 'summary' | 'description' | 'body' | 'bodyExample'> &
      Partial<Pick<RouteDescription, 'errors' | 'reads'>>,
    answer: { readonly schema: Schema; readonly example: object },
    ask: (call: Call, own: OwnEndpoint) => Requested | Promise<Requested>,
  ): Route {
    const { errors = [], ...more } = described;
    return {
      ...NAMED,
      ...more,
      outward: true,
      method: 'POST',
      answers: [
        {
          status: 202,
          description: 'It is done soon, whatever is restarted.',
          schema: dataSchema(answer.schema),
          example: { data: answer.example },
        },
      ],
      errors: [
        'forbidden',
        'webhook_endpoint_not_found',
        'webhook_endpoint_disabled',
        'too_many_webhook_requests',
        ...errors,
      ],
      async open(early) {
        const { own, context } = await openedBy(early, deps);
        return async (call) => {
          const { request, data } = await ask(call, own);
          const done = await requestOwnDelivery(deps, own, request, context);
          return { status: 202, body: { data: data(done.own.at(-1)?.id ?? '') }, ...written(deps, done) };
        };
      },
    };
  }

  return [
    asking(
      {
        path: `${ENDPOINT_PATH}/ping`,
        operation: 'pingWebhookEndpoint',
        summary: 'Send a ping to a webhook endpoint',
        description: 'A delivery of the type `ping`, whatever types the endpoint gets.',
      },
      {
        schema: record({ event_id: { type: 'string', description: '`webhook-id` of the ping.' } }),
        example: { event_id: '7f0a2d1c-52a1-4d0b-8a1e-6f9c3e2b1d04' },
      },
      () => ({ request: { type: 'WebhookPingRequested', data: {} }, data: (event_id) => ({ event_id }) }),
    ),
    asking(
      {
        path: `${ENDPOINT_PATH}/resend`,
        operation: 'resendWebhook',
        summary: 'Deliver an event again',
        description:
          'Whether it was delivered or not, where the endpoint gets its type. It goes at once, with what waits of the same gift. Without its `position` the event is looked for among the attempts.',
        reads: ['webhookEndpoints', 'feed'],
        body: record(
          {
            event_id: { ...EVENT_ID, description: '`id` of the event, or `webhook-id` of its delivery.' },
            position: { type: 'string', maxLength: 128, description: '`position` of the event.' },
          },
          ['event_id'],
        ),
        bodyExample: { event_id: attemptExample.event_id },
        errors: ['event_not_found'],
      },
      {
        schema: record({ event_id: { type: 'string' } }),
        example: { event_id: attemptExample.event_id },
      },
      async ({ body }, own) => {
        const requested = body as DeliveryBody;
        const { event_id } = requested;
        const position = await positionOfEvent(deps, own, requested);
        return {
          request: { type: 'WebhookResendRequested', data: { event_id, position } },
          data: () => ({ event_id }),
        };
      },
    ),
    asking(
      {
        path: `${ENDPOINT_PATH}/recover`,
        operation: 'recoverWebhooks',
        summary: 'Deliver what was not delivered',
        description:
          'All events since a time that were given up, that came while the endpoint was disabled, or that wait for their next attempt, which is made at once. Types that the endpoint does not get are passed over.',
        body: record({
          since: {
            type: 'string',
            maxLength: 40,
            description: 'What happened from then on: a time with its zone (RFC 3339), not to come.',
          },
        }),
        bodyExample: { since: '2026-05-04T12:30:00Z' },
      },
      {
        schema: record({ since: { type: 'string', format: 'date-time' } }),
        example: { since: '2026-05-04T12:30:00.000Z' },
      },
      ({ body }) => {
        const since = pastTime(body['since'] as string, deps.now());
        return { request: { type: 'WebhookRecoverRequested', data: { since } }, data: () => ({ since }) };
      },
    ),
  ];
}

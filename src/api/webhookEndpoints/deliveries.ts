/** What owners ask of the deliveries to an endpoint, and see of them (docs/contract.md#webhook-endpoints). */
import { type NamedEndpoint, requestOwnDelivery } from '../../commands/webhookEndpoints.js';
import { Refusal } from '../../domain/refusal.js';
import type { DeliveryRequested } from '../../domain/webhookEndpoint.js';
import { attemptRecords, MOST_ATTEMPTS, type WebhookAttempt } from '../../messages/webhookAttempts.js';
import type { Position } from '../../ports/eventStore.js';
import { parsedPosition, positionText } from '../../ports/positionText.js';
import { entryId, type FeedEntry } from '../../projections/feed/feed.js';
import { faultOf } from '../pipeline/errors.js';
import type { Answer, Call, Route, RouteDescription, Schema } from '../pipeline/route.js';
import { cursorBody, cursorParameters, cursorRequest, cursorSchema, firstOf } from '../representation/cursors.js';
import { dataSchema, record } from '../representation/schemas.js';
import type { WebhookEndpointDeps } from './deps.js';
import { ENDPOINT_PATH, endpointIdOf, NAMED, openedBy, written } from './endpoints.js';
import { ownEndpoint, ownerOf } from './ownEndpoints.js';
import { attemptExample, attemptSchema } from './schemas.js';

const EVENT_ID = { type: 'string', minLength: 1, maxLength: 64 } as const;

/** The latest first. @throws UnavailableError */
async function attemptsOf({ records }: WebhookEndpointDeps, endpointId: string): Promise<readonly WebhookAttempt[]> {
  const found = await records.list<WebhookAttempt>(attemptRecords(endpointId), MOST_ATTEMPTS);
  const placeOf = ({ at, id }: WebhookAttempt): string => `${at} ${id}`;
  return found.map(({ value }) => value).sort((one, other) => (placeOf(one) > placeOf(other) ? -1 : 1));
}

/** @throws HttpError `schema` where `after` names no attempt that is kept */
function behind(attempts: readonly WebhookAttempt[], after: string | undefined): readonly WebhookAttempt[] {
  if (after === undefined) return attempts;
  const place = attempts.findIndex(({ id }) => id === after);
  if (place < 0) throw faultOf('after', 'is not valid');
  return attempts.slice(place + 1);
}

function attemptEntity(attempt: WebhookAttempt, logId: string): object {
  const { id, event_id, position, type, at, status, error, response, duration_ms, next_at } = attempt;
  return {
    id,
    event_id,
    position: position === undefined ? null : positionText(logId, position),
    type,
    at,
    status: status ?? null,
    error: error ?? null,
    response,
    duration_ms,
    next_at: next_at ?? null,
  };
}

interface Wanted {
  readonly event_id: string;
  readonly position?: string;
}

/**
 * Where the event stands that the owner may know of.
 * @throws Refusal `event_not_found`; HttpError `schema`; UnavailableError
 */
async function placeOfEvent(
  deps: WebhookEndpointDeps,
  { id, owner }: NamedEndpoint,
  { event_id, position: given }: Wanted,
): Promise<Position> {
  const { events, feed } = deps;
  const parsed = given === undefined ? undefined : parsedPosition(given);
  if (
    given !== undefined &&
    (parsed === undefined || (parsed.log === events.logId && !events.isPosition(parsed.position)))
  )
    throw faultOf('position', 'must be the `position` of an event');
  const position =
    parsed === undefined
      ? (await attemptsOf(deps, id)).find((attempt) => attempt.event_id === event_id)?.position
      : parsed.log === events.logId
        ? parsed.position
        : undefined;
  const entry = position === undefined ? undefined : ((await feed.get(entryId(position))) as FeedEntry | undefined);
  if (position === undefined || entry?.event_id !== event_id || entry[owner.kind] !== owner.id)
    throw new Refusal('event_not_found', 'event_id');
  return position;
}

/** @throws HttpError `schema` */
function timeOf(since: string): string {
  const ms = Date.parse(since);
  // A leap second.
  if (Number.isNaN(ms)) throw faultOf('since', 'is not valid');
  return new Date(ms).toISOString();
}

export function deliveryRoutes(deps: WebhookEndpointDeps): Route[] {
  const { endpoints, events } = deps;

  /** A route that asks the deliveries for something, which is in the log once it is answered. */
  function asking(
    described: Pick<RouteDescription, 'path' | 'operation' | 'summary' | 'description' | 'body' | 'bodyExample'> &
      Partial<Pick<RouteDescription, 'errors' | 'reads'>>,
    answer: { readonly schema: Schema; readonly example: object },
    ask: (
      call: Call,
      named: NamedEndpoint,
      send: (request: DeliveryRequested, data: (eventId: string) => object) => Promise<Answer>,
    ) => Promise<Answer>,
  ): Route {
    const { errors = [], ...more } = described;
    return {
      ...NAMED,
      ...more,
      method: 'POST',
      answers: [
        {
          status: 202,
          description: 'It is done soon, whatever is restarted.',
          schema: dataSchema(answer.schema),
          example: { data: answer.example },
        },
      ],
      errors: ['forbidden', 'webhook_endpoint_not_found', 'webhook_endpoint_disabled', ...errors],
      async open(early) {
        const { own, context } = await openedBy(early, deps);
        return async (call) =>
          ask(call, own, async (request, data) => {
            const done = await requestOwnDelivery(deps, own, request, context);
            return { status: 202, body: { data: data(done.own.at(-1)?.id ?? '') }, ...written(deps, done) };
          });
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
      async (_, __, send) => send({ type: 'WebhookPingRequested', data: {} }, (event_id) => ({ event_id })),
    ),
    asking(
      {
        path: `${ENDPOINT_PATH}/resend`,
        operation: 'resendWebhook',
        summary: 'Deliver an event again',
        description:
          'Whether it was delivered or not, and whatever types the endpoint gets. Without its `position` the event is looked for among the attempts.',
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
      async ({ body }, named, send) => {
        const wanted = body as unknown as Wanted;
        const { event_id } = wanted;
        const position = await placeOfEvent(deps, named, wanted);
        return send({ type: 'WebhookResendRequested', data: { event_id, position } }, () => ({ event_id }));
      },
    ),
    asking(
      {
        path: `${ENDPOINT_PATH}/recover`,
        operation: 'recoverWebhooks',
        summary: 'Deliver what was not delivered',
        description:
          'All events since a time that were given up, or that came while the endpoint was disabled. What still waits for its next attempt is tried at once.',
        body: record({
          since: {
            type: 'string',
            format: 'date-time',
            maxLength: 40,
            'x-errors': { format: 'since must be a time, such as 2026-05-04T12:30:00Z' },
            description: 'What happened from then on.',
          },
        }),
        bodyExample: { since: '2026-05-04T12:30:00Z' },
      },
      {
        schema: record({ since: { type: 'string', format: 'date-time' } }),
        example: { since: '2026-05-04T12:30:00.000Z' },
      },
      async ({ body }, _, send) => {
        const since = timeOf(body['since'] as string);
        return send({ type: 'WebhookRecoverRequested', data: { since } }, () => ({ since }));
      },
    ),
    {
      ...NAMED,
      method: 'GET',
      path: `${ENDPOINT_PATH}/attempts`,
      operation: 'listWebhookAttempts',
      summary: 'The latest attempts to deliver',
      description: `The latest first; at most ${MOST_ATTEMPTS} are kept, for 30 days.`,
      query: { type: 'object', properties: cursorParameters('^[0-9a-f-]{1,64}$') },
      answers: [
        {
          status: 200,
          description: 'One page.',
          schema: cursorSchema(attemptSchema),
          example: { data: [attemptExample], next: null, has_more: false },
        },
      ],
      errors: ['forbidden', 'webhook_endpoint_not_found'],
      async open(early) {
        const { endpoint_id: id } = await ownEndpoint(endpoints, ownerOf(early), endpointIdOf(early));
        return async ({ query }) => {
          const { limit, after } = cursorRequest(query);
          const { data, next } = firstOf(behind(await attemptsOf(deps, id), after), limit, (one) => one.id);
          const shown = data.map((attempt) => attemptEntity(attempt, events.logId));
          return { status: 200, body: cursorBody({ data: shown, next }) };
        };
      },
    },
  ];
}

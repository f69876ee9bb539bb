/**
 * Routes by which owners request deliveries to an endpoint: ping, resend and recover
 * (docs/api/webhooks.md#webhook-endpoints).
 */
import { type OwnEndpoint, requestOwnDelivery } from '../../commands/webhookEndpoints.js';
import type { DeliveryRequested } from '../../domain/webhookEndpoint.js';
import { DeliveryFault, recoverRequest, type ResendEvent, resendRequest } from '../../ops/webhooks/deliveryRequests.js';
import { faultOf } from '../pipeline/errors.js';
import type { Call, Route, RouteDescription, Schema } from '../pipeline/route.js';
import { dataAnswer, record, textSchema, timeSchema } from '../pipeline/schemas.js';
import type { WebhookEndpointDeps } from './deps.js';
import { ENDPOINT_PATH, NAMED, openedBy, written } from './endpoints.js';
import { attemptExample } from './schemas.js';

const EVENT_ID = { type: 'string', minLength: 1, maxLength: 64 } as const;

/** Runs `make`. @throws HttpError `schema` for a DeliveryFault; other errors of `make` */
export async function orFault<T>(make: () => T | Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    throw error instanceof DeliveryFault ? faultOf(error.field, error.message) : error;
  }
}

/** Fields of a body that requests deliveries. */
export const RESEND_PROPERTIES = {
  event_id: { ...EVENT_ID, description: '`id` of the event, or `webhook-id` of its delivery.' },
  position: textSchema('`position` of the event.', { maxLength: 128 }),
} as const satisfies Readonly<Record<string, Schema>>;
export const RECOVER_PROPERTIES = {
  since: textSchema('What happened from then on: a time with its zone (RFC 3339), not to come.', { maxLength: 40 }),
} as const satisfies Readonly<Record<string, Schema>>;

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
      answers: [dataAnswer('It is done soon, whatever is restarted.', answer.schema, answer.example, { status: 202 })],
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
        schema: record({ event_id: textSchema('`webhook-id` of the ping.') }),
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
        body: record(RESEND_PROPERTIES, ['event_id']),
        bodyExample: { event_id: attemptExample.event_id },
        errors: ['event_not_found'],
      },
      {
        schema: record({ event_id: textSchema() }),
        example: { event_id: attemptExample.event_id },
      },
      async ({ body }, own) => {
        const request = await orFault(async () => resendRequest(deps, own, body as unknown as ResendEvent));
        const { event_id } = request.data;
        return { request, data: () => ({ event_id }) };
      },
    ),
    asking(
      {
        path: `${ENDPOINT_PATH}/recover`,
        operation: 'recoverWebhooks',
        summary: 'Deliver what was not delivered',
        description:
          'All events since a time that were given up, that came while the endpoint was disabled, or that wait for their next attempt, which is made at once. Types that the endpoint does not get are passed over.',
        body: record(RECOVER_PROPERTIES),
        bodyExample: { since: '2026-05-04T12:30:00Z' },
      },
      {
        schema: record({ since: timeSchema() }),
        example: { since: '2026-05-04T12:30:00.000Z' },
      },
      async ({ body }) => {
        const request = await orFault(() => recoverRequest(body['since'] as string, deps.now()));
        return { request, data: () => request.data };
      },
    ),
  ];
}

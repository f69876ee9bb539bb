/** Routes by which support sees the webhook endpoints of all owners, and has events delivered again (docs/support.md#webhooks). */
import { openEndpoint, requestOwnDelivery } from '../../commands/webhookEndpoints.js';
import type { WebhookRecoverRequested, WebhookResendRequested } from '../../domain/webhookEndpoint.js';
import { MOST_ATTEMPTS } from '../../messages/webhookAttempts.js';
import {
  ATTEMPT_POSITION,
  attemptPosition,
  type AttemptRow,
  attemptRow,
  attemptsOf,
} from '../../ops/webhooks/attempts.js';
import { recoverRequest, type ResendEvent, resendRequest } from '../../ops/webhooks/deliveryRequests.js';
import { type WebhookRow, webhookRows } from '../../ops/webhooks/webhookRows.js';
import type { OwnEndpoint } from '../../commands/webhookEndpoints.js';
import type { Call, EarlyCall, Schema } from '../pipeline/route.js';
import {
  countSchema,
  dataAnswer,
  entity,
  flagSchema,
  jsonAnswer,
  orNull,
  querySchema,
  record,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';
import { firstOf } from '../representation/cursors.js';
import { orFault, RECOVER_PROPERTIES, RESEND_PROPERTIES } from '../webhookEndpoints/deliveries.js';
import { endpointIdOf } from '../webhookEndpoints/endpoints.js';
import { attemptExample, attemptSchema, endpointExample, endpointSchema } from '../webhookEndpoints/schemas.js';
import type { OpsDeps } from './deps.js';
import { type OpsAnswer, type OpsRoute, reasonProperty, supportContextOf, STAFF } from './frame.js';
import { limitParameter, nextPageSchema } from './nextPages.js';

type Properties = Readonly<Record<string, Schema>>;

const ID = textSchema();

const { response: _answer, ...attemptProperties } = attemptSchema['properties'] as Properties;
const listedAttempt = entity('ListedWebhookAttempt', attemptProperties as Record<keyof AttemptRow, Schema>);
const { response: _began, ...listedAttemptExample } = attemptExample;

const listedEndpoint = entity('ListedWebhookEndpoint', {
  ...(endpointSchema['properties'] as Properties),
  owner: textSchema('`client:{id}` or `merchant:{id}`.'),
  failing: flagSchema('Whether several attempts in a row failed.'),
  failures: countSchema('Failed attempts since the last success.'),
  waiting: countSchema('Events that wait for an attempt.'),
  oldest_undelivered_at: orNull(timeSchema('When the oldest event that waits happened; null: none waits.')),
  oldest_undelivered_seconds: orNull(countSchema('How long ago that was.')),
  last_attempt: { anyOf: [listedAttempt, { type: 'null' }], description: 'The latest stored attempt; null: none.' },
});

const listedExample: WebhookRow = {
  ...endpointExample,
  owner: 'client:shop',
  failing: false,
  failures: 1,
  waiting: 1,
  oldest_undelivered_at: '2026-05-04T12:30:00.000Z',
  oldest_undelivered_seconds: 4,
  last_attempt: listedAttemptExample,
};

const PATH = '/ops/webhooks';
const NAMED = {
  tag: 'Support',
  params: { endpointId: 'The endpoint’s id.' },
  reads: ['webhookEndpoints'],
} as const satisfies Partial<OpsRoute>;

export function webhookRoutes({ engines, models, gifts, deliveryState }: OpsDeps): OpsRoute[] {
  const { events } = engines;
  const { records } = engines.store;
  const { feed, webhookEndpoints: endpoints } = models;
  const { logId } = events;
  const { now } = gifts;
  const opened = async (call: EarlyCall): Promise<OwnEndpoint> =>
    openEndpoint({ events }, endpointIdOf(call), supportContextOf(call, now()));

  /** A route that requests deliveries, as the owner of the endpoint may. */
  function requesting(
    described: Pick<OpsRoute, 'path' | 'operation' | 'summary' | 'description' | 'body' | 'bodyExample' | 'reads'> &
      Partial<Pick<OpsRoute, 'errors'>>,
    answer: { readonly property: Properties; readonly example: object },
    make: (call: Call, endpoint: OwnEndpoint) => Promise<WebhookResendRequested | WebhookRecoverRequested>,
  ): OpsRoute {
    const { errors = [], ...more } = described;
    return {
      ...NAMED,
      ...more,
      method: 'POST',
      roles: ['support'],
      outward: true,
      answers: [
        dataAnswer(
          'It is done soon, whatever is restarted.',
          record({ endpoint_id: ID, ...answer.property }),
          { endpoint_id: endpointExample.id, ...answer.example },
          { status: 202 },
        ),
      ],
      errors: ['webhook_endpoint_not_found', 'webhook_endpoint_disabled', 'too_many_webhook_requests', ...errors],
      exists: opened,
      async handle(call): Promise<OpsAnswer> {
        const endpoint = await opened(call);
        const request = await orFault(async () => make(call, endpoint));
        const done = await requestOwnDelivery({ events }, endpoint, request, supportContextOf(call, now()));
        const { position: _, ...data } = request.data as WebhookResendRequested['data'];
        return {
          status: 202,
          body: { data: { endpoint_id: endpoint.id, ...data } },
          shown: 1,
          position: done.own.at(-1)?.position,
          replayed: done.replayed,
          waitFor: [endpoints],
        };
      },
    };
  }

  return [
    {
      method: 'GET',
      path: PATH,
      operation: 'listAllWebhooks',
      summary: 'Webhook endpoints of all owners',
      description:
        'In the order of their ids, without deleted ones: whose each is, whether anything is delivered, what waits, and how the last attempt came out.',
      tag: 'Support',
      roles: STAFF,
      reads: ['webhookEndpoints'],
      query: querySchema({
        after: textSchema('Only after this endpoint: a `next`.', { pattern: '^[0-9a-f]{32}$' }),
        ...limitParameter,
      }),
      answers: [jsonAnswer('The endpoints.', nextPageSchema(listedEndpoint), { data: [listedExample], next: null })],
      async handle({ query }) {
        const { limit, after } = query as { readonly limit: number; readonly after?: string };
        const { rows, next } = await webhookRows(
          { endpoints, records, logId, stateOf: deliveryState, now },
          { limit, after },
        );
        return { body: { data: rows, next }, shown: rows.length };
      },
    },
    {
      ...NAMED,
      method: 'GET',
      path: `${PATH}/:endpointId/attempts`,
      operation: 'listAttemptsOfAny',
      summary: 'The latest attempts to deliver to an endpoint',
      description: `The latest first, without the receiver’s answer; at most ${MOST_ATTEMPTS} are kept, for 30 days.`,
      roles: STAFF,
      query: querySchema({
        after: textSchema('Only after this attempt: a `next`.', { pattern: ATTEMPT_POSITION }),
        ...limitParameter,
      }),
      answers: [
        jsonAnswer('The attempts.', nextPageSchema(listedAttempt), {
          data: [listedAttemptExample],
          next: null,
        }),
      ],
      errors: ['webhook_endpoint_not_found'],
      exists: opened,
      async handle(call) {
        const { limit, after } = call.query as { readonly limit: number; readonly after?: string };
        const found = await attemptsOf(records, endpointIdOf(call), after);
        const { data, next } = firstOf(found, limit, attemptPosition);
        const shown = data.map((attempt) => attemptRow(attempt, logId));
        return { body: { data: shown, next }, shown: shown.length };
      },
    },
    requesting(
      {
        path: `${PATH}/:endpointId/resend`,
        operation: 'resendForOwner',
        summary: 'Deliver an event again to an endpoint',
        description:
          'As its owner may: an event that the owner may see, of a type that the endpoint gets. Without its `position` the event is looked for among the attempts.',
        reads: ['webhookEndpoints', 'feed'],
        body: record({ ...RESEND_PROPERTIES, reason: reasonProperty }, ['event_id', 'reason']),
        bodyExample: { event_id: attemptExample.event_id, reason: 'the receiver lost it' },
        errors: ['event_not_found'],
      },
      { property: { event_id: ID }, example: { event_id: attemptExample.event_id } },
      async ({ body }, endpoint) => resendRequest({ events, feed, records }, endpoint, body as unknown as ResendEvent),
    ),
    requesting(
      {
        path: `${PATH}/:endpointId/recover`,
        operation: 'recoverForOwner',
        summary: 'Deliver to an endpoint what was not delivered',
        description:
          'As its owner may: all events since a time that were given up, that came while the endpoint was disabled, or that wait for their next attempt, which is made at once.',
        reads: ['webhookEndpoints'],
        body: record({ ...RECOVER_PROPERTIES, reason: reasonProperty }),
        bodyExample: { since: '2026-05-04T12:30:00Z', reason: 'the receiver was down' },
      },
      { property: { since: { ...ID, format: 'date-time' } }, example: { since: '2026-05-04T12:30:00.000Z' } },
      async ({ body }) => recoverRequest(body['since'] as string, now()),
    ),
  ];
}

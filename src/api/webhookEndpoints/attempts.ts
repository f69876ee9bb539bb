/** Route by which owners list the attempts to deliver to an endpoint (docs/api/webhooks.md#webhook-endpoints). */
import { attemptRecords, MOST_ATTEMPTS, type WebhookAttempt } from '../../messages/webhookAttempts.js';
import { positionText } from '../../ports/positionText.js';
import { faultOf } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import { cursorBody, cursorParameters, cursorRequest, cursorSchema, firstOf } from '../representation/cursors.js';
import type { WebhookEndpointDeps } from './deps.js';
import { ENDPOINT_PATH, endpointIdOf, NAMED } from './endpoints.js';
import { ownEndpoint, ownerOf } from './ownEndpoints.js';
import { attemptExample, attemptSchema } from './schemas.js';

/** Stored attempts to deliver to an endpoint, the latest first. @throws UnavailableError */
export async function attemptsOf(
  { records }: Pick<WebhookEndpointDeps, 'records'>,
  endpointId: string,
): Promise<readonly WebhookAttempt[]> {
  const found = await records.list<WebhookAttempt>(attemptRecords(endpointId), MOST_ATTEMPTS);
  const orderOf = ({ at, id }: WebhookAttempt): string => `${at} ${id}`;
  return found.map(({ value }) => value).sort((one, other) => (orderOf(one) > orderOf(other) ? -1 : 1));
}

/** @throws HttpError `schema` where `after` names no stored attempt */
function behind(attempts: readonly WebhookAttempt[], after: string | undefined): readonly WebhookAttempt[] {
  if (after === undefined) return attempts;
  const index = attempts.findIndex(({ id }) => id === after);
  if (index < 0) throw faultOf('after', 'is not valid');
  return attempts.slice(index + 1);
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

export function attemptRoutes(deps: WebhookEndpointDeps): Route[] {
  const { endpoints, events } = deps;
  return [
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

/** Route by which owners list the attempts to deliver to an endpoint (docs/api/webhooks.md#webhook-endpoints). */
import { MOST_ATTEMPTS } from '../../messages/webhookAttempts.js';
import { ATTEMPT_POSITION, attemptPosition, attemptRow, attemptsOf } from '../../ops/webhooks/attempts.js';
import { ownerOf } from '../events/viewers.js';
import type { Route } from '../pipeline/route.js';
import { cursorBody, cursorParameters, cursorRequest, cursorAnswer, firstOf } from '../representation/cursors.js';
import type { WebhookEndpointDeps } from './deps.js';
import { ENDPOINT_PATH, endpointIdOf, NAMED } from './endpoints.js';
import { ownEndpoint } from './ownEndpoints.js';
import { attemptExample, attemptSchema } from './schemas.js';
import { querySchema } from '../pipeline/schemas.js';

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
      query: querySchema(cursorParameters(ATTEMPT_POSITION)),
      answers: [cursorAnswer(attemptSchema, attemptExample)],
      errors: ['forbidden', 'webhook_endpoint_not_found'],
      async open(early) {
        const { endpoint_id: id } = await ownEndpoint(endpoints, ownerOf(early), endpointIdOf(early));
        return async ({ query }) => {
          const { limit, after } = cursorRequest(query);
          const { data, next } = firstOf(await attemptsOf(deps.records, id, after), limit, attemptPosition);
          const shown = data.map((attempt) => ({
            ...attemptRow(attempt, events.logId),
            response: attempt.response,
          }));
          return { body: cursorBody({ data: shown, next }) };
        };
      },
    },
  ];
}

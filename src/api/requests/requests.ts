/** Route by which clients list their requests that failed (docs/api/errors.md#failed-requests). */
import { clientOf } from '../pipeline/commandContext.js';
import type { Route } from '../pipeline/route.js';
import {
  cursorBody,
  cursorParameters,
  cursorRequest,
  cursorAnswer,
  firstOf,
  timedCursor,
} from '../representation/cursors.js';
import { entity, orNull, querySchema, textSchema, timeSchema } from '../pipeline/schemas.js';
import { spanIn, spanParameters } from '../representation/spans.js';
import { type FailedRequest, type FailedRequests, ID_DIGITS, MOST_OF_DAY, RETAINED_DAYS } from './failedRequests.js';

const requestSchema = entity('FailedRequest', {
  id: textSchema(),
  at: timeSchema('When it was answered.'),
  method: textSchema(),
  route: textSchema('The path as this description has it: without the ids that were sent.'),
  status: { type: 'integer', minimum: 400, maximum: 599 },
  error_code: orNull(textSchema('`Error-Code` of the answer.')),
  request_id: textSchema('`X-Request-Id` of the answer.'),
});

const requestExample = {
  id: 'mp2x7k0w0.5f2c9d6a',
  at: '2026-05-04T12:30:00.000Z',
  method: 'POST',
  route: '/api/v2/gifts/{giftId}/redemptions',
  status: 405,
  error_code: 'gift_already_redeemed',
  request_id: '0f8fad5b-d9cb-469f-a165-70867728950e',
};

const shown = ({ id, at, method, route, status, code, requestId }: FailedRequest): object => ({
  id,
  at,
  method,
  route: route.replaceAll(/:(\w+)/g, '{$1}'),
  status,
  error_code: code ?? null,
  request_id: requestId,
});

export function requestRoutes(failed: Pick<FailedRequests, 'of'>): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/requests',
      operation: 'listFailedRequests',
      summary: 'Requests of the client that failed',
      description: `For a client’s own token: requests with its tokens, those of its users too, that were answered 4xx or 5xx in the last ${RETAINED_DAYS} days, the latest first; of each day the latest ${MOST_OF_DAY}. It says nothing of bodies, ids or users.`,
      tag: 'Account',
      caller: 'any',
      noStore: true,
      query: querySchema({
        status: textSchema('`4xx`, `5xx`, or one status; absent: all that failed.', {
          pattern: '^(4xx|5xx|[45][0-9]{2})$',
          'x-message': 'status must be 4xx, 5xx, or a status such as 422.',
        }),
        ...spanParameters('requests'),
        ...cursorParameters(timedCursor(ID_DIGITS)),
      }),
      answers: [cursorAnswer(requestSchema, requestExample)],
      errors: ['forbidden'],
      async open(early) {
        const client = clientOf(early);
        return async ({ query }) => {
          const { limit, after } = cursorRequest(query);
          const { from, to } = spanIn(query);
          const status = query['status'] as string | undefined;
          const isRequested = (row: FailedRequest): boolean => {
            const at = Date.parse(row.at);
            return (
              at >= from &&
              at < to &&
              (after === undefined || row.id < after) &&
              (status === undefined || String(row.status).startsWith(status.replace('xx', '')))
            );
          };
          const found = (await failed.of(client)).filter(isRequested);
          const { data, next } = firstOf(found, limit, ({ id }) => id);
          return { body: cursorBody({ data: data.map(shown), next }) };
        };
      },
    },
  ];
}

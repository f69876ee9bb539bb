/** docs/decisions.md#access-records */
import { eventView } from '../../ops/history/eventView.js';
import { accessStream } from '../../domain/access.js';
import { MAX_WHOLE_NUMBER } from '../pipeline/query.js';
import type { OpsDeps } from './deps.js';
import { eventExample, eventSchema } from './eventSchemas.js';
import type { OpsRoute } from './frame.js';
import { limitParameter, nextPageSchema } from './nextPages.js';
import { dayParameter } from './ranges.js';

export function accessRoutes({ engines }: Pick<OpsDeps, 'engines'>): OpsRoute[] {
  return [
    {
      method: 'GET',
      path: '/ops/access',
      operation: 'listAccess',
      summary: 'Who saw what on a day',
      description:
        'The records that calls under `/ops` and exports left on a day (UTC), this call not among them, in order. `next` is the `after` of the following page.',
      tag: 'Audit',
      roles: ['auditor'],
      query: {
        type: 'object',
        required: ['day'],
        properties: {
          ...dayParameter('The day (UTC), `YYYY-MM-DD`.'),
          after: {
            type: 'integer',
            minimum: -1,
            maximum: MAX_WHOLE_NUMBER,
            default: -1,
            description: 'Only records after this revision.',
          },
          ...limitParameter,
        },
      },
      answers: [
        {
          status: 200,
          description: 'The records.',
          schema: nextPageSchema(eventSchema, 'integer'),
          example: {
            data: [
              {
                ...eventExample,
                stream: 'access-2026-05-04',
                type: 'RecordsShown',
                data: {
                  what: 'GET /ops/access',
                  asked: { day: '2026-05-03' },
                  personal: false,
                  reason: null,
                  count: 3,
                },
              },
            ],
            next: null,
          },
        },
      ],
      errors: [],
      async handle({ query }, sight) {
        const limit = query['limit'] as number;
        const events = await engines.events.read(accessStream(query['day'] as string), {
          from: (query['after'] as number) + 1,
          limit: limit + 1,
        });
        const page = events.slice(0, limit);
        const body = {
          data: page.map((event) => eventView(event, sight)),
          next: events.length > limit ? (page.at(-1)?.revision ?? null) : null,
        };
        return { status: 200, body, shown: page.length };
      },
    },
  ];
}

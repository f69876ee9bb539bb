/** docs/decisions.md#access-records */
import { eventView } from '../../ops/history/eventView.js';
import { accessStream } from '../../domain/access.js';
import { MAX_WHOLE_NUMBER } from '../pipeline/query.js';
import type { OpsDeps } from './deps.js';
import { eventExample, eventSchema } from './eventSchemas.js';
import type { OpsRoute } from './frame.js';

const LIMIT = 100;
const MAX_LIMIT = 1_000;

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
          day: {
            type: 'string',
            format: 'date',
            description: 'The day, `YYYY-MM-DD`.',
            'x-errors': { format: 'day must be a date such as 2026-05-04' },
          },
          after: {
            type: 'integer',
            minimum: -1,
            maximum: MAX_WHOLE_NUMBER,
            default: -1,
            description: 'Only records after this revision.',
          },
          limit: {
            type: 'integer',
            minimum: 1,
            maximum: MAX_LIMIT,
            default: LIMIT,
            description: 'How many records a page holds.',
          },
        },
      },
      answers: [
        {
          status: 200,
          description: 'The records.',
          schema: {
            type: 'object',
            additionalProperties: false,
            required: ['data', 'next'],
            properties: {
              data: { type: 'array', items: eventSchema },
              next: { type: ['integer', 'null'], description: '`after` of the next page; null on the last.' },
            },
          },
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

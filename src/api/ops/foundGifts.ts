/** Route that finds gifts (docs/support.md#finding-gifts). */
import { findGifts, type FoundGift, GIFTS_BY, PLACE } from '../../ops/people/index.js';
import { giftExample } from '../gifts/schemas.js';
import type { Schema } from '../pipeline/route.js';
import { record } from '../representation/schemas.js';
import type { OpsDeps } from './deps.js';
import { personAsked } from './erasures.js';
import type { OpsRoute } from './frame.js';
import { limitParameter, nextPageSchema } from './nextPages.js';
import { knownParameters, oneOf } from './people.js';

const TEXT: Schema = { type: 'string' };

const foundSchema = {
  title: 'FoundGift',
  ...record(
    {
      gift_id: TEXT,
      transaction_id: TEXT,
      at: { ...TEXT, format: 'date-time', description: 'When it was bought, claimed or reassigned.' },
      as: {
        type: 'string',
        enum: ['buyer', 'receiver', 'claimer', 'later receiver'],
        description: 'How it is the person’s. Absent in a search by a charge or a message.',
      },
    } satisfies Record<keyof FoundGift, Schema>,
    ['gift_id', 'transaction_id', 'at'],
  ),
};

export function foundGiftRoutes({ engines: { events }, gifts: { subjects } }: OpsDeps): OpsRoute[] {
  const deps = { events, subjects };
  return [
    {
      method: 'GET',
      path: '/ops/gifts',
      operation: 'findGifts',
      summary: 'Find gifts',
      description:
        'By exactly one of what a caller at the support desk knows, the latest first: what the person bought, got, claimed or had reassigned to them; the gifts of a charge; the gift of a message.',
      tag: 'Support',
      roles: ['support'],
      allPersonal: true,
      unrecorded: ['phone', 'username'],
      query: {
        type: 'object',
        properties: {
          person: { ...TEXT, minLength: 1, maxLength: 256, description: 'As `GET /ops/people` names them.' },
          ...knownParameters,
          ...limitParameter,
          after: { ...TEXT, pattern: PLACE, maxLength: 64, description: 'Only gifts after this place.' },
        },
      },
      answers: [
        {
          status: 200,
          description: 'The gifts.',
          schema: nextPageSchema(foundSchema, 'string'),
          example: {
            data: [
              {
                gift_id: giftExample.id,
                transaction_id: giftExample.transaction_id,
                at: '2026-05-04T12:30:00.000Z',
                as: 'receiver',
              },
            ],
            next: null,
          },
        },
      ],
      errors: ['invalid_phone_number', 'person_not_found', 'schema'],
      async handle({ query }) {
        const by = oneOf(GIFTS_BY, query);
        const text = query[by] as string;
        const asked = by === 'person' ? { person: personAsked(text) } : { by, text };
        const { limit, after } = query as { readonly limit: number; readonly after?: string };
        const { gifts, next, people } = await findGifts(deps, asked, { limit, after });
        // The access record names the persons found, or the one purchase that a charge or a message belongs to.
        const about = people.length > 0 ? { found: people } : { transactionId: gifts[0]?.transaction_id };
        return { status: 200, body: { data: gifts, next }, shown: gifts.length, recorded: { by, ...about } };
      },
    },
  ];
}

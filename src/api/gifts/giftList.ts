/** Route that lists the caller's gifts (docs/api/gifts.md#list-gifts). */
import { alsoNamed } from '../pipeline/query.js';
import type { Route } from '../pipeline/route.js';
import { cursorBody, cursorParameters, cursorAnswer, timedCursor } from '../representation/cursors.js';
import { userOf } from '../pipeline/commandContext.js';
import { type GiftRouteDeps, viewing } from './deps.js';
import { GIFT_STATUSES, giftEntity } from '../../entities/gifts.js';
import { GIFT_ROLES, ownGifts, type OwnGiftsRequest } from './ownGifts.js';
import { giftExample, giftSchema } from './schemas.js';
import { querySchema, textSchema } from '../pipeline/schemas.js';

export function giftListRoutes(deps: GiftRouteDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/gifts',
      operation: 'listGifts',
      summary: 'The caller’s gifts',
      description:
        'Gifts that the user received, claimed or bought, the latest first; each once. A gift that is not paid for yet is listed for its buyer alone. A page may hold fewer than `limit`, even none, and not be the last: `has_more` says so.',
      tag: 'Gifts',
      caller: 'user',
      reads: ['byUser'],
      query: querySchema({
        as: textSchema('`holder`: those received or claimed; `sender`: those bought. Absent: both.', {
          enum: GIFT_ROLES,
        }),
        status: {
          type: 'string',
          enum: GIFT_STATUSES,
          description: 'Only gifts of this `gift_status`.',
          ...alsoNamed(['gift_status']),
        },
        ...cursorParameters(timedCursor(20)),
      }),
      answers: [cursorAnswer(giftSchema, giftExample)],
      async handle(call) {
        const user = userOf(call);
        const { data: gifts, next } = await ownGifts(deps, user.id, call.query as OwnGiftsRequest);
        const viewer = viewing(deps, user);
        const data = gifts.map((gift) => giftEntity(gift, viewer));
        return { status: 200, body: cursorBody({ data, next }) };
      },
    },
  ];
}

/** Route that lists the redemptions of a gift (docs/api/gifts.md#list-redemptions). */
import { type GiftEvent, giftStream } from '../../domain/gift/events.js';
import type { Recorded, RecordedEvent } from '../../ports/eventStore.js';
import type { RedemptionDocument } from '../../projections/gifts.js';
import { faultOf } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import { cursorBody, cursorParameters, cursorRequest, cursorAnswer, firstOf } from '../representation/cursors.js';
import { OF_GIFT, type GiftRouteDeps } from './deps.js';
import { redemptionEntity } from '../../entities/gifts.js';
import { openGift } from './openGift.js';
import { redemptionExample, redemptionSchema } from './schemas.js';
import { querySchema } from '../pipeline/schemas.js';

/** Redemptions in a gift's history, as they are now, the latest first. */
export function redemptionsIn(history: readonly RecordedEvent[]): RedemptionDocument[] {
  const redemptions = new Map<string, RedemptionDocument>();
  for (const event of history as readonly Recorded<GiftEvent>[]) {
    const { at: updated_at } = event;
    if (event.type === 'GiftRedeemed') {
      const { redemption_id: id, location_id } = event.data;
      redemptions.set(id, { id, location_id, redeemed: true, created_at: updated_at, updated_at });
    } else if (event.type === 'GiftUnredeemed') {
      const redeemed = redemptions.get(event.data.redemption_id);
      if (redeemed !== undefined) redemptions.set(redeemed.id, { ...redeemed, redeemed: false, updated_at });
    }
  }
  return [...redemptions.values()].reverse();
}

/** @throws HttpError `schema` where `after` names no redemption of this gift */
function behind(redemptions: readonly RedemptionDocument[], after: string | undefined): readonly RedemptionDocument[] {
  if (after === undefined) return redemptions;
  const index = redemptions.findIndex(({ id }) => id === after);
  if (index < 0) throw faultOf('after', 'is not valid');
  return redemptions.slice(index + 1);
}

export function redemptionListRoutes(deps: GiftRouteDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/gifts/:giftId/redemptions',
      operation: 'listGiftRedemptions',
      summary: 'The redemptions of a gift',
      description:
        'All redemptions of the gift, reversed ones too, the latest first. Callers are those who look the gift up.',
      tag: 'Redemptions',
      ...OF_GIFT,
      query: querySchema(cursorParameters('^[0-9a-f]{1,64}$')),
      answers: [cursorAnswer(redemptionSchema, redemptionExample)],
      async open(early) {
        const giftId = early.params['giftId'] ?? '';
        await openGift(deps, early);
        return async ({ query }) => {
          const { limit, after } = cursorRequest(query);
          const redemptions = redemptionsIn(await deps.events.read(giftStream(giftId)));
          const { data, next } = firstOf(behind(redemptions, after), limit, ({ id }) => id);
          return {
            body: cursorBody({ data: data.map((redemption) => redemptionEntity(giftId, redemption)), next }),
          };
        };
      },
    },
  ];
}

/** Redemptions and their reversal (docs/api/gifts.md#redeem-a-gift, docs/api/gifts.md#unredeem-a-gift). */
import { hasRun, loadGift } from '../../commands/loadGift.js';
import { loadToRedeem, redeemGift } from '../../commands/redeemGift.js';
import { unredeemGift } from '../../commands/unredeemGift.js';
import { mayUnredeem, refuseUnlessMayRedeem } from '../../domain/gift/decisions.js';
import { dataAnswer, entity, textSchema } from '../pipeline/schemas.js';
import { HttpError } from '../pipeline/errors.js';
import type { Route, Schema } from '../pipeline/route.js';
import { contextOf, userOf } from '../pipeline/commandContext.js';
import { GIFT_PARAM, OF_GIFT } from './deps.js';
import { redemptionEntity } from '../../entities/gifts.js';
import { keyNamed, openCancel, REDEEM_ROUTE, type RedemptionKeyDeps } from './redemptionKeys.js';
import { redemptionExample, redemptionSchema, reversedSchema } from './schemas.js';

const REDEEM_BODY = entity('Redeem', {
  location_id: textSchema('A registered location: a store’s id.'),
});

const ONLY_FALSE = { 'x-message': 'Only redeemed: false can be patched.' };
const UNREDEEM_BODY: Schema = {
  ...entity('Unredeem', { redeemed: { type: 'boolean', const: false, ...ONLY_FALSE } }),
  ...ONLY_FALSE,
};

export function redemptionRoutes(deps: RedemptionKeyDeps): Route[] {
  return [
    {
      ...REDEEM_ROUTE,
      operation: 'redeemGift',
      summary: 'Redeem a gift',
      description:
        'By the customer owning the gift, at any location, or by a merchant user for a merchant the gift is valid for, at the merchant’s own locations.',
      tag: 'Redemptions',
      ...OF_GIFT,
      body: REDEEM_BODY,
      bodyExample: { location_id: redemptionExample.location_id },
      answers: [dataAnswer('The redemption.', redemptionSchema, redemptionExample, { status: 201 })],
      errors: [
        'cannot_redeem',
        'staff_receives_no_gifts',
        'redemption_voided',
        'invalid_location',
        'gift_not_paid',
        'gift_cancelled',
        'gift_already_redeemed',
        'gift_expired',
        'gift_blocked',
        'redeemed_too_often',
      ],
      async open(early) {
        const user = userOf(early);
        const context = contextOf(early, deps.now());
        const giftId = early.params['giftId'] ?? '';
        const loaded = await loadToRedeem(deps, giftId, user, context.now);
        if (!hasRun(loaded, context)) refuseUnlessMayRedeem(loaded.gift, loaded.facts);
        return async ({ body }) => {
          const { redemption, event, replayed } = await redeemGift(
            deps,
            loaded,
            user,
            context,
            body['location_id'] as string,
          );
          const { redemption_id: id, location_id } = redemption;
          const data = redemptionEntity(giftId, {
            id,
            location_id,
            redeemed: true,
            created_at: event.at,
            updated_at: event.at,
          });
          return { status: 201, body: { data }, position: event.position, replayed };
        };
      },
    },
    {
      method: 'PATCH',
      path: '/api/v2/gifts/:giftId/redemptions/:redemptionId',
      operation: 'unredeemLatest',
      summary: 'Reverse the latest redemption',
      description:
        'For points of sale. The redemption’s id, or `latest` for the most recent one; only the most recent redemption can be reversed. `key:{key}` cancels the caller’s own redemption with that idempotency key: it reverses what that did, or makes sure that it never redeems anything.',
      tag: 'Redemptions',
      caller: 'user',
      params: {
        ...GIFT_PARAM,
        redemptionId: 'The redemption’s id, `latest`, or `key:` and an idempotency key, percent-encoded.',
      },
      giftParam: 'giftId',
      body: UNREDEEM_BODY,
      bodyExample: { redeemed: false },
      answers: [
        dataAnswer('The reversed redemption, or the one that will never be.', reversedSchema, {
          ...redemptionExample,
          redeemed: false,
          updated_at: '2026-11-21T10:20:00.000Z',
        }),
      ],
      errors: [
        'cannot_unredeem',
        'redemption_not_found',
        'gift_not_redeemed',
        'invalid_idempotency_key',
        'gift_not_paid',
        'gift_cancelled',
        'voided_too_often',
      ],
      async open(early) {
        const { giftId = '', redemptionId = '' } = early.params;
        const key = keyNamed(redemptionId);
        if (key !== undefined) return openCancel(deps, early, key);
        const user = userOf(early);
        const context = contextOf(early, deps.now());
        const loaded = await loadGift(deps, giftId, user, context.now);
        if (!hasRun(loaded, context) && !mayUnredeem(loaded.gift, loaded.facts.caller, redemptionId))
          throw new HttpError('cannot_unredeem');
        return async () => {
          const { redeemed, event, replayed } = await unredeemGift(deps, loaded, user, context, redemptionId);
          const { redemption_id: id, location_id } = redeemed.data;
          const data = redemptionEntity(giftId, {
            id,
            location_id,
            redeemed: false,
            created_at: redeemed.at,
            updated_at: event.at,
          });
          return { body: { data }, position: event.position, replayed };
        };
      },
    },
  ];
}

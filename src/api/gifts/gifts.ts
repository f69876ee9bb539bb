/**
 * Gifts (docs/api/gifts.md#what-opens-a-gift, docs/api/gifts.md#claim-a-gift,
 * docs/api/gifts.md#list-adjustment-codes).
 */
import { claimGift } from '../../commands/claimGift.js';
import { upToOwn } from '../../commands/transact.js';
import { callerOf, hasRun, type LoadedGift, loadGift } from '../../commands/loadGift.js';
import { isSomebody } from '../../domain/gift/events.js';
import { mayRedeemForMerchant, ownerOf } from '../../domain/gift/decisions.js';
import { dataAnswer, dataSchema, jsonAnswer } from '../pipeline/schemas.js';
import { GIFT_RELATIONS, embedGift, requestKinds } from '../../entities/embed.js';
import { embeddedCollector } from '../../entities/embedded.js';
import { HttpError } from '../pipeline/errors.js';
import { waitUntilProjected } from '../pipeline/positions.js';
import { BEHIND_WAIT_MS } from '../../runtime/readmodels/index.js';
import type { Route } from '../pipeline/route.js';
import { contextOf, userOf } from '../pipeline/commandContext.js';
import { OF_GIFT, type GiftRouteDeps, viewing } from './deps.js';
import { openGift } from './openGift.js';
import { giftEntity } from '../../entities/gifts.js';
import { giftAfter, withMessage } from '../../entities/joinedGift.js';
import {
  adjustmentCodesSchema,
  boughtGiftExample,
  giftEmbeddedExample,
  giftEmbeddedSchema,
  giftExample,
  giftSchema,
} from './schemas.js';

/** Whether the user is the gift's buyer or owner. */
const isPartyTo = ({ gift, facts }: LoadedGift, userId: string): boolean =>
  gift.issued.sender_id === userId || ownerOf(gift, facts.phoneOwner) === userId;

export function giftRoutes(deps: GiftRouteDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/gifts/:giftId',
      operation: 'getGift',
      summary: 'One gift',
      description:
        'Any signed-in user who holds the shortcode may look a gift up: it is unguessable. The id is enough for its buyer, its owner and users of a merchant that it is valid for; for others it is `gift not found`.',
      tag: 'Gifts',
      ...OF_GIFT,
      embeds: GIFT_RELATIONS,
      answers: [
        jsonAnswer('The gift.', dataSchema(giftSchema, giftEmbeddedSchema), {
          data: giftExample,
          embedded: giftEmbeddedExample,
        }),
      ],
      async open(early) {
        const user = userOf(early);
        const joined = await openGift(deps, early);
        return async ({ embeds }) => {
          const viewer = viewing(deps, user);
          const data = giftEntity(joined, viewer);
          if (embeds.length === 0) return { body: { data } };
          const embedded = embeddedCollector();
          requestKinds(embedded, embeds);
          for (const gift of await withMessage(deps, [joined], embeds))
            embedGift(embedded, gift, embeds, viewer, deps.catalogue.current());
          return { body: { data, embedded: embedded.result() } };
        };
      },
    },
    {
      method: 'POST',
      path: '/api/v2/gifts/:giftId/claim',
      operation: 'claimGift',
      summary: 'Claim a gift shared by URL',
      description:
        'Makes the caller the owner of a gift that was bought without a receiver; the first claim wins. A repeated claim by the owner answers the gift again. It takes the shortcode: by the id of a gift that is another’s it is `gift not found`.',
      tag: 'Gifts',
      ...OF_GIFT,
      answers: [dataAnswer('The gift, now the caller’s.', giftSchema, boughtGiftExample)],
      errors: [
        'cannot_claim',
        'staff_receives_no_gifts',
        'gift_already_claimed',
        'gift_not_paid',
        'gift_cancelled',
        'gift_already_redeemed',
        'gift_expired',
        'gift_blocked',
      ],
      async open(early) {
        const user = userOf(early);
        const now = deps.now();
        const context = contextOf(early, now);
        const giftId = early.params['giftId'] ?? '';
        const loaded = await loadGift(deps, giftId, user, now);
        if (!hasRun(loaded, context)) {
          if (!early.byShortcode && !isPartyTo(loaded, user.id)) throw new HttpError('gift_not_found');
          if (isSomebody(loaded.gift.issued.receiver)) throw new HttpError('cannot_claim');
        }
        return async () => {
          const handled = await claimGift(deps, loaded, user, context);
          const last = handled.own.at(-1);
          if (last !== undefined) await waitUntilProjected(last.position, [deps.gifts], BEHIND_WAIT_MS);
          const claimed = await giftAfter(deps, giftId, upToOwn(handled));
          const data = giftEntity(claimed, viewing(deps, user, now));
          return {
            body: { data },
            replayed: handled.replayed,
            position: last?.position,
          };
        };
      },
    },
    {
      method: 'GET',
      path: '/api/v2/gifts/:giftId/product/adjustment-codes',
      operation: 'listAdjustmentCodes',
      summary: 'Adjustment codes for a gift',
      description:
        "For points of sale: the codes of the calling user's merchant. A gift is redeemed against any single one of them.",
      tag: 'Gifts',
      ...OF_GIFT,
      answers: [
        dataAnswer('The codes; none when the merchant has none.', adjustmentCodesSchema, {
          product_id: giftExample.purchase_id,
          adjustment_codes: ['ADJ-10', 'ADJ-20'],
        }),
      ],
      errors: ['cannot_redeem', 'redeemed_gift_has_no_codes'],
      async open(early) {
        const user = userOf(early);
        const { gift } = await loadGift(deps, early.params['giftId'] ?? '', user, deps.now());
        const caller = callerOf(deps.catalogue, gift.issued, user);
        const { merchant } = caller;
        if (merchant === undefined || !mayRedeemForMerchant(caller)) throw new HttpError('cannot_redeem');
        return async () => {
          if (gift.status === 'redeemed') throw new HttpError('redeemed_gift_has_no_codes');
          const codes = deps.catalogue.current().merchants.get(merchant.id)?.adjustment_codes ?? [];
          return { body: { data: { product_id: gift.issued.product_id, adjustment_codes: codes } } };
        };
      },
    },
  ];
}

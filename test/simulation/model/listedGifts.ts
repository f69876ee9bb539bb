/** Which gifts and redemptions the lists of a user show, once read models are current. */
import { type GiftState, latest, mayUnredeem, statusOf } from './giftState.js';
import type { User } from './installation.js';
import type { ListGifts } from './operations.js';
import type { Pattern } from './pattern.js';
import { type GiftWorld, shownRedemption } from './shown.js';

/** docs/api/gifts.md#own-gifts */
export function isListed(
  { gift }: GiftWorld,
  state: GiftState,
  user: User,
  { as, status }: Pick<ListGifts, 'as' | 'status'>,
): boolean {
  if (status !== undefined && statusOf(state)[0] !== status) return false;
  const { holder } = state;
  const held = holder.kind === 'user' && holder.user === user.id && state.payment === 'paid';
  const bought = gift.buyer === user.id;
  if (as === 'holder') return held;
  return as === 'sender' ? bought : held || bought;
}

/** The redemptions of the gift at the user's merchant, the latest first. */
export function merchantEntries({ gift, installation }: GiftWorld, state: GiftState, user: User): Pattern[] {
  const { users } = installation;
  return state.redemptions
    .filter(({ location }) => installation.locations.get(location) === user.merchant)
    .map((one): Pattern => {
      const reversible = one.redeemed && one === latest(state) && mayUnredeem(user, gift, one, installation);
      const byTill = users.get(one.user)?.merchant === user.merchant;
      return {
        ...shownRedemption(one, gift),
        product_id: gift.product.id,
        value: gift.product.price,
        user_id: byTill ? one.user : null,
        reversible,
      };
    })
    .toReversed();
}

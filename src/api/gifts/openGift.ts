/** Callers that may open a gift (docs/api/gifts.md#what-opens-a-gift). */
import { callerOf } from '../../commands/loadGift.js';
import { accountInLog, type UserDocument } from '../../projections/accounts.js';
import { HttpError } from '../pipeline/errors.js';
import type { EarlyCall } from '../pipeline/route.js';
import { userOf } from '../pipeline/commandContext.js';
import { type GiftRouteDeps } from './deps.js';
import { findGift, type JoinedGift, joinedGift } from '../../entities/joinedGift.js';

/** The gift of the path. @throws HttpError `gift_not_found`, also for a stranger who has its id; UnavailableError */
export async function openGift(
  deps: GiftRouteDeps,
  early: Pick<EarlyCall, 'params' | 'position' | 'byShortcode' | 'principal'>,
): Promise<JoinedGift> {
  const joined = await findGift(deps, early.params['giftId'] ?? '', early.position);
  if (joined === undefined) throw new HttpError('gift_not_found');
  const user = userOf(early);
  if (early.byShortcode || isKnownTo(deps, joined, user)) return joined;
  // The log is read, as for commands: the read model may not know yet which user holds the number.
  const { phone_id: phoneId } = joined.gift.receiver;
  if (phoneId === undefined) throw new HttpError('gift_not_found');
  const phone = await accountInLog(deps.events, `phone-${phoneId}`);
  const inLog = joinedGift(joined.id, joined.gift, joined.transaction, phone);
  if (inLog.owner !== user.id) throw new HttpError('gift_not_found');
  return inLog;
}

function isKnownTo({ catalogue }: GiftRouteDeps, { transaction, owner }: JoinedGift, user: UserDocument): boolean {
  if (owner === user.id || transaction.buyer_id === user.id) return true;
  return callerOf(catalogue, transaction, user).merchant?.valid === true && opensGifts(user);
}

/** Whether a merchant's user may look up gifts that are valid for the merchant. */
export const opensGifts = ({ permissions }: Pick<UserDocument, 'permissions'>): boolean =>
  permissions.some((one) => one === 'redeem' || one === 'unredeem');

/** Vouchers in the model of a gift (docs/api/vouchers.md). */
import { type GiftState, type Voucher, ownerOf, redeemsForMerchant, withEvent } from './giftState.js';
import type { User } from './installation.js';
import type { MakeVoucher } from './operations.js';
import type { Expected } from './pattern.js';
import { CANNOT_REDEEM, type Possible, done, error, first, refused, unusable } from './refusals.js';
import { type GiftWorld, shownGift, shownV1, shownV2 } from './shown.js';

const NOT_AVAILABLE = error(422, 'Voucher not available.');
const INVALID_SEGMENT = error(422, 'Invalid segment.');

/** Whether the user may get codes of the gift (docs/api/vouchers.md#voucher-callers). */
function mayHaveCode({ gift }: GiftWorld, state: GiftState, user: User): boolean {
  return user.id === ownerOf(state, gift) || redeemsForMerchant(user, gift);
}

/** `GET` of a V2 voucher. */
export function voucherLookedUp(world: GiftWorld, state: GiftState, user: User): Expected {
  if (!mayHaveCode(world, state, user)) return CANNOT_REDEEM;
  return state.voucher === null ? error(404, 'Voucher not found') : first(200, shownV2(state, world.gift));
}

/** `POST` of a V1 or V2 voucher. Where several refusals hold, the contract has no order of them. */
export function makeVoucher(world: GiftWorld, state: GiftState, user: User, operation: MakeVoucher): Possible[] {
  const { gift } = world;
  const { segments, servesV1 } = gift.product;
  if (!mayHaveCode(world, state, user)) return [refused(state, CANNOT_REDEEM)];
  const { segment, version } = operation;
  const served = version === 2 || servesV1;
  const refusals: Possible[] = [];
  if (segment !== undefined && !segments.includes(segment)) refusals.push(refused(state, INVALID_SEGMENT, false));
  if (!served || segments.length === 0) refusals.push(refused(state, NOT_AVAILABLE, false));
  const shown = (next: GiftState): Expected =>
    version === 2
      ? first(200, shownV2(next, gift))
      : first(200, { data: shownGift(world, next, user), embedded: { vouchers: [shownV1(next, gift)] } });
  // It is answered for a call with another segment, too.
  if (state.voucher !== null) return [done(state, shown(state)), ...refusals];
  const why = unusable(state);
  if (why !== undefined) return [refused(state, why), ...refusals];
  const [chosen] = segment === undefined ? segments : [segment];
  if (refusals.length > 0 || chosen === undefined) return refusals;
  const voucher: Voucher = { id: '?voucher.id', code: '?voucher.code', segment: chosen };
  const next = withEvent({ ...state, voucher }, gift, 'voucher_assigned', { voucher_id: voucher.id });
  const made = done(next, shown(next));
  // Whether a pool is empty depends on other gifts.
  return world.installation.pools.has(chosen) ? [made, refused(state, NOT_AVAILABLE, false)] : [made];
}

/** Gifts, redemptions and vouchers as answers show them to a user, as far as the contract fixes it. */
import type { Installation, User } from './installation.js';
import { type GiftFacts, type GiftState, type Redemption, isExpired, latest, statusOf } from './giftState.js';
import type { Pattern } from './pattern.js';

/** What the model knows beside the state of a gift. */
export interface GiftWorld {
  readonly gift: GiftFacts;
  readonly installation: Installation;
}

export function shownRedemption(one: Redemption, gift: GiftFacts): Readonly<Record<string, Pattern>> {
  return {
    id: one.id,
    gift_id: gift.id,
    redeemed: one.redeemed,
    creation_at: one.creation,
    updated_at: one.updated,
    location_id: one.location,
  };
}

export function shownGift({ gift }: GiftWorld, state: GiftState, user: User): Pattern {
  const [giftStatus, status, code] = statusOf(state);
  const redemption = latest(state);
  return {
    id: gift.id,
    sender_id: gift.buyer,
    receiver_id: shownReceiver(gift, state, user),
    purchase_id: gift.product.id,
    transaction_id: gift.transaction,
    voucher_id: state.voucher?.id ?? null,
    redeemed_id: redemption?.redeemed === true ? redemption.id : null,
    expiry_date: state.expiresOn,
    is_expired: isExpired(state),
    gift_status: giftStatus,
    status,
    status_code: code,
  };
}

/** docs/api/gifts.md#shown-receiver */
function shownReceiver(gift: GiftFacts, { holder }: GiftState, user: User): string {
  if (holder.kind !== 'user') return '';
  const named = user.id === gift.buyer && holder.by === 'name';
  return named || user.id === holder.user ? holder.user : '';
}

/** A V2 voucher. Its first entry has the code (docs/api/vouchers.md#voucher-data). */
export function shownV2({ voucher }: GiftState, gift: GiftFacts): Pattern {
  return { giftId: gift.id, segment: { id: voucher?.segment ?? '' }, data: { 0: { value: voucher?.code ?? '' } } };
}

/** A V1 voucher. */
export function shownV1({ voucher }: GiftState, gift: GiftFacts): Pattern {
  const { id = '', code = '', segment = '' } = voucher ?? {};
  return { id, code, gift_id: gift.id, segment_id: segment };
}

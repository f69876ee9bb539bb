import { Refusal } from '../refusal.js';
import {
  type GiftCancelled,
  type GiftClaimed,
  type GiftIssued,
  type GiftRedeemed,
  type GiftReleased,
  type GiftUnredeemed,
  isSomebody,
  type Receiver,
  type RedemptionVoided,
  type VoucherAssigned,
} from './events.js';
import { commandPartOf, redemptionOfCommand } from './redemptionIds.js';
import type { IssuedGift, RedemptionState } from './state.js';

/** State of the purchase's payment; it is `charged` for every issued gift. */
export type PaymentState = 'pending' | 'charged' | 'declined';

export interface GiftCaller {
  readonly user_id: string;
  /** True for a staff account, which can't use gifts of its own (docs/api/tokens.md#staff-accounts). */
  readonly staff?: boolean;
  /** The caller's merchant; absent for customers. `valid`: the gift is valid for the merchant by today's catalogue. */
  readonly merchant?: { readonly id: string; readonly valid: boolean; readonly permissions: readonly string[] };
}

export interface GiftFacts {
  /** Time of the decision (ISO 8601, UTC). */
  readonly now: string;
  readonly payment: PaymentState;
  readonly caller: GiftCaller;
  /** The present owner of the phone number that the gift was sent to. */
  readonly phoneOwner?: string;
}

interface OwnedGift {
  readonly issued: Pick<GiftIssued['data'], 'receiver' | 'sender_id'>;
  readonly claimedBy?: string | undefined;
}

/** The receiver, or the user who claimed a gift that had none. */
export function presentReceiver({ issued: { receiver }, claimedBy }: IssuedGift): Receiver {
  return claimedBy === undefined ? receiver : { user_id: claimedBy };
}

/** The gift's owner (docs/api/gifts.md#gift-owner). `undefined`: no user has the receiver's phone number. */
export function ownerOf(gift: OwnedGift, phoneOwner: string | undefined): string | undefined {
  const { receiver, sender_id } = gift.issued;
  if (receiver.user_id !== undefined) return receiver.user_id;
  if (receiver.phone_id !== undefined) return phoneOwner;
  return gift.claimedBy ?? sender_id;
}

/** True once the last valid day `expiresOn` (UTC) is over. */
export function isExpired(expiresOn: string, now: string): boolean {
  return now.slice(0, 10) > expiresOn;
}

/**
 * The caller must be the gift's owner, or redeem for a merchant (docs/api/gifts.md#redeem-a-gift).
 * @throws Refusal `cannot_redeem`, `staff_receives_no_gifts`
 */
export function refuseUnlessMayRedeem(gift: OwnedGift, facts: Pick<GiftFacts, 'caller' | 'phoneOwner'>): void {
  const { caller, phoneOwner } = facts;
  if (mayRedeemForMerchant(caller)) return;
  if (ownerOf(gift, phoneOwner) !== caller.user_id) throw new Refusal('cannot_redeem');
  if (caller.staff === true) throw new Refusal('staff_receives_no_gifts');
}

/**
 * A voucher's code is worth the gift, so staff get none, not even where they may redeem for a merchant.
 * @throws as `refuseUnlessMayRedeem`
 */
export function refuseUnlessMayHaveVoucher(gift: OwnedGift, facts: Pick<GiftFacts, 'caller' | 'phoneOwner'>): void {
  refuseUnlessMayRedeem(gift, facts);
  if (facts.caller.staff === true) throw new Refusal('staff_receives_no_gifts');
}

/**
 * Whether the caller may redeem at the merchant's own locations, whoever owns the gift
 * (docs/api/gifts.md#redeem-a-gift).
 */
export function mayRedeemForMerchant({ merchant }: GiftCaller): boolean {
  return merchant?.valid === true && merchant.permissions.includes('redeem');
}

/** @throws Refusal as `refuseUnlessMayRedeem`; `redemption_voided`, `invalid_location`, or as `refuseUnlessUsable` */
export function redeem(
  gift: IssuedGift,
  facts: GiftFacts & {
    /** `valid`: the gift is valid for the location's merchant. */
    readonly location: { readonly id: string; readonly merchant_id: string; readonly valid: boolean } | undefined;
    readonly redemptionId: string;
  },
): GiftRedeemed[] {
  const { location, caller } = facts;
  refuseUnlessMayRedeem(gift, facts);
  if (gift.voided?.includes(commandPartOf(facts.redemptionId)) === true) throw new Refusal('redemption_voided');
  const asOwner = caller.staff !== true && ownerOf(gift, facts.phoneOwner) === caller.user_id;
  if (location === undefined || (!asOwner && location.merchant_id !== caller.merchant?.id))
    throw new Refusal('invalid_location', 'location_id');
  refuseUnlessUsable(gift, facts);
  const { brand_id, product_id, value } = gift.issued;
  return [
    {
      type: 'GiftRedeemed',
      data: {
        redemption_id: facts.redemptionId,
        location_id: location.id,
        location_merchant_id: location.merchant_id,
        merchant_id: location.valid ? location.merchant_id : null,
        brand_id,
        product_id,
        value,
      },
    },
  ];
}

/** `redemptionId`: a whole id, or `latest`. */
function redemptionNamed(gift: IssuedGift, redemptionId: string): RedemptionState | undefined {
  return redemptionId === 'latest' ? gift.redemptions.at(-1) : gift.redemptions.find((one) => one.id === redemptionId);
}

/**
 * Whether the caller may reverse this redemption, or, where it is unknown, any redemption of the gift
 * (docs/api/gifts.md#who-unredeems). `redemptionId` may be `latest`.
 */
export function mayUnredeem(gift: IssuedGift, caller: GiftCaller, redemptionId: string): boolean {
  return mayReverseIn(gift, caller, redemptionNamed(gift, redemptionId));
}

/**
 * As `mayUnredeem`, for the redemption that a command has made, or would make. `commandPart`: the part of redemption
 * ids that identifies the command.
 */
export function mayCancel(gift: IssuedGift, caller: GiftCaller, commandPart: string): boolean {
  return mayReverseIn(gift, caller, redemptionOfCommand(gift.redemptions, commandPart));
}

function mayReverseIn(gift: IssuedGift, caller: GiftCaller, redemption: RedemptionState | undefined): boolean {
  return redemption === undefined
    ? [{ merchant_id: null }, ...gift.redemptions].some((one) => mayReverse(caller, one))
    : mayReverse(caller, redemption);
}

/** Whether the caller may reverse a redemption that was made so (docs/api/gifts.md#who-unredeems). */
export function mayReverse({ merchant }: GiftCaller, { merchant_id }: Pick<RedemptionState, 'merchant_id'>): boolean {
  if (merchant === undefined || !merchant.permissions.includes('unredeem')) return false;
  return merchant_id === null ? merchant.valid : merchant_id === merchant.id;
}

/**
 * Reverses a redemption; `redemptionId` may be `latest`.
 * @throws Refusal `cannot_unredeem`; `gift_not_found` (no `latest`); `redemption_not_found`; `gift_not_redeemed`
 */
export function unredeem(gift: IssuedGift, facts: GiftFacts & { readonly redemptionId: string }): GiftUnredeemed[] {
  const redemption = redemptionNamed(gift, facts.redemptionId);
  if (!mayReverseIn(gift, facts.caller, redemption)) throw new Refusal('cannot_unredeem');
  if (redemption === undefined)
    throw new Refusal(facts.redemptionId === 'latest' ? 'gift_not_found' : 'redemption_not_found');
  if (!redemption.redeemed) throw new Refusal('gift_not_redeemed');
  return [reversalOf(redemption)];
}

export const reversalOf = (redemption: RedemptionState): GiftUnredeemed => {
  const { id, location_id, location_merchant_id, merchant_id } = redemption;
  return { type: 'GiftUnredeemed', data: { redemption_id: id, location_id, location_merchant_id, merchant_id } };
};

/**
 * Reverses the command's redemption, or makes sure that the command never redeems
 * (docs/api/gifts.md#cancel-a-redemption). `commandPart`: the part of redemption ids that identifies the command.
 * @throws Refusal `cannot_unredeem`; `gift_not_paid`, `gift_cancelled` while there is no gift to redeem
 */
export function reverseOrVoid(
  gift: IssuedGift,
  facts: GiftFacts & { readonly commandPart: string },
): (GiftUnredeemed | RedemptionVoided)[] {
  const { commandPart, payment } = facts;
  const redemption = redemptionOfCommand(gift.redemptions, commandPart);
  if (!mayReverseIn(gift, facts.caller, redemption)) throw new Refusal('cannot_unredeem');
  if (redemption !== undefined) return redemption.redeemed ? [reversalOf(redemption)] : [];
  if (gift.voided?.includes(commandPart) === true) return [];
  // The gift is not issued, so there is no stream for the event.
  if (payment === 'pending') throw new Refusal('gift_not_paid');
  if (payment === 'declined') throw new Refusal('gift_cancelled');
  return [{ type: 'RedemptionVoided', data: { redemption_id: commandPart } }];
}

/** @throws Refusal `cannot_claim`, `staff_receives_no_gifts`, `gift_already_claimed`, or as `refuseUnlessUsable` */
export function claim(gift: IssuedGift, facts: GiftFacts): GiftClaimed[] {
  const { receiver } = gift.issued;
  if (isSomebody(receiver)) throw new Refusal('cannot_claim');
  if (facts.caller.staff === true) throw new Refusal('staff_receives_no_gifts');
  if (gift.claimedBy === facts.caller.user_id) return [];
  if (gift.claimedBy !== undefined) throw new Refusal('gift_already_claimed');
  refuseUnlessUsable(gift, facts);
  return [{ type: 'GiftClaimed', data: { user_id: facts.caller.user_id } }];
}

/** @throws Refusal as `refuseUnlessMayHaveVoucher` and `refuseUnlessUsable` */
export function refuseNewVoucher(gift: IssuedGift, facts: GiftFacts): void {
  refuseUnlessMayHaveVoucher(gift, facts);
  refuseUnlessUsable(gift, facts);
}

/** @throws Refusal as `refuseNewVoucher` */
export function assignVoucher(gift: IssuedGift, facts: GiftFacts, voucher: VoucherAssigned['data']): VoucherAssigned[] {
  if (gift.voucher !== undefined) return [];
  refuseNewVoucher(gift, facts);
  return [{ type: 'VoucherAssigned', data: voucher }];
}

export function cancel(gift: IssuedGift, why: GiftCancelled['data']): GiftCancelled[] {
  return gift.status === 'issued' ? [{ type: 'GiftCancelled', data: why }] : [];
}

/** True while the gift's receiver must not learn of it yet (docs/api/purchases.md#scheduled-sending). */
export function isHeldBack({ issued, releasedAt }: Pick<IssuedGift, 'issued' | 'releasedAt'>): boolean {
  return issued.scheduled === true && releasedAt === undefined;
}

export const isBlocked = ({ blockedBy = [] }: Pick<IssuedGift, 'blockedBy'>): boolean => blockedBy.length > 0;

export function release(gift: IssuedGift): GiftReleased[] {
  if (gift.status === 'cancelled' || !isHeldBack(gift)) return [];
  return [{ type: 'GiftReleased', data: { transaction_id: gift.issued.transaction_id } }];
}

/**
 * Checks in the order of docs/api/conventions.md#order-of-checks and docs/api/gifts.md#pending-gifts; a block comes
 * last, since it may be lifted.
 * @throws Refusal `gift_not_paid`, `gift_cancelled`, `gift_already_redeemed`, `gift_expired`, `gift_blocked`
 */
export function refuseUnlessUsable(gift: IssuedGift, facts: Pick<GiftFacts, 'now' | 'payment'>): void {
  if (facts.payment === 'pending') throw new Refusal('gift_not_paid');
  const why = facts.payment === 'declined' ? 'gift_cancelled' : whyUnusable(gift, facts.now);
  if (why !== undefined) throw new Refusal(why);
}

/** Why a gift that is paid for can't be used at the time `now` (ISO 8601, UTC); `undefined`: it can be used. */
export function whyUnusable(
  gift: IssuedGift,
  now: string,
): 'gift_cancelled' | 'gift_already_redeemed' | 'gift_expired' | 'gift_blocked' | undefined {
  if (gift.status === 'cancelled') return 'gift_cancelled';
  if (gift.status === 'redeemed') return 'gift_already_redeemed';
  if (isExpired(gift.issued.expires_on, now)) return 'gift_expired';
  return isBlocked(gift) ? 'gift_blocked' : undefined;
}

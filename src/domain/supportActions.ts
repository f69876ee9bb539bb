import type {
  Block,
  GiftBlocked,
  GiftExtended,
  GiftReassigned,
  GiftReplaced,
  ReplacementDeclined,
  GiftUnblocked,
  GiftUnredeemed,
} from './gift/events.js';
import type { IssuedGift } from './gift/state.js';
import type { GiftFacts } from './gift/decisions.js';
import { isExpired, isHeldBack, reversalOf } from './gift/decisions.js';
import { Refusal } from './refusal.js';
import { voucherExpiry } from './voucher.js';

const DISPUTE = 'dispute:';
const SUPPORT = 'support';
const TICKET = `${SUPPORT}:`;

export const disputeCause = (disputeId: string): string => `${DISPUTE}${disputeId}`;

export const isDisputeCause = (cause: string): boolean => cause.startsWith(DISPUTE);

/**
 * `id`: id of a block for a ticket. The ticket may name a person, so it is no part of the cause, which is never erased.
 */
export const supportCause = (id?: string): string => (id === undefined ? SUPPORT : `${TICKET}${id}`);

/**
 * Cause of the block for this ticket, or of support's block without a ticket; `undefined`: there is none. A block whose
 * ticket was erased is named by the id in its cause, as it is shown.
 * @throws UnavailableError
 */
export function supportCauseIn({ blockedBy = [] }: IssuedGift, ticket: string | undefined): string | undefined {
  return blockedBy.find((one) =>
    ticket === undefined
      ? one.cause === SUPPORT
      : one.cause.startsWith(TICKET) && (one.ticket === ticket || one.cause === supportCause(ticket)),
  )?.cause;
}

/** Cause of a block as shown to support, with the ticket in place of the block's id. @throws UnavailableError */
export function shownCause({ cause, ticket = '' }: Block): string {
  return ticket === '' ? cause : supportCause(ticket);
}

const isBlockedBy = ({ blockedBy = [] }: IssuedGift, cause: string): boolean =>
  blockedBy.some((one) => one.cause === cause);

/** A redeemed gift is blocked, since it could be unredeemed. @throws Refusal `gift_not_paid` */
export function block(gift: IssuedGift, { payment }: Pick<GiftFacts, 'payment'>, why: Block): GiftBlocked[] {
  if (payment === 'pending') throw new Refusal('gift_not_paid');
  if (payment === 'declined' || gift.status === 'cancelled' || isBlockedBy(gift, why.cause)) return [];
  return [{ type: 'GiftBlocked', data: why }];
}

export function unblock(gift: IssuedGift, why: Block): GiftUnblocked[] {
  if (!isBlockedBy(gift, why.cause)) return [];
  return [{ type: 'GiftUnblocked', data: { ...why, transaction_id: gift.issued.transaction_id } }];
}

/**
 * A gift with a voucher is refused, since the present receiver may have noted the code. A blocked gift may be
 * reassigned.
 * @throws Refusal `gift_not_paid`, `gift_cancelled`, `gift_already_redeemed`, `gift_has_voucher`, `gift_expired`
 */
export function reassign(
  gift: IssuedGift,
  facts: Pick<GiftFacts, 'now' | 'payment'>,
  to: Omit<GiftReassigned['data'], 'transaction_id'>,
): GiftReassigned[] {
  refuseUnlessAlive(gift, facts.payment);
  if (gift.status === 'redeemed') throw new Refusal('gift_already_redeemed');
  if (gift.voucher !== undefined) throw new Refusal('gift_has_voucher');
  if (isExpired(gift.issued.expires_on, facts.now)) throw new Refusal('gift_expired');
  const { receiver, transaction_id } = gift.issued;
  const same = receiver.user_id === to.receiver.user_id && receiver.phone_id === to.receiver.phone_id;
  return same ? [] : [{ type: 'GiftReassigned', data: { transaction_id, ...to } }];
}

/**
 * Reverses the gift's redemption, whoever made it, at any merchant. A blocked gift stays blocked, and an expired one
 * stays expired.
 * @throws Refusal `gift_not_paid`, `gift_cancelled`, `gift_not_redeemed`
 */
export function unredeemForSupport(
  gift: IssuedGift,
  { payment }: Pick<GiftFacts, 'payment'>,
  reason: string,
): GiftUnredeemed[] {
  refuseUnlessAlive(gift, payment);
  const redemption = gift.redemptions.at(-1);
  if (redemption?.redeemed !== true) throw new Refusal('gift_not_redeemed');
  return [{ type: 'GiftUnredeemed', data: { ...reversalOf(redemption).data, by_support: true, reason } }];
}

/**
 * Gives the gift up for another one: once, and never where money of its purchase went back, or may go back. A redeemed
 * or blocked gift may be replaced. `voided`: the issuer has made an issued code worthless. No event where
 * this purchase replaces the gift already.
 * @throws Refusal `gift_already_replaced`, `gift_not_paid`, `gift_cancelled`, `gift_is_replacement`, `gift_disputed`,
 * `gift_code_out`, `gift_expired`, `notification_pending`
 */
export function replace(
  gift: IssuedGift,
  facts: Pick<GiftFacts, 'now' | 'payment'>,
  { voided, ...by }: GiftReplaced['data'] & { readonly voided: boolean },
): GiftReplaced[] {
  if (gift.replacedBy?.transaction_id === by.replaced_by.transaction_id) return [];
  if (gift.replacedBy !== undefined) throw new Refusal('gift_already_replaced');
  refuseUnlessAlive(gift, facts.payment);
  if (gift.issued.replacement === true) throw new Refusal('gift_is_replacement');
  if (gift.blockedBy?.some(({ cause }) => isDisputeCause(cause)) === true) throw new Refusal('gift_disputed');
  if (gift.voucher !== undefined && !voided) throw new Refusal('gift_code_out');
  if (isExpired(gift.issued.expires_on, facts.now)) throw new Refusal('gift_expired');
  if (isHeldBack(gift)) throw new Refusal('notification_pending');
  return [{ type: 'GiftReplaced', data: by }];
}

/** Why the gift is never given up for this purchase; `undefined`: that is not declined. */
export const declinedFor = ({ declined = [] }: IssuedGift, transactionId: string): string | undefined =>
  declined.find(({ replaced_by }) => replaced_by.transaction_id === transactionId)?.code;

/** Declines a replacement once. No event for a gift that can't be given up any more, or was for this purchase. */
export function declineReplacement(gift: IssuedGift, declined: ReplacementDeclined['data']): ReplacementDeclined[] {
  if (gift.status === 'cancelled' || gift.replacedBy !== undefined) return [];
  return declinedFor(gift, declined.replaced_by.transaction_id) === undefined
    ? [{ type: 'ReplacementDeclined', data: declined }]
    : [];
}

const YEARS = 10;

/**
 * `expires_on` is the last valid day (UTC). The voucher follows docs/api/vouchers.md#voucher-expiry with today's
 * `segmentDays`, but never expires earlier than before.
 * @throws Refusal `gift_not_paid`, `gift_cancelled`; `invalid_expiry_date`: past, before the present last day, or over
 * ten years ahead
 */
export function extend(
  gift: IssuedGift,
  facts: Pick<GiftFacts, 'now' | 'payment'>,
  {
    expires_on,
    reason,
    segmentDays,
  }: { readonly expires_on: string; readonly reason: string; readonly segmentDays: number | undefined },
): GiftExtended[] {
  refuseUnlessAlive(gift, facts.payment);
  if (expires_on === gift.issued.expires_on) return [];
  const today = facts.now.slice(0, 10);
  const furthest = `${Number(today.slice(0, 4)) + YEARS}${today.slice(4)}`;
  if (expires_on < gift.issued.expires_on || expires_on < today || expires_on > furthest)
    throw new Refusal('invalid_expiry_date', 'expiry_date');
  return [
    {
      type: 'GiftExtended',
      data: { expires_on, voucher_expires_at: voucherEnd(gift, expires_on, segmentDays), reason },
    },
  ];
}

function voucherEnd({ voucher }: IssuedGift, expiresOn: string, segmentDays: number | undefined): string | null {
  if (voucher === undefined) return null;
  const end =
    segmentDays === undefined ? voucher.expires_at : voucherExpiry(voucher.assignedAt, expiresOn, segmentDays);
  return end > voucher.expires_at ? end : voucher.expires_at;
}

function refuseUnlessAlive(gift: IssuedGift, payment: GiftFacts['payment']): void {
  if (payment === 'pending') throw new Refusal('gift_not_paid');
  if (payment === 'declined' || gift.status === 'cancelled') throw new Refusal('gift_cancelled');
}

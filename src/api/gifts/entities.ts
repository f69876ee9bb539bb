/**
 * Gifts, redemptions, messages and vouchers as the API shows them (docs/contract.md#entities;
 * docs/decisions.md#gift-fields).
 */
import { callerOf } from '../../commands/loadGift.js';
import type { Segment } from '../../domain/catalogue.js';
import { isSomebody } from '../../domain/gift/events.js';
import { isExpired, mayRedeemForMerchant } from '../../domain/gift/decisions.js';
import { shortcodeOf } from '../../domain/giftIds.js';
import type { UserDocument } from '../../projections/accounts.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';
import type { RedemptionDocument, VoucherDocument } from '../../projections/gifts.js';
import { type SegmentEntity, segmentEntity } from '../catalogue/entities.js';
import { plainTime } from '../representation/times.js';
import { expiryOf, type JoinedGift } from './join.js';

/** `gift_status`, `status` and `status_code` (docs/decisions.md#gift-status). */
const STATUS = {
  pending: ['pending', 2, 'PE'],
  received: ['sent', 5, 'SE'],
  unclaimed: ['sent', 12, 'UC'],
  redeemed: ['redeemed', 1, 'RE'],
  cancelled: ['cancelled', 3, 'CA'],
} as const;

const THEME_INFO = { clientIds: [], name: '', type: '', label: '', id: '' } as const;

function statusOf({ gift, transaction }: JoinedGift): keyof typeof STATUS {
  if (transaction.payment === 'pending') return 'pending';
  if (transaction.payment === 'declined' || gift.cancelled === true) return 'cancelled';
  if (gift.redemption?.redeemed === true) return 'redeemed';
  return isReceived(gift) ? 'received' : 'unclaimed';
}

/** Whether it was sent to somebody, or claimed. */
function isReceived({ receiver, claimed_by }: JoinedGift['gift']): boolean {
  return isSomebody(receiver) || claimed_by !== undefined;
}

/**
 * Shown to the owner, and to a buyer who named that user, but not one who got the gift since: a purchase must not tell
 * who owns a number (docs/decisions.md#shown-receiver).
 */
function receiverShown({ gift, transaction, owner }: JoinedGift, userId: string): string {
  if (isReceived(gift) && owner === userId) return userId;
  return transaction.buyer_id === userId && gift.reassigned_at === undefined ? (gift.receiver.user_id ?? '') : '';
}

/** Who looks, when, and where the service is reached. */
export interface Viewer {
  readonly user: UserDocument;
  /** ISO 8601, UTC. */
  readonly now: string;
  readonly publicUrl: string;
}

/** A gift (docs/contract.md#gift). */
export function giftEntity(joined: JoinedGift, { user, now, publicUrl }: Viewer): object {
  const { id, gift, transaction } = joined;
  const [gift_status, status, status_code] = STATUS[statusOf(joined)];
  const settledAt = transaction.payment === 'charged' ? transaction.settled_at : undefined;
  const shortcode = shortcodeOf(id);
  const expiresOn = expiryOf(joined);
  return {
    id,
    shortcode,
    sender_id: transaction.buyer_id,
    receiver_id: receiverShown(joined, user.id),
    purchase_id: transaction.product_id,
    transaction_id: gift.transaction_id,
    message_id: gift.message_id,
    voucher_id: gift.voucher?.id ?? null,
    redeemed_id: gift.redemption?.redeemed === true ? gift.redemption.id : null,
    code: '',
    vid: '',
    redeem_code: '',
    reminder_sent: '',
    type: '',
    expiry_date: expiresOn,
    created_at: plainTime(transaction.created_at),
    updated_at: plainTime(transaction.updated_at > gift.updated_at ? transaction.updated_at : gift.updated_at),
    sent_date: settledAt === undefined ? '' : plainTime(settledAt),
    deleted_at: null,
    assigned_date: null,
    assigned_client: null,
    viewed_date: null,
    viewed_client: null,
    account_id: null,
    order_id: null,
    cover_image_url: null,
    image_url: null,
    theme_id: '',
    theme_info: THEME_INFO,
    launch_url: `${publicUrl}/g/${shortcode}`,
    reminders_sent: [],
    is_expired: isExpired(expiresOn, now),
    gift_status,
    status_code,
    status,
  };
}

/** A redemption (docs/contract.md#redemption). */
export function redemptionEntity(giftId: string, redemption: RedemptionDocument): object {
  const { id, redeemed, created_at, updated_at, location_id } = redemption;
  return { id, gift_id: giftId, redeemed, creation_at: created_at, updated_at, location_id };
}

/** A gift's message (docs/contract.md#message). There are no conversations: `conversation_id` is empty. */
export function messageEntity({ id, gift, transaction }: JoinedGift): object {
  const time = plainTime(transaction.created_at);
  // Earlier releases took messages with half of a character, which strict readers of JSON refuse.
  return {
    id: gift.message_id,
    created_at: time,
    updated_at: time,
    gift_id: id,
    message: transaction.message.toWellFormed(),
    conversation_id: '',
    sender_id: transaction.buyer_id,
  };
}

/**
 * Whether the caller may read the message: sender, owner and, while nobody owns the gift, anybody with its id
 * (docs/decisions.md#shown-voucher-and-message). Of an unpaid gift only the sender: otherwise a declined card would
 * reveal which numbers have users.
 */
export function seesMessage({ transaction, owner }: JoinedGift, userId: string): boolean {
  return (
    owner === userId || transaction.buyer_id === userId || (owner === undefined && transaction.payment === 'charged')
  );
}

/**
 * Whether the caller may redeem the gift, by today's catalogue: only then its code is shown
 * (docs/decisions.md#shown-voucher-and-message).
 */
export function seesVoucher({ transaction, owner }: JoinedGift, user: UserDocument, catalogue: Catalogue): boolean {
  return owner === user.id || mayRedeemForMerchant(callerOf({ current: () => catalogue }, transaction, user));
}

/** A V1 voucher (docs/contract.md#voucher-v1). Shows the code. */
export function voucherV1(giftId: string, voucher: VoucherDocument): object {
  const { id, code, segment_id, expires_at, created_at, updated_at = created_at } = voucher;
  return {
    id,
    code,
    gift_id: giftId,
    segment_id,
    expiry_date: plainTime(expires_at),
    created_at: plainTime(created_at),
    updated_at: plainTime(updated_at),
  };
}

/** The entries of a V2 voucher's `data` by the segment's kind (docs/decisions.md#voucher-data). */
function voucherData(
  { code, pin }: Pick<VoucherDocument, 'code' | 'pin'>,
  voucherType: string,
): { type: string; label: string; value: string }[] {
  if (voucherType === 'qr') return [{ type: 'qr', label: '', value: code }];
  if (voucherType !== 'alpha/pin') return [{ type: 'alpha/qr', label: '', value: code }];
  return [
    { type: 'alpha/qr', label: 'Code', value: code },
    { type: 'alpha/pin', label: 'PIN', value: pin ?? '' },
  ];
}

/** A V2 voucher (docs/contract.md#voucher-v2). Shows the code. */
export function voucherV2(giftId: string, voucher: VoucherDocument, segment: Segment): object {
  const shown: SegmentEntity = segmentEntity(segment);
  return {
    voucherType: segment.voucherType,
    segment: shown,
    expiresAt: voucher.expires_at,
    data: voucherData(voucher, segment.voucherType),
    dateCreated: voucher.created_at,
    dateModified: voucher.updated_at ?? voucher.created_at,
    giftId,
  };
}

/** Entities as the API shows them (docs/api/gifts.md#gift; docs/api/gifts.md#gift). */
import { callerOf } from '../commands/loadGift.js';
import { isStaff } from '../domain/account.js';
import type { Segment } from '../domain/catalogue.js';
import { isSomebody } from '../domain/gift/events.js';
import { isExpired, mayRedeemForMerchant } from '../domain/gift/decisions.js';
import { deriveGiftIds, type Shortcodes } from '../domain/giftIds.js';
import { pounds } from '../domain/money.js';
import { type RefundedMoney, transactionStatus } from '../domain/purchase/status.js';
import type { UserDocument } from '../projections/accounts.js';
import type { Catalogue } from '../projections/catalogue/wholeCatalogue.js';
import type { RedemptionDocument, VoucherDocument } from '../projections/gifts.js';
import type { TransactionDocument } from '../projections/transactions.js';
import { segmentEntity } from './catalogue.js';
import { expiryOf, type JoinedGift } from './joinedGift.js';

/** docs/api/gifts.md#gift-status */
const STATUS = {
  pending: ['pending', 2, 'PE'],
  received: ['sent', 5, 'SE'],
  unclaimed: ['sent', 12, 'UC'],
  redeemed: ['redeemed', 1, 'RE'],
  cancelled: ['cancelled', 3, 'CA'],
} as const;

const THEME_INFO = { clientIds: [], name: '', type: '', label: '', id: '' } as const;

export const GIFT_STATUSES = ['pending', 'sent', 'redeemed', 'cancelled'] as const;
export type GiftStatus = (typeof GIFT_STATUSES)[number];

/** Value of the API's field `gift_status`. */
export const giftStatus = (joined: JoinedGift): GiftStatus => STATUS[statusOf(joined)][0];

function statusOf({ gift, transaction }: JoinedGift): keyof typeof STATUS {
  if (transaction.payment === 'pending') return 'pending';
  if (transaction.payment === 'declined' || gift.cancelled === true) return 'cancelled';
  if (gift.redemption?.redeemed === true) return 'redeemed';
  return isReceived(gift) ? 'received' : 'unclaimed';
}

export function isReceived({ receiver, claimed_by }: JoinedGift['gift']): boolean {
  return isSomebody(receiver) || claimed_by !== undefined;
}

/**
 * Time at which the gift was sent (ISO 8601, UTC). `undefined`: it was not sent yet, or never will be, since it was
 * cancelled before (docs/api/purchases.md#scheduled-sending).
 */
export function sentAt({ gift, transaction }: JoinedGift): string | undefined {
  const { payment, settled_at, send_at, sent_at } = transaction;
  if (payment !== 'charged') return undefined;
  if (send_at === undefined) return settled_at;
  // No event of a gift is folded after its cancellation, so `updated_at` is no later than that.
  return gift.cancelled === true && sent_at !== undefined && gift.updated_at < sent_at ? undefined : sent_at;
}

/**
 * The owner, and a buyer who named that user, see the receiver. The buyer does not see a later receiver, nor that
 * of a replacement: a purchase must not reveal who owns a number (docs/api/gifts.md#shown-receiver).
 */
function receiverShown({ gift, transaction, owner }: JoinedGift, userId: string): string {
  if (isReceived(gift) && owner === userId) return userId;
  const named = gift.reassigned_at === undefined && transaction.replaces === undefined;
  return transaction.buyer_id === userId && named ? (gift.receiver.user_id ?? '') : '';
}

export interface Viewer {
  readonly user: UserDocument;
  readonly now: string;
  readonly publicUrl: string;
  readonly shortcodes: Pick<Shortcodes, 'of'>;
}

export function giftEntity(joined: JoinedGift, { user, now, publicUrl, shortcodes }: Viewer): object {
  const { id, gift, transaction } = joined;
  const [gift_status, status, status_code] = STATUS[statusOf(joined)];
  const sent = sentAt(joined);
  const shortcode = shortcodes.of(id);
  const expiresOn = expiryOf(joined);
  const reminders = (gift.reminded ?? []).map(plainTime);
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
    reminder_sent: reminders.at(-1) ?? '',
    type: '',
    expiry_date: expiresOn,
    created_at: plainTime(transaction.created_at),
    updated_at: plainTime(transaction.updated_at > gift.updated_at ? transaction.updated_at : gift.updated_at),
    sent_date: sent === undefined ? '' : plainTime(sent),
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
    reminders_sent: reminders,
    is_expired: isExpired(expiresOn, now),
    gift_status,
    status_code,
    status,
    ...(transaction.send_at === undefined || transaction.buyer_id !== user.id ? {} : { send_at: transaction.send_at }),
  };
}

export function redemptionEntity(giftId: string, redemption: RedemptionDocument): object {
  const { id, redeemed, created_at, updated_at, location_id } = redemption;
  return { id, gift_id: giftId, redeemed, creation_at: created_at, updated_at, location_id };
}

/** The message of a gift; `conversation_id` is empty, since there are no conversations (docs/api/gifts.md#message). */
export function messageEntity({ id, gift, transaction, message = '' }: JoinedGift): object {
  const time = plainTime(transaction.created_at);
  return {
    id: gift.message_id,
    created_at: time,
    updated_at: time,
    gift_id: id,
    message,
    conversation_id: '',
    sender_id: transaction.buyer_id,
  };
}

/**
 * The message is for sender, owner and, while the gift has no owner, any caller with its id
 * (docs/api/gifts.md#shown-voucher-and-message). Before payment it is for the sender only: otherwise a declined card
 * would reveal which numbers have users. Staff read messages of others under `/ops`, where it is recorded why.
 */
export function seesMessage({ transaction, owner }: JoinedGift, user: UserDocument): boolean {
  if (transaction.buyer_id === user.id) return true;
  if (isStaff(user)) return false;
  return owner === user.id || (owner === undefined && transaction.payment === 'charged');
}

/**
 * The code is for callers who may redeem the gift by today's catalogue (docs/api/gifts.md#shown-voucher-and-message),
 * and never for staff.
 */
export function seesVoucher({ transaction, owner }: JoinedGift, user: UserDocument, catalogue: Catalogue): boolean {
  if (isStaff(user)) return false;
  return owner === user.id || mayRedeemForMerchant(callerOf({ current: () => catalogue }, transaction, user));
}

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

/** Data of a voucher by its segment's type (docs/api/vouchers.md#voucher-data). */
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

export function voucherV2(giftId: string, voucher: VoucherDocument, segment: Segment): object {
  return {
    voucherType: segment.voucherType,
    segment: segmentEntity(segment),
    expiresAt: voucher.expires_at,
    data: voucherData(voucher, segment.voucherType),
    dateCreated: voucher.created_at,
    dateModified: voucher.updated_at ?? voucher.created_at,
    giftId,
  };
}

export const giftIdsOf = ({ seed, count }: Pick<TransactionDocument, 'seed' | 'count'>): string[] =>
  deriveGiftIds(seed, count).map(({ gift_id }) => gift_id);

export function transactionEntity(id: string, transaction: TransactionDocument, refundedMoney?: RefundedMoney): object {
  return {
    id,
    retail: pounds(transaction.total),
    created_at: plainTime(transaction.created_at),
    updated_at: plainTime(transaction.updated_at),
    gifts: giftIdsOf(transaction),
    purchased_at_date: dateOf(transaction.created_at),
    purchased_at_time: timeOfDay(transaction.created_at),
    status: transactionStatus(transaction, refundedMoney),
    ...(transaction.send_at === undefined ? {} : { send_at: transaction.send_at }),
    ...(transaction.reference_id === undefined ? {} : { reference_id: transaction.reference_id }),
    ...(transaction.replaces === undefined ? {} : { replaces: transaction.replaces }),
  };
}

/** Date and time as `YYYY-MM-DD HH:MM:SS`. */
export const plainTime = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)}`;

const dateOf = (iso: string): string => iso.slice(0, 10);

/** Time of the day as `HH:MM:SS`. */
const timeOfDay = (iso: string): string => iso.slice(11, 19);

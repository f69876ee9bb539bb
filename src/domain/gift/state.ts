import { copyWith } from '../../lib/copyWith.js';
import type { Aggregate, Happened } from '../decider.js';
import type { Block, GiftEvent, GiftIssued, GiftOfPurchase, ReplacementDeclined, VoucherAssigned } from './events.js';

export interface RedemptionState {
  readonly id: string;
  readonly redeemed: boolean;
  readonly merchant_id: string | null;
  readonly location_id: string;
  readonly location_merchant_id: string;
}

export interface IssuedGift {
  readonly status: 'issued' | 'redeemed' | 'cancelled';
  /** Data of the gift's issue, with the present receiver and the present last valid day. */
  readonly issued: GiftIssued['data'];
  /** Time of the last reassignment (ISO 8601); absent: the receiver is that of the purchase. */
  readonly receiverSince?: string;
  readonly claimedBy?: string;
  /** Time of the claim (ISO 8601). */
  readonly claimedAt?: string;
  /** Redemptions in order of time; only the last one counts. */
  readonly redemptions: readonly RedemptionState[];
  /** Command parts of the ids of voided redemptions, which will never be made. */
  readonly voided?: readonly string[];
  readonly voucher?: VoucherAssigned['data'] & { readonly assignedAt: string };
  /** Blocks in force, in order of time, with the data of their events: reading a ticket needs the key store. */
  readonly blockedBy?: readonly Block[];
  readonly refundId?: string;
  /** The gift that support gave in place of this one, which is cancelled as long as no redemption is in force. */
  readonly replacedBy?: GiftOfPurchase;
  /** Declined replacements: the gift is never given up for their purchases. */
  readonly declined?: readonly ReplacementDeclined['data'][];
  /** Time of the last extension (ISO 8601); absent: the gift was never extended. */
  readonly extendedAt?: string;
  /** The last valid days for which `GiftExpiring` and `GiftExpired` were appended. */
  readonly expiryAnnounced?: { readonly expiring?: string; readonly expired?: string };
  /** Data of the last `ReminderDue`. */
  readonly reminded?: { readonly expires_on: string; readonly days: number };
  /** Time at which a scheduled gift was released (ISO 8601); absent: not released yet. */
  readonly releasedAt?: string;
}

export type Gift = { readonly status: 'none' } | IssuedGift;

export const giftAggregate: Aggregate<Gift, GiftEvent> = {
  initial: { status: 'none' },
  evolve(state: Gift, event: Happened<GiftEvent>): Gift {
    if (event.type === 'GiftIssued') return { status: 'issued', issued: event.data, redemptions: [] };
    if (state.status === 'none') return state;
    switch (event.type) {
      case 'GiftReleased':
        return copyWith(state, { releasedAt: event.at });
      case 'GiftClaimed':
        return copyWith(state, { claimedBy: event.data.user_id, claimedAt: event.at });
      case 'GiftRedeemed': {
        const { redemption_id: id, merchant_id, location_id, location_merchant_id } = event.data;
        const redemption = { id, redeemed: true, merchant_id, location_id, location_merchant_id };
        return { ...state, status: 'redeemed', redemptions: [...state.redemptions, redemption] };
      }
      case 'GiftUnredeemed': {
        const redemptions = state.redemptions.map((redemption) =>
          redemption.id === event.data.redemption_id ? { ...redemption, redeemed: false } : redemption,
        );
        return { ...state, status: state.replacedBy === undefined ? 'issued' : 'cancelled', redemptions };
      }
      case 'RedemptionVoided':
        return copyWith(state, { voided: [...(state.voided ?? []), event.data.redemption_id] });
      case 'VoucherAssigned':
        return copyWith(state, { voucher: copyWith(event.data, { assignedAt: event.at }) });
      case 'GiftCancelled':
        return copyWith(state, {
          status: 'cancelled',
          ...(event.data.refund_id === undefined ? {} : { refundId: event.data.refund_id }),
        });
      case 'GiftBlocked':
        return copyWith(state, { blockedBy: [...(state.blockedBy ?? []), event.data] });
      case 'GiftUnblocked':
        return { ...state, blockedBy: (state.blockedBy ?? []).filter(({ cause }) => cause !== event.data.cause) };
      case 'GiftReassigned': {
        const { claimedBy: _, claimedAt: __, ...rest } = state;
        return copyWith(rest, { issued: { ...state.issued, receiver: event.data.receiver }, receiverSince: event.at });
      }
      case 'GiftReplaced':
        return copyWith(state, {
          status: state.status === 'redeemed' ? 'redeemed' : 'cancelled',
          replacedBy: event.data.replaced_by,
        });
      case 'ReplacementDeclined':
        return copyWith(state, { declined: [...(state.declined ?? []), event.data] });
      case 'GiftExtended': {
        const { expires_on, voucher_expires_at } = event.data;
        const extended: IssuedGift = { ...state, issued: { ...state.issued, expires_on }, extendedAt: event.at };
        return state.voucher === undefined || voucher_expires_at === null
          ? extended
          : { ...extended, voucher: { ...state.voucher, expires_at: voucher_expires_at } };
      }
      case 'GiftExpiring':
        return copyWith(state, { expiryAnnounced: { ...state.expiryAnnounced, expiring: event.data.expires_on } });
      case 'GiftExpired':
        return copyWith(state, { expiryAnnounced: { ...state.expiryAnnounced, expired: event.data.expires_on } });
      case 'ReminderDue': {
        const { expires_on, days } = event.data;
        return copyWith(state, { reminded: { expires_on, days } });
      }
      default:
        return (event satisfies never, state);
    }
  },
};

import { copyWith } from '../copyWith.js';
import type { Aggregate, Happened } from '../decider.js';
import type { Block, GiftEvent, GiftIssued, VoucherAssigned } from './events.js';

export interface RedemptionState {
  readonly id: string;
  readonly redeemed: boolean;
  readonly merchant_id: string | null;
}

export interface IssuedGift {
  readonly status: 'issued' | 'redeemed' | 'cancelled';
  /** With the present receiver and last valid day. */
  readonly issued: GiftIssued['data'];
  /** ISO 8601; absent: since the purchase. */
  readonly receiverSince?: string;
  readonly claimedBy?: string;
  /** ISO 8601. */
  readonly claimedAt?: string;
  /** In order of time; only the last one counts. */
  readonly redemptions: readonly RedemptionState[];
  /** Command parts of the ids of redemptions that will never be. */
  readonly voided?: readonly string[];
  readonly voucher?: VoucherAssigned['data'] & { readonly assignedAt: string };
  /** In order of time. As in the events: reading a ticket takes the key store. */
  readonly blockedBy?: readonly Block[];
  readonly refundId?: string;
  /** ISO 8601; absent: never. */
  readonly extendedAt?: string;
  /** The last valid days of which that was said. */
  readonly expiryTold?: { readonly expiring?: string; readonly expired?: string };
  /** The last reminder. */
  readonly reminded?: { readonly expires_on: string; readonly days: number };
  /** Of a scheduled gift: ISO 8601; absent: not yet. */
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
        const redemption = { id: event.data.redemption_id, redeemed: true, merchant_id: event.data.merchant_id };
        return { ...state, status: 'redeemed', redemptions: [...state.redemptions, redemption] };
      }
      case 'GiftUnredeemed': {
        const redemptions = state.redemptions.map((redemption) =>
          redemption.id === event.data.redemption_id ? { ...redemption, redeemed: false } : redemption,
        );
        return { ...state, status: 'issued', redemptions };
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
        const { claimedBy: _, claimedAt: __, ...kept } = state;
        return copyWith(kept, { issued: { ...state.issued, receiver: event.data.receiver }, receiverSince: event.at });
      }
      case 'GiftExtended': {
        const { expires_on, voucher_expires_at } = event.data;
        const extended: IssuedGift = { ...state, issued: { ...state.issued, expires_on }, extendedAt: event.at };
        return state.voucher === undefined || voucher_expires_at === null
          ? extended
          : { ...extended, voucher: { ...state.voucher, expires_at: voucher_expires_at } };
      }
      case 'GiftExpiring':
        return copyWith(state, { expiryTold: { ...state.expiryTold, expiring: event.data.expires_on } });
      case 'GiftExpired':
        return copyWith(state, { expiryTold: { ...state.expiryTold, expired: event.data.expires_on } });
      case 'ReminderDue': {
        const { expires_on, days } = event.data;
        return copyWith(state, { reminded: { expires_on, days } });
      }
      default:
        return (event satisfies never, state);
    }
  },
};

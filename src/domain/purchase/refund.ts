/**
 * Refunds in the transaction's stream. After the request each gift is cancelled in its own stream, then the provider
 * refunds the price. A gift belongs to one open refund at most. Money is pence.
 */
import type { DomainEvent, Happened } from '../decider.js';
import type { GiftCancelled } from '../gift/events.js';
import type { IssuedGift } from '../gift/state.js';
import { isDisputeCause } from '../supportActions.js';

// Events

/** `voided`: the issuer has voided the vouchers' codes, so vouchered gifts are refunded as well. */
export type RefundRequested = DomainEvent<
  'RefundRequested',
  {
    readonly refund_id: string;
    readonly gift_ids: readonly string[];
    readonly voided: boolean;
    readonly reason: string;
  }
>;

/** `disputed`: the card's bank decides about the money. */
export type SkipReason = 'redeemed' | 'code_out' | 'disputed' | 'cancelled';

export type SkippedGifts = Readonly<Partial<Record<SkipReason, readonly string[]>>>;

/**
 * The process that appended this event requests the refund from the provider next. `gift_ids`: none for a charge that
 * bought nothing. Each `attempt` (from 1) has its own idempotency key at the provider, whose life starts at `at`.
 * `cause`: the reason for a refund that support did not request.
 */
export type RefundStarted = DomainEvent<
  'RefundStarted',
  {
    readonly refund_id: string;
    readonly attempt: number;
    readonly gift_ids: readonly string[];
    readonly kept: SkippedGifts;
    readonly amount: number;
    readonly provider: string;
    readonly charge_id: string;
    readonly payment_reference: string;
    readonly cause?: string;
  }
>;

export type GiftsRefunded = DomainEvent<
  'GiftsRefunded',
  {
    readonly refund_id: string;
    readonly attempt: number;
    readonly gift_ids: readonly string[];
    readonly amount: number;
    readonly provider: string;
    readonly refund_ref: string;
  }
>;

/** The provider refused the attempt. The gifts stay cancelled, and a person must act. */
type RefundRefused = DomainEvent<
  'RefundRefused',
  {
    readonly refund_id: string;
    readonly attempt: number;
    readonly amount: number;
    readonly provider: string;
    readonly code: string;
  }
>;

/** The provider accepted the attempt, but could not deliver the money. */
export type RefundFailed = DomainEvent<'RefundFailed', GiftsRefunded['data'] & { readonly code: string }>;

export type NothingRefunded = DomainEvent<
  'NothingRefunded',
  { readonly refund_id: string; readonly kept: SkippedGifts }
>;

export type RefundEvent =
  RefundRequested | RefundStarted | GiftsRefunded | RefundRefused | RefundFailed | NothingRefunded;

// State

export type Refund =
  | { readonly status: 'requested'; readonly requested: RefundRequested['data'] }
  | {
      readonly status: 'started' | 'refused' | 'refunded';
      readonly started: RefundStarted['data'];
      /** Time of the present attempt's first request. */
      readonly startedAt: string;
      readonly ref?: string;
      readonly code?: string;
      /**
       * An external refund was reported since the last event. It may be this one, made by hand, so no attempt follows.
       */
      readonly outside?: true;
    }
  | { readonly status: 'nothing'; readonly kept: SkippedGifts };

/** Refunds by their id, in order of time. */
export type Refunds = ReadonlyMap<string, Refund>;

export function evolveRefunds(refunds: Refunds, event: Happened<RefundEvent>): Refunds {
  const { refund_id } = event.data;
  const now = evolveRefund(refunds.get(refund_id), event);
  return now === undefined ? refunds : new Map(refunds).set(refund_id, now);
}

function evolveRefund(refund: Refund | undefined, event: Happened<RefundEvent>): Refund | undefined {
  switch (event.type) {
    case 'RefundRequested':
      return { status: 'requested', requested: event.data };
    case 'RefundStarted':
      return { status: 'started', started: event.data, startedAt: event.at };
    case 'GiftsRefunded':
      return refund !== undefined && 'started' in refund
        ? { ...refund, status: 'refunded', ref: event.data.refund_ref }
        : refund;
    case 'RefundRefused':
    case 'RefundFailed':
      return refund !== undefined && 'started' in refund
        ? { status: 'refused', started: refund.started, startedAt: refund.startedAt, code: event.data.code }
        : refund;
    case 'NothingRefunded':
      return { status: 'nothing', kept: event.data.kept };
    default:
      return (event satisfies never, refund);
  }
}

/** Marks refused and unanswered refunds of the charge: an external refund may be one of them, made by hand. */
export function evolveOutside(refunds: Refunds, chargeId: string): Refunds {
  const after = new Map(refunds);
  for (const [id, refund] of refunds) {
    if ((refund.status === 'refused' || refund.status === 'started') && refund.started.charge_id === chargeId)
      after.set(id, { ...refund, outside: true });
  }
  return after;
}

export function madeByHand(refund: Refund | undefined): boolean {
  return refund?.status === 'refused' && refund.outside === true;
}

/** Ids of the gifts that refunds hold, without skipped gifts. */
export function giftsInRefunds(refunds: Refunds): Set<string> {
  const held = new Set<string>();
  for (const refund of refunds.values()) {
    if (refund.status === 'nothing') continue;
    for (const id of refund.status === 'requested' ? refund.requested.gift_ids : refund.started.gift_ids) held.add(id);
  }
  return held;
}

/** Sum of our refunds of the charge in pence, unanswered ones included. Refused refunds do not count. */
export function refundedMoney(refunds: Refunds, chargeId: string): number {
  let sum = 0;
  for (const refund of refunds.values())
    if ('started' in refund && refund.status !== 'refused' && refund.started.charge_id === chargeId)
      sum += refund.started.amount;
  return sum;
}

// Decisions

export const lateChargeRefundId = (chargeId: string): string => `late-${chargeId}`;

/** Starts the refund of a charge that bought nothing, once for each charge. */
export function refundLateCharge(
  refunds: Refunds,
  charge: Required<Pick<RefundStarted['data'], 'provider' | 'charge_id' | 'amount' | 'payment_reference' | 'cause'>>,
): RefundStarted[] {
  const refund_id = lateChargeRefundId(charge.charge_id);
  return refunds.has(refund_id)
    ? []
    : [{ type: 'RefundStarted', data: { refund_id, attempt: 1, gift_ids: [], kept: {}, ...charge } }];
}

/**
 * Reason of a gift's cancellation for a refund. The person and their reason are in `RefundRequested`, so that a bulk
 * refund needs no data key of each gift.
 */
const REFUNDED = 'refunded';

/** `already`: this refund has cancelled the gift before. */
type Cancellation = { readonly cancel: GiftCancelled } | { readonly already: true } | { readonly kept: SkipReason };

/**
 * Expired gifts are cancelled, too: support decides whether to refund them.
 * @param disputed the payment is disputed, even if the gift is not blocked for the dispute yet
 */
export function cancelForRefund(
  gift: IssuedGift,
  { refund_id, voided }: Pick<RefundRequested['data'], 'refund_id' | 'voided'>,
  disputed = false,
): Cancellation {
  if (gift.status === 'cancelled') return gift.refundId === refund_id ? { already: true } : { kept: 'cancelled' };
  if (gift.status === 'redeemed') return { kept: 'redeemed' };
  if (disputed || gift.blockedBy?.some(({ cause }) => isDisputeCause(cause)) === true) return { kept: 'disputed' };
  if (gift.voucher !== undefined && !voided) return { kept: 'code_out' };
  return { cancel: { type: 'GiftCancelled', data: { reason: REFUNDED, refund_id } } };
}

export function settleRefund(
  refund: Refund | undefined,
  answer:
    | { readonly outcome: 'refunded'; readonly provider: string; readonly refund_ref: string }
    | { readonly outcome: 'refused'; readonly provider: string; readonly code: string },
): (GiftsRefunded | RefundRefused)[] {
  if (refund?.status !== 'started') return [];
  const { refund_id, attempt, amount, gift_ids } = refund.started;
  const { provider } = answer;
  if (answer.outcome === 'refused')
    return [{ type: 'RefundRefused', data: { refund_id, attempt, amount, provider, code: answer.code } }];
  return [
    { type: 'GiftsRefunded', data: { refund_id, attempt, gift_ids, amount, provider, refund_ref: answer.refund_ref } },
  ];
}

/**
 * Records that the provider could not deliver the money of the present attempt, whose answer may not be recorded yet.
 */
export function failRefund(
  refund: Refund | undefined,
  failed: Pick<RefundFailed['data'], 'attempt' | 'provider' | 'refund_ref' | 'code'>,
): RefundEvent[] {
  if (refund === undefined || !('started' in refund) || refund.started.attempt !== failed.attempt) return [];
  if (refund.status !== 'refunded') return settleRefund(refund, { outcome: 'refused', ...failed });
  const { refund_id, gift_ids, amount } = refund.started;
  return [{ type: 'RefundFailed', data: { refund_id, gift_ids, amount, ...failed } }];
}

/** Starts the next attempt, after one that was refused or certainly never reached the provider. */
export function startAgain(refund: Refund | undefined): RefundStarted[] {
  if (refund === undefined || !('started' in refund) || refund.status === 'refunded') return [];
  return [{ type: 'RefundStarted', data: { ...refund.started, attempt: refund.started.attempt + 1 } }];
}

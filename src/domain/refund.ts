/**
 * Refunds of a purchase: asked for, its gifts cancelled each in its own stream, then exactly their share given back by
 * whoever took the money. They stand in the transaction's stream; each gift belongs to at most one refund that is
 * alive. Money is pence.
 */
import type { DomainEvent, Happened } from './decider.js';
import type { GiftCancelled, IssuedGift } from './gift.js';
import { isDisputeCause } from './supportActions.js';

/**
 * Asked for by support. `gift_ids`: those to be cancelled and paid back, where they are neither redeemed nor vouchered
 * when their turn comes; `voided`: the codes of vouchered ones have been made worthless where they were issued, so
 * these are paid back as well.
 */
export type RefundRequested = DomainEvent<
  'RefundRequested',
  {
    readonly refund_id: string;
    readonly gift_ids: readonly string[];
    readonly voided: boolean;
    readonly reason: string;
  }
>;

/**
 * Why a refund leaves a gift as it is: used; its code is out; its payment is disputed (so the card's bank decides);
 * cancelled for another reason.
 */
export type KeptFor = 'redeemed' | 'code_out' | 'disputed' | 'cancelled';

/** The gifts that a refund has left as they are. */
export type Kept = Readonly<Partial<Record<KeptFor, readonly string[]>>>;

/**
 * The money is about to be asked for; only who wrote this asks. `gift_ids` are cancelled (none: money is given back
 * that bought nothing). `at` of the event is when the attempt's key at the provider began to count; a further `attempt`
 * (from 1) has a key of its own. `amount` is what these gifts cost. `provider`, `charge_id`, `payment_reference`: who
 * took the money, under which name, from what. `cause`: why, where nobody asked for the refund.
 */
export type RefundStarted = DomainEvent<
  'RefundStarted',
  {
    readonly refund_id: string;
    readonly attempt: number;
    readonly gift_ids: readonly string[];
    readonly kept: Kept;
    readonly amount: number;
    readonly provider: string;
    readonly charge_id: string;
    readonly payment_reference: string;
    readonly cause?: string;
  }
>;

/** The provider gives the money back. `refund_ref` is the provider's id of that. */
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

/**
 * The provider will not give it back under this attempt; `code` is the provider's. The gifts stay cancelled: a person
 * must see to it.
 */
export type RefundRefused = DomainEvent<
  'RefundRefused',
  {
    readonly refund_id: string;
    readonly attempt: number;
    readonly amount: number;
    readonly provider: string;
    readonly code: string;
  }
>;

/**
 * The provider had taken the attempt on, and could not deliver it: the money is not the buyer's. `code` is the
 * provider's. The gifts stay cancelled, and a person must see to it, as where it was refused.
 */
export type RefundFailed = DomainEvent<'RefundFailed', GiftsRefunded['data'] & { readonly code: string }>;

/** Not one of the gifts could be cancelled: nothing is given back. */
export type NothingRefunded = DomainEvent<'NothingRefunded', { readonly refund_id: string; readonly kept: Kept }>;

/** Events of a refund. */
export type RefundEvent =
  RefundRequested | RefundStarted | GiftsRefunded | RefundRefused | RefundFailed | NothingRefunded;

/** What is known of one refund. */
export type Refund =
  | { readonly status: 'requested'; readonly asked: RefundRequested['data'] }
  | {
      readonly status: 'started' | 'refused' | 'refunded';
      readonly started: RefundStarted['data'];
      /** When the present attempt was first asked for. */
      readonly startedAt: string;
      /** The provider's id of it, once it is given. */
      readonly ref?: string;
      /** What the provider said when it refused, or could not deliver it. */
      readonly code?: string;
      /**
       * Since its last event somebody gave money of the charge back at the provider itself: that may be this refund, so
       * it is not tried again.
       */
      readonly outside?: true;
    }
  | { readonly status: 'nothing'; readonly kept: Kept };

/** The refunds of a purchase, by id, in order of time. */
export type Refunds = ReadonlyMap<string, Refund>;

/** The fold of all refunds of a purchase. */
export function evolveRefunds(refunds: Refunds, event: Happened<RefundEvent>): Refunds {
  const { refund_id } = event.data;
  const now = evolveRefund(refunds.get(refund_id), event);
  return now === undefined ? refunds : new Map(refunds).set(refund_id, now);
}

function evolveRefund(refund: Refund | undefined, event: Happened<RefundEvent>): Refund | undefined {
  switch (event.type) {
    case 'RefundRequested':
      return { status: 'requested', asked: event.data };
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

/**
 * Money of the charge was given back at the provider and not by us: it may be what a refund that was refused, or never
 * answered, was about.
 */
export function evolveOutside(refunds: Refunds, chargeId: string): Refunds {
  const after = new Map(refunds);
  for (const [id, refund] of refunds) {
    if ((refund.status === 'refused' || refund.status === 'started') && refund.started.charge_id === chargeId)
      after.set(id, { ...refund, outside: true });
  }
  return after;
}

/**
 * Whether money that was given back at the provider counts as this refund's: the provider had refused it before. Its
 * gifts are cancelled already.
 */
export function madeByHand(refund: Refund | undefined): boolean {
  return refund?.status === 'refused' && refund.outside === true;
}

/**
 * The gifts that belong to a refund: asked for, or cancelled by it. Those that it has left as they are belong to none.
 */
export function giftsInRefunds(refunds: Refunds): Set<string> {
  const held = new Set<string>();
  for (const refund of refunds.values()) {
    if (refund.status === 'nothing') continue;
    for (const id of refund.status === 'requested' ? refund.asked.gift_ids : refund.started.gift_ids) held.add(id);
  }
  return held;
}

/**
 * What of a charge has been given back by us or is being given back, pence: never more than was charged. What the
 * provider refused was not: who makes it by hand there has made a refund that is none of ours.
 */
export function givenBack(refunds: Refunds, chargeId: string): number {
  let sum = 0;
  for (const refund of refunds.values())
    if ('started' in refund && refund.status !== 'refused' && refund.started.charge_id === chargeId)
      sum += refund.started.amount;
  return sum;
}

/** The refund of a charge that bought nothing. */
export const lateChargeRefundId = (chargeId: string): string => `late-${chargeId}`;

/** Gives back a charge that bought nothing, once for ever: no event when that has been started. */
export function refundLateCharge(
  refunds: Refunds,
  charge: Required<Pick<RefundStarted['data'], 'provider' | 'charge_id' | 'amount' | 'payment_reference' | 'cause'>>,
): RefundStarted[] {
  const refund_id = lateChargeRefundId(charge.charge_id);
  return refunds.has(refund_id)
    ? []
    : [{ type: 'RefundStarted', data: { refund_id, attempt: 1, gift_ids: [], kept: {}, ...charge } }];
}

/** What a refund does to one gift. `already`: this very refund has cancelled it before. */
export type Cancellation = { readonly cancel: GiftCancelled } | { readonly already: true } | { readonly kept: KeptFor };

/**
 * Cancels a gift for a refund, unless it has been used or its code is out. An expired gift is cancelled like any other:
 * whether its price goes back is for support to judge.
 * @param disputed the purchase's payment is, whether or not the gift has been blocked for it yet
 */
export function cancelForRefund(
  gift: IssuedGift,
  { refund_id, voided, reason }: Pick<RefundRequested['data'], 'refund_id' | 'voided' | 'reason'>,
  disputed = false,
): Cancellation {
  if (gift.status === 'cancelled') return gift.refundId === refund_id ? { already: true } : { kept: 'cancelled' };
  if (gift.status === 'redeemed') return { kept: 'redeemed' };
  if (disputed || gift.blockedBy?.some(isDisputeCause) === true) return { kept: 'disputed' };
  if (gift.voucher !== undefined && !voided) return { kept: 'code_out' };
  return { cancel: { type: 'GiftCancelled', data: { reason, refund_id } } };
}

/** The provider's answer to the present attempt: recorded once; a second one changes nothing. */
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
 * The provider says that it could not deliver an attempt: noted once, for the present attempt, also where its answer
 * has not been recorded yet.
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

/** Another attempt: after the provider refused the one before, or has certainly never been asked for it. */
export function startAgain(refund: Refund | undefined): RefundStarted[] {
  if (refund === undefined || !('started' in refund) || refund.status === 'refunded') return [];
  return [{ type: 'RefundStarted', data: { ...refund.started, attempt: refund.started.attempt + 1 } }];
}

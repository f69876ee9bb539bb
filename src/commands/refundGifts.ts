/**
 * RefundGifts: support asks for gifts of a purchase to be cancelled and paid back. What is asked for stands in the log,
 * and the refund process does it, whatever happens.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fold } from '../domain/decider.js';
import { giftAggregate, giftStream } from '../domain/gift.js';
import { isDisputed } from '../domain/disputes.js';
import { reversalsOf, type Purchase, purchaseAggregate, requestRefund, transactionStream } from '../domain/purchase.js';
import { cancelForRefund, type Kept, type KeptFor, type Refund } from '../domain/refund.js';
import { Refusal, type RefusalCode } from '../domain/refusal.js';
import type { EventStore, Position } from '../ports/eventStore.js';
import { idFrom } from './commandIds.js';
import type { CommandContext } from './context.js';
import { transact } from './transact.js';
import { inParallel } from '../lib/async/inParallel.js';

/** What support asks for. */
export interface RefundOrder {
  readonly transactionId: string;
  /**
   * Ids; absent: every gift of the purchase that belongs to no refund yet. Those that are used or whose code is out are
   * then left as they are.
   */
  readonly giftIds?: readonly string[];
  /** The codes that are out have been made worthless where they were issued: their gifts are paid back as well. */
  readonly voided: boolean;
  readonly reason: string;
}

/** A refund as it stands. Money is pence. */
export interface RefundStanding {
  readonly id: string;
  /**
   * `requested`: gifts are being cancelled; `started`: the money is being given back; `refunded`: it has been;
   * `refused`: the provider will not, a person must see to it; `nothing`: no gift could be cancelled.
   */
  readonly status: Refund['status'];
  /** Those that were cancelled and paid for; while `requested` those asked for. */
  readonly giftIds: readonly string[];
  readonly kept: Kept;
  readonly amount: number;
  readonly provider: string | null;
  /** The provider's id of it. */
  readonly ref: string | null;
  /** Why the provider refuses. */
  readonly code: string | null;
}

/** What became of the order, as far as it was waited for. */
export interface Refunding {
  readonly refund: RefundStanding;
  /** Of the last event seen. */
  readonly position: Position | undefined;
  readonly replayed: boolean;
}

/** Why a named gift can't be refunded. */
const REFUSALS: Readonly<Record<KeptFor, RefusalCode>> = {
  redeemed: 'gift_already_redeemed',
  code_out: 'gift_code_out',
  disputed: 'gift_disputed',
  cancelled: 'gift_already_cancelled',
};

const LOOKED_AT_AT_ONCE = 64;
/** How often the transaction is looked at while its refund is waited for, ms. */
const LOOK_MS = 50;

/**
 * Asks for the refund, and waits for it up to `waitMs`. Gifts that are named must be such that they can be paid back as
 * things stand; whoever changes them meanwhile may still be first, and then they are left as they are.
 * @throws Refusal `transaction_not_found`, `transaction_pending`, `nothing_to_refund`, `gift_not_in_transaction`,
 * `gift_already_refunded`, `gift_already_redeemed`,
 *   `gift_code_out`, `gift_disputed`, `gift_already_cancelled`; UnavailableError
 */
export async function refundGifts(
  events: EventStore,
  context: CommandContext,
  order: RefundOrder,
  wait: { readonly ms: number; readonly signal?: AbortSignal },
): Promise<Refunding> {
  const { transactionId, giftIds, voided, reason } = order;
  const refundId = idFrom(context.commandId, 'refund', 128);
  const stream = transactionStream(transactionId);
  const { replayed } = await transact(events, purchaseAggregate, stream, context, async (state) => {
    if (state.status === 'none') throw new Refusal('transaction_not_found');
    const asked = requestRefund(state, {
      refund_id: refundId,
      voided,
      reason,
      ...(giftIds === undefined ? {} : { gift_ids: giftIds }),
    });
    if (giftIds !== undefined)
      await refuseUnlessCancellable(
        events,
        giftIds,
        { refund_id: refundId, voided, reason },
        isDisputed(reversalsOf(state)),
      );
    return asked;
  });
  return { ...(await outcomeOf(events, transactionId, refundId, wait)), replayed };
}

async function refuseUnlessCancellable(
  events: EventStore,
  giftIds: readonly string[],
  asked: Parameters<typeof cancelForRefund>[1],
  disputed: boolean,
): Promise<void> {
  await inParallel(giftIds, LOOKED_AT_AT_ONCE, async (giftId) => {
    const gift = fold(giftAggregate, await events.read(giftStream(giftId)));
    const decided = gift.status === 'none' ? undefined : cancelForRefund(gift, asked, disputed);
    if (decided !== undefined && 'kept' in decided) throw new Refusal(REFUSALS[decided.kept]);
  });
}

/** Looks at the transaction, reading only what is new, until the refund has ended or the wait has. */
async function outcomeOf(
  events: EventStore,
  transactionId: string,
  refundId: string,
  { ms, signal }: { readonly ms: number; readonly signal?: AbortSignal },
): Promise<Omit<Refunding, 'replayed'>> {
  const deadline = performance.now() + ms;
  let state: Purchase = purchaseAggregate.initial;
  let next = 0;
  let position: Position | undefined;
  for (;;) {
    const news = await events.read(transactionStream(transactionId), { from: next });
    state = fold(purchaseAggregate, news, state);
    next += news.length;
    position = news.at(-1)?.position ?? position;
    const refund = refundsOf(state).find(({ id }) => id === refundId);
    if (refund === undefined) throw new Error('a refund was asked for and is not there');
    if (
      (refund.status !== 'requested' && refund.status !== 'started') ||
      performance.now() >= deadline ||
      signal?.aborted === true
    )
      return { refund, position };
    await sleep(LOOK_MS);
  }
}

/** All refunds of a purchase, in order of time. @throws Refusal `transaction_not_found`; UnavailableError */
export async function listRefunds(events: EventStore, transactionId: string): Promise<RefundStanding[]> {
  const state = fold(purchaseAggregate, await events.read(transactionStream(transactionId)));
  if (state.status === 'none') throw new Refusal('transaction_not_found');
  return refundsOf(state);
}

function refundsOf(state: Purchase): RefundStanding[] {
  return state.status === 'none' ? [] : [...state.refunds].map(([id, refund]) => standingOf(id, refund));
}

function standingOf(id: string, refund: Refund): RefundStanding {
  const none = { id, status: refund.status, giftIds: [], kept: {}, amount: 0, provider: null, ref: null, code: null };
  if (refund.status === 'requested') return { ...none, giftIds: refund.asked.gift_ids };
  if (refund.status === 'nothing') return { ...none, kept: refund.kept };
  const { gift_ids: giftIds, kept, amount, provider } = refund.started;
  return { ...none, giftIds, kept, amount, provider, ref: refund.ref ?? null, code: refund.code ?? null };
}

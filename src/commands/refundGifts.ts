import { fold } from '../domain/decider.js';
import { giftStream } from '../domain/gift/events.js';
import { giftAggregate } from '../domain/gift/state.js';
import { isDisputed } from '../domain/purchase/disputes.js';
import { transactionStream } from '../domain/purchase/events.js';
import { reversalsOf, type Purchase, purchaseAggregate } from '../domain/purchase/state.js';
import { requestRefund } from '../domain/purchase/decisions.js';
import {
  cancelForRefund,
  type SkippedGifts,
  type SkipReason,
  type Refund,
  type RefundRequested,
} from '../domain/purchase/refund.js';
import type { RefusalCode } from '../domain/errors.js';
import { Refusal } from '../domain/refusal.js';
import { sleep, ticks } from '../lib/world.js';
import type { EventStore, Position } from '../ports/eventStore.js';
import { idFrom } from './commandIds.js';
import { type CommandContext, transact } from './transact.js';
import { readPurchase } from './readStreams.js';
import { refuseRepeats } from './refuseRepeats.js';
import { inParallel } from '../lib/async/inParallel.js';

export interface RefundOrder {
  readonly transactionId: string;
  /**
   * Gifts to refund; absent: every gift of the purchase that belongs to no refund, except redeemed gifts and gifts
   * whose code is out.
   */
  readonly giftIds?: readonly string[];
  /** True where the issuer has made issued codes worthless: their gifts are refunded as well. */
  readonly voided: boolean;
  readonly reason: string;
}

/** Money is pence. */
export interface RefundStatus {
  readonly id: string;
  /**
   * `requested`: gifts are being cancelled; `started`: money is being refunded; `refused`: a person must see to it;
   * `nothing`: no gift could be cancelled.
   */
  readonly status: Refund['status'];
  /** Ids of the cancelled gifts; while `requested`, of the requested gifts. */
  readonly giftIds: readonly string[];
  readonly kept: SkippedGifts;
  readonly amount: number;
  readonly provider: string | null;
  readonly ref: string | null;
  /** The provider's code for its refusal. */
  readonly code: string | null;
}

export interface Refunding {
  readonly refund: RefundStatus;
  readonly position: Position | undefined;
  readonly replayed: boolean;
}

const REFUSALS: Readonly<Record<SkipReason, RefusalCode>> = {
  redeemed: 'gift_already_redeemed',
  code_out: 'gift_code_out',
  disputed: 'gift_disputed',
  cancelled: 'gift_already_cancelled',
};

const GIFTS_AT_ONCE = 64;
const POLL_MS = 50;

/**
 * Requests a refund and waits `wait.ms` at most for its outcome. Named gifts must be refundable now; a gift that
 * changes later is skipped.
 * @throws Refusal `transaction_not_found`, `transaction_pending`, `nothing_to_refund`, `gift_not_in_transaction`,
 * `gift_already_refunded`, `gift_already_redeemed`, `gift_code_out`, `gift_disputed`, `gift_already_cancelled`;
 * UnavailableError
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
  const { replayed } = await transact(events, purchaseAggregate, stream, context, async (state, history) => {
    if (state.status === 'none') throw new Refusal('transaction_not_found');
    const requested = requestRefund(state, {
      refund_id: refundId,
      voided,
      reason,
      ...(giftIds === undefined ? {} : { gift_ids: giftIds }),
    });
    refuseRepeats(history, 'supported_too_often', ({ type }) => type === 'NothingRefunded');
    if (giftIds !== undefined)
      await refuseUnlessCancellable(events, giftIds, { refund_id: refundId, voided }, isDisputed(reversalsOf(state)));
    return requested;
  });
  return { ...(await outcomeOf(events, transactionId, refundId, wait)), replayed };
}

async function refuseUnlessCancellable(
  events: EventStore,
  giftIds: readonly string[],
  requested: Parameters<typeof cancelForRefund>[1],
  disputed: boolean,
): Promise<void> {
  await inParallel(giftIds, GIFTS_AT_ONCE, async (giftId) => {
    const why = await whySkipped(events, giftId, requested, disputed);
    if (why !== undefined) throw new Refusal(REFUSALS[why]);
  });
}

async function whySkipped(
  events: EventStore,
  giftId: string,
  requested: Parameters<typeof cancelForRefund>[1],
  disputed: boolean,
): Promise<SkipReason | undefined> {
  const gift = fold(giftAggregate, await events.read(giftStream(giftId)));
  const decided = gift.status === 'none' ? undefined : cancelForRefund(gift, requested, disputed);
  return decided !== undefined && 'kept' in decided ? decided.kept : undefined;
}

/** All gifts of a request, where none of them can be cancelled for it at present. @throws UnavailableError */
export async function skippedNow(
  events: EventStore,
  transactionId: string,
  { gift_ids, ...requested }: Omit<RefundRequested['data'], 'reason'>,
): Promise<SkippedGifts | undefined> {
  const purchase = await readPurchase(events, transactionId);
  const disputed = purchase.status !== 'none' && isDisputed(reversalsOf(purchase));
  const skipped: Partial<Record<SkipReason, string[]>> = {};
  for (let from = 0; from < gift_ids.length; from += GIFTS_AT_ONCE) {
    const some = gift_ids.slice(from, from + GIFTS_AT_ONCE);
    const whys = await Promise.all(some.map((giftId) => whySkipped(events, giftId, requested, disputed)));
    for (const [index, why] of whys.entries()) {
      if (why === undefined) return undefined;
      (skipped[why] ??= []).push(some[index] ?? '');
    }
  }
  return skipped;
}

async function outcomeOf(
  events: EventStore,
  transactionId: string,
  refundId: string,
  { ms, signal }: { readonly ms: number; readonly signal?: AbortSignal },
): Promise<Omit<Refunding, 'replayed'>> {
  const deadline = ticks() + ms;
  let state: Purchase = purchaseAggregate.initial;
  let next = 0;
  let position: Position | undefined;
  for (;;) {
    const added = await events.read(transactionStream(transactionId), { from: next });
    state = fold(purchaseAggregate, added, state);
    next += added.length;
    position = added.at(-1)?.position ?? position;
    const refund = refundsOf(state).find(({ id }) => id === refundId);
    if (refund === undefined) throw new Error('a refund was asked for and is not there');
    if (
      (refund.status !== 'requested' && refund.status !== 'started') ||
      ticks() >= deadline ||
      signal?.aborted === true
    )
      return { refund, position };
    await sleep(POLL_MS);
  }
}

/** Refunds of a purchase, in order of time. @throws Refusal `transaction_not_found`; UnavailableError */
export async function listRefunds(events: EventStore, transactionId: string): Promise<RefundStatus[]> {
  const state = await readPurchase(events, transactionId);
  if (state.status === 'none') throw new Refusal('transaction_not_found');
  return refundsOf(state);
}

function refundsOf(state: Purchase): RefundStatus[] {
  return state.status === 'none' ? [] : [...state.refunds].map(([id, refund]) => statusOf(id, refund));
}

function statusOf(id: string, refund: Refund): RefundStatus {
  const none = { id, status: refund.status, giftIds: [], kept: {}, amount: 0, provider: null, ref: null, code: null };
  if (refund.status === 'requested') return { ...none, giftIds: refund.requested.gift_ids };
  if (refund.status === 'nothing') return { ...none, kept: refund.kept };
  const { gift_ids: giftIds, kept, amount, provider } = refund.started;
  return { ...none, giftIds, kept, amount, provider, ref: refund.ref ?? null, code: refund.code ?? null };
}

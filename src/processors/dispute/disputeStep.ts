/** Answers one dispute, or a transaction's external refunds. Safe to repeat at any point. */
import { fold } from '../../domain/decider.js';
import { block, disputeCause, unblock } from '../../domain/supportActions.js';
import {
  type Dispute,
  fallsShort,
  type ReversalEvent,
  type ReversalStep,
  reversalSteps,
  PROVIDER_REFUND_KEY,
  type ProviderRefundSettled,
  settleDispute,
  settleProviderRefund,
} from '../../domain/purchase/disputes.js';
import { pounds } from '../../domain/money.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { reversalsOf, type MadePurchase, type Purchase, purchaseAggregate } from '../../domain/purchase/state.js';
import { ConflictError, type EventStore } from '../../ports/eventStore.js';
import type { GiftOfPurchase } from '../../domain/gift/events.js';
import {
  changeGifts,
  type GiftChangeDeps,
  AT_ONCE,
  changeGift,
  type VisitedGift,
  visitGifts,
} from '../purchase/giftChanges.js';
import { asksFor } from './state.js';
import { type Cause, causeOf, GiveUpError, NotYetError, RACES, type StepDeps } from '../runner/index.js';
import type { IssuedGift } from '../../domain/gift/state.js';
import { cancel } from '../../domain/gift/decisions.js';
import { madeByHand } from '../../domain/purchase/refund.js';
import { inParallel } from '../../lib/async/inParallel.js';
import { readPurchase } from '../../commands/readStreams.js';

interface ReversalStatus {
  readonly purchase: MadePurchase;
  readonly settled: ProviderRefundSettled['data'] | undefined;
  readonly requested: Cause;
  readonly revision: number;
}

/** Milliseconds to wait for the charge: the provider may report a dispute or refund moments before it. */
const UNPAID_MS = 1_000;

/**
 * Does the step with this key if it is due. `shortfall`: money without unredeemed gifts, to be parked. `retried`:
 * support's retry; more gifts may be cancellable by now. @throws GiveUpError with the cause to park; NotYetError; any
 * other error is to be retried
 */
export async function settleReversal(
  deps: GiftChangeDeps,
  transactionId: string,
  key: string,
  shortfall: ProviderRefundSettled['data'] | undefined,
  retried: Cause | undefined,
): Promise<void> {
  // What is missing of an external refund parks no dispute.
  let short = key === PROVIDER_REFUND_KEY ? shortfall : undefined;
  for (let race = 0; race < RACES; race++) {
    const at = await read(deps.events, transactionId, key);
    const step = reversalSteps(reversalsOf(at.purchase)).find((one) => one.key === key);
    const before = retried !== undefined && key === PROVIDER_REFUND_KEY ? at.settled : undefined;
    const cause =
      step === undefined && retried !== undefined
        ? { ...retried, correlationId: at.requested.correlationId }
        : at.requested;
    const event = step === undefined ? await answerAgain(deps, at, cause, before) : await answerTo(deps, at, step);
    if (event === undefined) {
      if (step !== undefined) continue;
      if (before !== undefined && fallsShort(before)) short = before;
      if (short !== undefined) throw new GiveUpError(shortfallCause(short));
      return;
    }
    const reason = { commandId: `late-money-${transactionId}-${key}`, cause };
    const appended = await deps.writer.append(transactionStream(transactionId), event, at.revision, reason);
    if (appended !== undefined && event.type === 'ProviderRefundSettled')
      short = fallsShort(event.data) ? event.data : undefined;
  }
  throw new ConflictError(transactionStream(transactionId), 'any', -1);
}

async function read(events: EventStore, transactionId: string, key: string): Promise<ReversalStatus> {
  const history = await events.read(transactionStream(transactionId));
  const last = history.at(-1);
  const purchase: Purchase = fold(purchaseAggregate, history);
  if (last === undefined || purchase.status === 'none')
    throw new Error('a dispute or an external refund of a transaction that is not there');
  const settled = history.findLast((event) => event.type === 'ProviderRefundSettled')?.data as
    ProviderRefundSettled['data'] | undefined;
  return {
    purchase,
    settled,
    requested: causeOf(history.findLast((event) => asksFor(event, key)) ?? last),
    revision: last.revision,
  };
}

async function answerTo(
  deps: GiftChangeDeps,
  at: ReversalStatus,
  step: ReversalStep,
): Promise<ReversalEvent | undefined> {
  deps.mayAct();
  if (at.purchase.status === 'pending')
    throw new NotYetError('the charge has not been recorded yet', UNPAID_MS, { mayNeverCome: true });
  switch (step.step) {
    case 'settle dispute':
      return answerDispute(deps, at, step.dispute);
    case 'settle provider refund': {
      const [settled] = settleProviderRefund(
        reversalsOf(at.purchase),
        await cancelForProviderRefund(deps, at.purchase, at.requested, step.total),
      );
      return settled;
    }
    default:
      return step satisfies never;
  }
}

/** Settles a provider refund again for a retry. @returns `undefined`: no further gift could be cancelled */
async function answerAgain(
  deps: GiftChangeDeps,
  { purchase }: ReversalStatus,
  cause: Cause,
  before: ProviderRefundSettled['data'] | undefined,
): Promise<ProviderRefundSettled | undefined> {
  if (before === undefined || before.difference === 0) return undefined;
  deps.mayAct();
  const data = await cancelForProviderRefund(deps, purchase, cause, before.total);
  return data.cancelled > before.cancelled ? { type: 'ProviderRefundSettled', data } : undefined;
}

async function answerDispute(
  deps: GiftChangeDeps,
  { purchase, requested }: ReversalStatus,
  { dispute_id, status, reason }: Dispute,
): Promise<ReversalEvent | undefined> {
  const blocked = status !== 'won';
  const cause = disputeCause(dispute_id);
  const why = { cause, reason: blocked ? `the payment is disputed: ${reason}` : 'the dispute was won' };
  const decide = (gift: Parameters<typeof block>[0]) =>
    blocked ? block(gift, { payment: 'charged' }, why) : unblock(gift, why);
  const reasons = { commandId: `${cause}-${blocked ? 'block' : 'free'}`, cause: requested };
  let gifts = 0;
  if (purchase.status === 'charged') {
    const replacements: GiftOfPurchase[] = [];
    await changeGifts(deps, purchase, reasons, decide, ({ before }) => {
      if (before.replacedBy !== undefined) replacements.push(before.replacedBy);
      else if (blocked && before.status !== 'cancelled') gifts++;
    });
    for (const replacement of replacements)
      await changeGifts(deps, await purchaseOf(deps, replacement), reasons, decide, ({ before }) => {
        if (blocked && before.status !== 'cancelled') gifts++;
      });
  }
  return settleDispute(reversalsOf(purchase), { dispute_id, blocked, gifts })[0];
}

function shortfallCause({ total, cancelled, vouchered, difference }: ProviderRefundSettled['data']): string {
  const codes = vouchered === 0 ? '' : `; the codes of ${vouchered} of them are out`;
  const rest = difference === 0 ? '' : `; £${pounds(difference)} of it no unredeemed gift makes up for`;
  return `£${pounds(total)} was given back at the provider; ${cancelled} gifts are cancelled for it${codes}${rest}`;
}

/** Gifts cancelled with this cause count as done, so a repeat of the step cancels no more. */
const CAUSE = { reason: 'refunded at the provider', refund_id: PROVIDER_REFUND_KEY };

/**
 * Cancels as many unredeemed gifts as the external refunds had paid for. First come gifts of refunds that the provider
 * refused: they are cancelled already, and the refund was made by hand. Then gifts without a voucher code, the last of
 * the purchase first. A replacement counts in place of its gift.
 * @param total all external refunds, pence
 * @throws UnavailableError; ConflictError
 */
async function cancelForProviderRefund(
  deps: GiftChangeDeps,
  purchase: MadePurchase,
  requested: Cause,
  total: number,
): Promise<ProviderRefundSettled['data']> {
  if (purchase.status === 'declined') return { total, cancelled: 0, vouchered: 0, difference: 0 };
  const price = purchase.purchase.sale_price;
  const required = price > 0 ? Math.floor(total / price) : 0;
  const candidates: VisitedGift[] = [];
  let cancelled = 0;
  let vouchered = 0;
  const count = ({ voucher }: IssuedGift): void => {
    cancelled++;
    if (voucher !== undefined) vouchered++;
  };
  let byHand = 0;
  const visit = async (found: VisitedGift): Promise<void> => {
    const { refundId, status, replacedBy } = found.gift;
    if (replacedBy !== undefined) await visitGifts(deps, await purchaseOf(deps, replacedBy), visit);
    else if (refundId === CAUSE.refund_id) count(found.gift);
    else if (refundId !== undefined && madeByHand(purchase.refunds.get(refundId))) byHand++;
    else if (status === 'issued') candidates.push(found);
  };
  await visitGifts(deps, purchase, visit);
  cancelled += Math.min(byHand, Math.max(0, required - cancelled));
  candidates.sort(
    (one, other) =>
      Number(one.gift.voucher !== undefined) - Number(other.gift.voucher !== undefined) ||
      other.gift.issued.index - one.gift.issued.index,
  );

  const reason = { commandId: `provider-refund-${purchase.purchase.transaction_id}`, cause: requested };
  // A gift that is redeemed concurrently is replaced by the next one.
  for (let from = 0; cancelled < required && from < candidates.length;) {
    const next = candidates.slice(from, from + required - cancelled);
    from += next.length;
    await inParallel(next, AT_ONCE, async (found) => {
      const { before, changed } = await changeGift(deps, found, reason, (gift) => cancel(gift, CAUSE));
      if (changed) count(before);
    });
  }
  return { total, cancelled, vouchered, difference: Math.max(0, total - cancelled * price) };
}

/** Milliseconds to wait for the purchase process, which issues a replacement as soon as its gift is exchanged. */
const UNISSUED_MS = 1_000;

/**
 * The purchase of the gift that replaces a disputed or refunded one: what happens to the money concerns the gift that
 * can be used. @throws NotYetError; UnavailableError
 */
async function purchaseOf(
  { events }: Pick<StepDeps, 'events'>,
  { transaction_id }: GiftOfPurchase,
): Promise<MadePurchase> {
  const purchase = await readPurchase(events, transaction_id);
  if (purchase.status === 'none') throw new Error('a gift names a replacement that was never made');
  if (purchase.status === 'pending')
    throw new NotYetError('the replacement has not been issued yet', UNISSUED_MS, { mayNeverCome: true });
  return purchase;
}

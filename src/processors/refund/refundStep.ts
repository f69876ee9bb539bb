/** Refunds gifts of one purchase. Safe to repeat at any point and in parallel. */
import { inParallel } from '../../lib/async/inParallel.js';
import { fold } from '../../domain/decider.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { isDisputed, noteProviderRefund, type RefundedAtProvider } from '../../domain/purchase/disputes.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { reversalsOf, type MadePurchase, purchaseAggregate } from '../../domain/purchase/state.js';
import { issueGift, leftOfCharge, startRefund } from '../../domain/purchase/decisions.js';
import {
  cancelForRefund,
  type SkippedGifts,
  type SkipReason,
  type Refund,
  type RefundRequested,
  type RefundStarted,
  settleRefund,
  startAgain,
} from '../../domain/purchase/refund.js';
import { ConflictError, type RecordedEvent } from '../../ports/eventStore.js';
import {
  type RefundRequest,
  PAYMENT_REQUESTS,
  type RefundLookupReply,
  type RefundReply,
} from '../../messages/payments.js';
import type { Retry } from './state.js';
import { changeGift, type PaidGift } from '../purchase/giftChanges.js';
import { causeOf, GiveUpError, type Reason, type StepDeps, askWorker } from '../runner/index.js';
import { NO_REFUND } from '../../commands/paymentAction.js';
import type { WalletPayments } from '../purchase/walletPayments.js';

export interface RefundDeps extends RefundMoneyDeps, Pick<StepDeps, 'events' | 'writer'> {}

const GIFTS_AT_ONCE = 64;
const MOVES = 16;

/**
 * `retried`: support's retry, which tries a refused refund once more, with that person as the cause. @throws
 * GiveUpError when the provider refuses; any other error is to be retried
 */
export async function refund(
  deps: RefundDeps,
  transactionId: string,
  refundId: string,
  retried?: Retry,
): Promise<void> {
  const { events, writer } = deps;
  const stream = transactionStream(transactionId);
  const commandId = `refund-${refundId}`;
  /** Whether this process started the present attempt and has not requested it yet. */
  let fresh = false;
  /**
   * Whether the attempt after this event is certainly new. A log that was lost may have made an older one, under a key
   * that the provider has forgotten.
   */
  const isNew = ({ at }: RecordedEvent): boolean => deps.now() - Date.parse(at) < deps.retryPolicy.askAgainMs;

  for (let move = 0; move < MOVES; move++) {
    const history = await events.read(stream);
    const state = fold(purchaseAggregate, history);
    const last = history.at(-1);
    const own = history.findLast(({ data }) => 'refund_id' in data && data.refund_id === refundId);
    const known = state.status === 'none' ? undefined : state.refunds.get(refundId);
    if (state.status === 'none' || last === undefined || own === undefined || known === undefined)
      throw new GiveUpError('the refund was never asked for');
    const reason: Reason = { commandId, cause: causeOf(own) };

    switch (known.status) {
      case 'nothing':
      case 'refunded':
        return;
      case 'requested': {
        const { cancelled, kept } = await cancelGifts(deps, state, known.requested, reason);
        const [started] = startRefund(state, refundId, cancelled, kept);
        if (started === undefined) throw new GiveUpError('the purchase was never charged');
        // Money that was refunded in another way can't be refunded twice.
        if (started.type === 'RefundStarted' && started.data.amount > leftOfCharge(state)) {
          throw new GiveUpError(
            `the gifts are cancelled, but their ${started.data.amount} pence are more than the ${leftOfCharge(state)} pence left of the charge`,
          );
        }
        fresh = (await writer.append(stream, started, last.revision, reason)) !== undefined && isNew(own);
        break;
      }
      case 'refused': {
        if (retried === undefined || own.position > retried.at) {
          if (known.code === BY_HAND) throw maybeByHand(known.started);
          throw new GiveUpError(`${known.started.provider} refuses the refund: ${known.code ?? 'no reason given'}`);
        }
        // The provider's webhook about a refund made by hand may not have arrived yet.
        if (known.outside === true || (await wasMadeConcurrently(deps, requestOf(transactionId, known))))
          throw maybeByHand(known.started);
        const byPerson: Reason = { commandId, cause: { ...retried.cause, correlationId: reason.cause.correlationId } };
        for (const event of startAgain(known))
          fresh = (await writer.append(stream, event, last.revision, byPerson)) !== undefined && isNew(own);
        break;
      }
      case 'started': {
        const request = requestOf(transactionId, known);
        const reply = await refundMoney(deps, request, fresh, reason);
        fresh = false;
        if (reply.outcome === 'by hand' || (reply.outcome === 'never' && known.outside === true)) {
          const [first, ...more] = await refundedOutside(deps, state, request);
          const { provider } = known.started;
          const [refused] = settleRefund(known, { outcome: 'refused', provider, code: BY_HAND });
          // Without new money the refund stays as it is, since its end would hide what was reported before.
          if (first !== undefined && refused !== undefined) {
            if ((await writer.append(stream, [refused, first, ...more], last.revision, reason)) === undefined) break;
          }
          throw maybeByHand(known.started);
        }
        if (reply.outcome === 'never') {
          // A log that was lost may have made the next attempt, too, so that attempt is not `fresh`.
          for (const event of startAgain(known)) await writer.append(stream, event, last.revision, reason);
        } else {
          const outside = reply.outcome === 'refused' ? await refundedOutside(deps, state, request) : [];
          for (const event of settleRefund(known, reply))
            await writer.append(stream, [event, ...outside], last.revision, { ...reason, simulated: reply.simulated });
        }
        break;
      }
      default:
        known satisfies never;
    }
  }
  throw new ConflictError(stream, 'any', -1);
}

/** Code of a refund that was certainly not made, while money of its charge was refunded at the provider. */
const BY_HAND = 'refunded_by_hand';

/**
 * External refunds of the purchase's charge that no report has told: while our refund was unanswered, reports counted
 * its amount as ours. @throws Error to be retried
 */
async function refundedOutside(
  deps: RefundDeps,
  state: MadePurchase,
  request: RefundRequest,
): Promise<RefundedAtProvider[]> {
  const { provider, charge_id } = request;
  if (state.charge?.charge_id !== charge_id) return [];
  const total = await refundedByOthers(deps, request);
  return noteProviderRefund(reversalsOf(state), { provider, charge_id, total, ours: 0 });
}

function requestOf(transactionId: string, { started, startedAt }: Extract<Refund, { started: object }>): RefundRequest {
  const { refund_id, attempt, amount, provider, charge_id, payment_reference } = started;
  return {
    refund_id,
    attempt,
    transaction_id: transactionId,
    amount,
    provider,
    charge_id,
    payment_reference,
    started_at: startedAt,
  };
}

/** A double refund is worse than a late one: only a person can see whether the money at the provider is this refund. */
function maybeByHand({ provider, amount }: RefundStarted['data']): GiveUpError {
  return new GiveUpError(
    `money was given back at ${provider} itself since this refund of ${amount} pence was last asked for: it may be this one, so it is not asked for again. ` +
      `Look it up there; where it was not made, make it by hand there; then discard this`,
  );
}

/** Cancels a refund's gifts; those that it cancelled in an earlier run count as cancelled, too. */
async function cancelGifts(
  deps: RefundDeps,
  state: MadePurchase,
  requested: RefundRequested['data'],
  reason: Reason,
): Promise<{ cancelled: string[]; kept: SkippedGifts }> {
  const { purchase, purchasedAt } = state;
  const disputed = isDisputed(reversalsOf(state));
  const ids = deriveGiftIds(purchase.seed, purchase.receivers.length);
  const indexes = new Map(ids.map(({ gift_id }, index) => [gift_id, index]));
  const outcomes = new Map<string, SkipReason | 'cancelled by this'>();
  await inParallel(requested.gift_ids, GIFTS_AT_ONCE, async (giftId) => {
    const index = indexes.get(giftId) ?? -1;
    const own = ids[index];
    if (own === undefined) throw new GiveUpError(`gift ${giftId} is none of this purchase`);
    const gift = { giftId, issue: issueGift(purchase, purchasedAt, index, own) };
    outcomes.set(giftId, await cancelGift(deps, gift, requested, disputed, reason));
  });
  const cancelled: string[] = [];
  const kept: Partial<Record<SkipReason, string[]>> = {};
  for (const giftId of requested.gift_ids) {
    const outcome = outcomes.get(giftId);
    if (outcome === 'cancelled by this') cancelled.push(giftId);
    else if (outcome !== undefined) (kept[outcome] ??= []).push(giftId);
  }
  return { cancelled, kept };
}

/** Cancels one gift. Among this, a redemption and a voucher, the first to append at the gift's revision wins. */
async function cancelGift(
  deps: RefundDeps,
  gift: PaidGift,
  requested: RefundRequested['data'],
  disputed: boolean,
  reason: Reason,
): Promise<SkipReason | 'cancelled by this'> {
  let kept: SkipReason | undefined;
  await changeGift(deps, gift, { ...reason, commandId: `${reason.commandId}-${gift.giftId}` }, (found) => {
    // After a takeover, another process may have refunded the other gifts' share without this gift.
    deps.mayAct();
    const decided = cancelForRefund(found, requested, disputed);
    kept = 'kept' in decided ? decided.kept : undefined;
    return 'cancel' in decided ? [decided.cancel] : [];
  });
  return kept ?? 'cancelled by this';
}

/** Refunds money once per attempt, however often it is requested. */
export interface RefundMoneyDeps extends Pick<StepDeps, 'bus' | 'now' | 'mayAct'> {
  readonly wallets: WalletPayments;
  readonly retryPolicy: Pick<StepDeps['retryPolicy'], 'answerMs' | 'askAgainMs'>;
}

/**
 * The refund is requested of a card's provider under the attempt's key for 20 h from `started_at`; later it is only
 * looked up. `never`: it was certainly not made, so a new attempt is safe. `by hand`: it was not made, but money was
 * refunded at the provider since, perhaps in its place. @param fresh whether this attempt was never requested before
 * @throws Error to be retried
 */
export async function refundMoney(
  deps: RefundMoneyDeps,
  request: RefundRequest,
  fresh: boolean,
  reason: Reason,
): Promise<RefundReply | { readonly outcome: 'never' } | { readonly outcome: 'by hand' }> {
  const { provider, refund_id, transaction_id, amount, payment_reference, started_at } = request;
  const given = (refund_ref: string): RefundReply => ({ outcome: 'refunded', provider, refund_ref, simulated: false });
  if (amount === 0) return given(`free-${refund_id}`);
  // The provider of the charge decides, since the payment method may have been changed.
  if (provider === 'invoice') return given(`invoice-${refund_id}`);
  deps.mayAct();
  if (provider === 'wallet') {
    const decided = await deps.wallets.refund(payment_reference, transaction_id, amount, refund_id, reason);
    return decided === 'credited'
      ? given(`wallet-${refund_id}`)
      : { outcome: 'refused', provider, code: 'more_than_was_debited', simulated: false };
  }
  const late = deps.now() - Date.parse(started_at) >= deps.retryPolicy.askAgainMs;
  if (late || !fresh) {
    const found = await lookUp(deps, request);
    if (found.outcome !== 'never') return found;
    if ((found.others ?? 0) > 0) return { outcome: 'by hand' };
    if (late) return found;
  }
  return askWorker(deps, PAYMENT_REQUESTS.refund, request);
}

/**
 * Whether money of the charge was refunded since a refused attempt, perhaps in its place. @throws Error to be retried
 */
export async function wasMadeConcurrently(deps: RefundMoneyDeps, request: RefundRequest): Promise<boolean> {
  if (!hasLedger(request)) return false;
  // The provider may list the refused attempt itself; under the next attempt's number it counts among the others.
  const found = await lookUp(deps, { ...request, attempt: request.attempt + 1 });
  return found.outcome === 'refunded' || (found.outcome === 'never' && (found.others ?? 0) > 0);
}

/** Sum of the charge's external refunds, of all time, in pence. @throws Error to be retried */
async function refundedByOthers(deps: RefundMoneyDeps, request: RefundRequest): Promise<number> {
  if (!hasLedger(request)) return 0;
  const found = await lookUp(deps, { ...request, ...NO_REFUND });
  return found.outcome === 'never' ? (found.others ?? 0) : 0;
}

const hasLedger = ({ provider }: RefundRequest): boolean => provider !== 'wallet' && provider !== 'invoice';

async function lookUp(
  deps: RefundMoneyDeps,
  { refund_id, attempt, provider, charge_id, started_at }: RefundRequest,
): Promise<RefundLookupReply> {
  return askWorker(deps, PAYMENT_REQUESTS.lookUpRefund, { refund_id, attempt, provider, charge_id, started_at });
}

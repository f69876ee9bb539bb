/** Charges one purchase. Safe to repeat at any point. */
import { CLOCK_SLACK_MS } from '../../lib/clock.js';
import type { PaymentMethod } from '../../domain/account.js';
import { copyWith } from '../../lib/copyWith.js';
import { fold } from '../../domain/decider.js';
import { type PaymentCharged, type PaymentDeclined, transactionStream } from '../../domain/purchase/events.js';
import {
  type Authentication,
  type MadePurchase,
  type Purchase,
  purchaseAggregate,
} from '../../domain/purchase/state.js';
import { requireAuthentication, settleCharge, startCharge } from '../../domain/purchase/decisions.js';
import { ConflictError, type EventStore } from '../../ports/eventStore.js';
import {
  type AuthenticationReply,
  type ChargeReply,
  type ChargeRequest,
  PAYMENT_REQUESTS,
} from '../../messages/payments.js';
import { exchange } from './exchangeStep.js';
import type { PurchaseWork } from './state.js';
import {
  askWorker,
  type Cause,
  causeOf,
  GiveUpError,
  NotYetError,
  RACES,
  type Reason,
  type StepDeps,
} from '../runner/index.js';
import type { WalletPayments } from './walletPayments.js';

export interface ChargeDeps extends Pick<StepDeps, 'events' | 'bus' | 'writer' | 'now' | 'retryPolicy' | 'mayAct'> {
  readonly wallets: WalletPayments;
  /** @throws UnavailableError */
  readonly paymentMethod: (
    reference: string,
    buyerId: string,
  ) => Promise<Pick<PaymentMethod, 'kind' | 'prepaid' | 'customer'> | undefined>;
}

interface ChargeStatus {
  readonly state: Purchase;
  readonly last: Cause | undefined;
}

/**
 * `fresh`: no earlier attempt is known, so the stream need not be read first. @throws GiveUpError when the outcome
 * can't be found out; NotYetError while the charge waits for its buyer; any other error is to be retried
 */
export async function charge(deps: ChargeDeps, work: PurchaseWork, fresh: boolean): Promise<void> {
  const { writer } = deps;
  const id = work.purchase.transaction_id;
  const stream = transactionStream(id);
  const commandId = `charge-${id}`;
  let method: Method | undefined;
  let answer: ChargeReply | AuthenticationReply | undefined;
  let at: ChargeStatus = fresh
    ? {
        state: { status: 'pending', purchase: work.purchase, purchasedAt: work.purchasedAt, refunds: new Map() },
        last: work.last,
      }
    : await read(deps.events, stream);

  for (let race = 0; race < RACES; race++) {
    const { state, last } = at;
    if (state.status !== 'pending' || last === undefined) return;
    if (state.purchase.replaces !== undefined) {
      const event = await exchange(deps, state.purchase, { commandId, cause: last });
      if ((await writer.append(stream, event, last.revision, { commandId, cause: last })) !== undefined) return;
      at = await read(deps.events, stream);
      continue;
    }
    if (state.chargeStartedAt === undefined) {
      method ??= await methodOf(deps, state);
      const { kind, prepaid } = method;
      const [start] = startCharge(state, { kind, prepaid });
      const started =
        start === undefined ? undefined : await writer.append(stream, start, last.revision, { commandId, cause: last });
      at =
        started === undefined
          ? await read(deps.events, stream)
          : { state: copyWith(state, { chargeStartedAt: started.at, chargeBy: { kind, prepaid } }), last: started };
      continue;
    }
    deps.mayAct();
    if (answer?.outcome === 'authentication' && state.authentication !== undefined)
      throw notYet(deps, state.authentication);
    answer ??=
      state.authentication === undefined
        ? await ask(deps, state, state.chargeStartedAt, method, { commandId, cause: last })
        : await askForBuyer(deps, id, state.authentication);
    if (answer.outcome === 'authentication') {
      const { provider, payment_id, action, simulated } = answer;
      const until = new Date(deps.now() + deps.retryPolicy.authenticationMs).toISOString();
      for (const required of requireAuthentication(state, { provider, payment_id, action, until }))
        await writer.append(stream, required, last.revision, { commandId, cause: last, simulated });
      at = await read(deps.events, stream);
      continue;
    }
    refuseOtherAmount(answer, state.purchase.total);
    const [settled] = settleCharge(state, eventOf(answer, state.purchase.total));
    if (
      settled === undefined ||
      (await writer.append(stream, settled, last.revision, { commandId, cause: last, simulated: answer.simulated })) !==
        undefined
    )
      return;
    at = await read(deps.events, stream);
  }
  throw new ConflictError(stream, 'any', -1);
}

async function read(events: EventStore, stream: string): Promise<ChargeStatus> {
  const history = await events.read(stream);
  const last = history.at(-1);
  return { state: fold(purchaseAggregate, history), last: last === undefined ? undefined : causeOf(last) };
}

type Method = Pick<PaymentMethod, 'kind' | 'prepaid' | 'customer'>;

async function methodOf({ paymentMethod }: ChargeDeps, { purchase }: MadePurchase): Promise<Method> {
  const method = await paymentMethod(purchase.payment_reference, purchase.buyer_id);
  if (method === undefined) throw new Error('the payment method is unknown');
  return method;
}

/**
 * Requests the charge of the wallet or the card's provider; a wallet settled by invoice needs no request. A repeat
 * sends the first request again: the payment method may have changed since, and its money may have been taken.
 */
async function ask(
  deps: ChargeDeps,
  state: MadePurchase,
  started_at: string,
  seen: Method | undefined,
  reason: Reason,
): Promise<ChargeReply | AuthenticationReply> {
  const {
    purchase: { transaction_id, total, payment_reference },
    purchasedAt,
    chargeBy,
  } = state;
  const method = async (): Promise<Method> => seen ?? methodOf(deps, state);
  const { kind, prepaid } = chargeBy ?? (await method());
  if (kind === 'wallet' && !prepaid)
    return { outcome: 'charged', provider: 'invoice', charge_id: `invoice-${transaction_id}`, simulated: false };
  if (kind === 'wallet') {
    const decided = await deps.wallets.pay(payment_reference, transaction_id, total, reason);
    if (decided === 'refused')
      return { outcome: 'declined', provider: 'wallet', code: 'insufficient_funds', simulated: false };
    return { outcome: 'charged', provider: 'wallet', charge_id: `wallet-${transaction_id}`, simulated: false };
  }

  // The first request is in the future by this clock: it was set back and doesn't tell the request's age. A charge
  // that the provider has forgotten would be made twice.
  const setBack = total > 0 && Date.parse(started_at) - deps.now() > CLOCK_SLACK_MS;
  const lookUp = () => askWorker(deps, PAYMENT_REQUESTS.lookUpCharge, { transaction_id, payment_id: null });
  // No provider has a record of a free purchase, so it may be requested twice.
  if (!setBack && (total === 0 || deps.now() - Date.parse(started_at) < deps.retryPolicy.askAgainMs)) {
    // A lost log may have charged the purchase when it was bought, under a key that the provider has forgotten.
    if (total > 0 && deps.now() - Date.parse(purchasedAt) >= deps.retryPolicy.askAgainMs) {
      const before = await lookUp();
      if (before.outcome !== 'unknown') return before;
    }
    const request: ChargeRequest = {
      transaction_id,
      amount: total,
      payment_reference,
      customer: (await method()).customer,
      started_at,
    };
    return askWorker(deps, PAYMENT_REQUESTS.charge, request);
  }
  const found = await lookUp();
  if (found.outcome === 'unknown' && setBack)
    throw new NotYetError('by the clock the charge has not been asked for yet', deps.retryPolicy.retryAtMostMs, {
      mayNeverCome: true,
    });
  if (found.outcome === 'unknown')
    throw new GiveUpError(
      'the provider does not know what became of the charge, and it is too late to ask for it again',
    );
  return found;
}

/** Stripe's code for a buyer who did not authenticate. */
const NOT_AUTHENTICATED = 'authentication_required';

/**
 * Once the time is over or the buyer has failed, the payment is first cancelled at the provider, so that it can't
 * succeed later. @throws NotYetError while it waits
 */
async function askForBuyer(
  deps: ChargeDeps,
  transaction_id: string,
  authentication: Authentication,
): Promise<ChargeReply> {
  const { payment_id, failed } = authentication;
  if (failed !== undefined || isOver(deps, authentication)) {
    const cancellation = { transaction_id, payment_id, code: failed ?? NOT_AUTHENTICATED };
    return askWorker(deps, PAYMENT_REQUESTS.cancelCharge, cancellation);
  }
  const found = await askWorker(deps, PAYMENT_REQUESTS.lookUpCharge, { transaction_id, payment_id });
  if (found.outcome === 'unknown' || found.outcome === 'authentication') throw notYet(deps, authentication);
  return found;
}

/** Whether the buyer's time is over; also true after the clock was set back: more than twice that time is left then. */
function isOver({ now }: ChargeDeps, { required, until }: Authentication): boolean {
  const end = Date.parse(until);
  const left = end - now();
  return left <= 0 || left > 2 * (end - Date.parse(required)) + CLOCK_SLACK_MS;
}

/** The pause until the next poll: `pollMs`, tripled each time, until the buyer's time is over. */
function notYet(
  { now, retryPolicy: { pollMs } }: ChargeDeps,
  { required, until, failed }: Authentication,
): NotYetError {
  if (failed !== undefined) return new NotYetError('the buyer has failed to prove who they are', 1);
  // After the clock was set back, `required` may be in the future.
  const waited = Math.max(0, now() - Date.parse(required));
  let wait = pollMs;
  while (wait <= waited) wait *= 3;
  return new NotYetError(
    'the buyer has not proved who they are',
    Math.max(1, Math.min(wait - waited, Date.parse(until) - now())),
  );
}

/**
 * A restored log may have lost the first purchase of a repeated request. The provider then answers with the first
 * charge, whose price may differ.
 */
function refuseOtherAmount(answer: ChargeReply, total: number): void {
  if (answer.outcome !== 'charged' || answer.amount === undefined || answer.amount === total) return;
  throw new GiveUpError(
    `${answer.provider} took ${answer.amount} pence for this transaction (${answer.charge_id}), which costs ${total} pence: give them back there, then discard this`,
  );
}

function eventOf(answer: ChargeReply, amount: number): PaymentCharged | PaymentDeclined {
  if (answer.outcome === 'charged')
    return { type: 'PaymentCharged', data: { amount, provider: answer.provider, charge_id: answer.charge_id } };
  return { type: 'PaymentDeclined', data: { provider: answer.provider, code: answer.code } };
}

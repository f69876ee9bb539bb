/** Charges one purchase: claims it in its stream, asks whoever holds the money, records the answer. Safe to repeat at any point. */
import type { PaymentMethod } from '../domain/account.js';
import { fold, type Happened } from '../domain/decider.js';
import { type PaymentCharged, type PaymentDeclined, type Purchase, purchaseAggregate, type PurchaseEvent, settleCharge, startCharge, transactionStream } from '../domain/purchase.js';
import type { Bus } from '../ports/bus.js';
import { ConflictError, type EventStore } from '../ports/eventStore.js';
import { type ChargeReply, type ChargeRequest, checks, SUBJECTS } from '../workers/messages.js';
import type { PurchaseWork } from './purchase.js';
import { answered, GiveUpError, type Patience } from './retry.js';
import { type Seen, seenOf } from './seen.js';
import type { WalletPayments } from './walletPayments.js';
import type { Reason, Writer } from './writing.js';

/** What charging works with. */
export interface ChargeDeps {
  readonly events: EventStore;
  readonly bus: Bus;
  readonly writer: Writer;
  readonly wallets: WalletPayments;
  /** The payment method of a reference. @throws UnavailableError */
  readonly paymentMethod: (reference: string) => Promise<Pick<PaymentMethod, 'kind' | 'prepaid' | 'customer'> | undefined>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly patience: Patience;
  /** Throws when this process may not act any more. */
  readonly mayAct: () => void;
}

/** A transaction's stream as it stands. */
interface Standing {
  readonly state: Purchase;
  readonly last: Seen | undefined;
}

type PendingPurchase = Extract<Purchase, { status: 'pending' | 'charged' | 'declined' }>;

const RACES = 8;

/**
 * Charges. `fresh`: nobody has tried before as far as is known, so the stream need not be read first.
 * @throws GiveUpError when it can't be found out any more; any other error: try again.
 */
export async function charge(deps: ChargeDeps, work: PurchaseWork, fresh: boolean): Promise<void> {
  const { writer } = deps;
  const id = work.purchase.transaction_id;
  const stream = transactionStream(id);
  const commandId = `charge-${id}`;
  let answer: ChargeReply | undefined;
  let at: Standing = fresh ? { state: { status: 'pending', purchase: work.purchase, purchasedAt: work.purchasedAt, refunds: new Map() }, last: work.last } : await read(deps.events, stream);

  for (let race = 0; race < RACES; race++) {
    const { state, last } = at;
    if (state.status !== 'pending' || last === undefined) return;
    const [start] = startCharge(state);
    if (start !== undefined) {
      const started = await writer.append(stream, start, last.revision, { commandId, cause: last });
      at = started === undefined ? await read(deps.events, stream) : { state: { ...state, chargeStartedAt: started.at }, last: started };
      continue;
    }
    deps.mayAct();
    answer ??= await ask(deps, state, { commandId, cause: last });
    const [settled] = settleCharge(state, eventOf(answer, state.purchase.total));
    if (settled === undefined || (await writer.append(stream, settled, last.revision, { commandId, cause: last, simulated: answer.simulated })) !== undefined) return;
    at = await read(deps.events, stream);
  }
  throw new ConflictError(stream, at.last?.revision ?? 'none', at.last?.revision ?? -1);
}

async function read(events: EventStore, stream: string): Promise<Standing> {
  const history = await events.read(stream);
  const last = history.at(-1);
  return { state: fold(purchaseAggregate, history as unknown as Happened<PurchaseEvent>[]), last: last === undefined ? undefined : seenOf(last) };
}

/** Asks whoever holds the money: the wallet, nobody (a wallet settled by invoice), or the card's provider. */
async function ask(deps: ChargeDeps, { purchase, chargeStartedAt }: PendingPurchase, reason: Reason): Promise<ChargeReply> {
  const { transaction_id, total, payment_reference } = purchase;
  const method = await deps.paymentMethod(payment_reference);
  if (method === undefined) throw new Error('the payment method is unknown');
  if (method.kind === 'wallet' && !method.prepaid) return { outcome: 'charged', provider: 'invoice', charge_id: `invoice-${transaction_id}`, simulated: false };
  if (method.kind === 'wallet') {
    const decided = await deps.wallets.pay(payment_reference, transaction_id, total, reason);
    if (decided === 'refused') return { outcome: 'declined', provider: 'wallet', code: 'insufficient_funds', simulated: false };
    return { outcome: 'charged', provider: 'wallet', charge_id: `wallet-${transaction_id}`, simulated: false };
  }

  const options = { timeoutMs: deps.patience.answerMs };
  if (chargeStartedAt !== undefined && deps.now() - Date.parse(chargeStartedAt) < deps.patience.askAgainMs) {
    const request: ChargeRequest = { transaction_id, amount: total, payment_reference, customer: method.customer, started_at: chargeStartedAt };
    return answered(checks.chargeReply(await deps.bus.request(SUBJECTS.charge, request, options)));
  }
  const found = answered(checks.chargeLookupReply(await deps.bus.request(SUBJECTS.lookUpCharge, { transaction_id }, options)));
  if (found.outcome === 'unknown') throw new GiveUpError('the provider does not know what became of the charge, and it is too late to ask for it again');
  return found;
}

function eventOf(answer: ChargeReply, amount: number): PaymentCharged | PaymentDeclined {
  if (answer.outcome === 'charged') return { type: 'PaymentCharged', data: { amount, provider: answer.provider, charge_id: answer.charge_id } };
  return { type: 'PaymentDeclined', data: { provider: answer.provider, code: answer.code } };
}

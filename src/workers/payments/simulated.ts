/**
 * The simulated payment provider: follows Stripe's published test cards and payment methods (https://docs.stripe.com/testing) by the payment reference.
 * Answers each transaction once for ever: its ledger is a record a transaction.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Records } from '../../ports/readStore.js';
import type {
  AuthenticationReply, ChargeCancellation, ChargeLookup, ChargeLookupReply, ChargeReply, ChargeRequest, PaymentActionReply, PaymentActionRequest, PaymentSearch, PaymentSearchReply, RefundLookup,
  RefundLookupReply, RefundReply, RefundRequest,
} from '../messages.js';
import { refuseForeign } from '../trouble.js';
import { afterAuthentication, declineCodeOf, needsAuthentication } from './testCards.js';

/** Answers to charges and refunds. */
export interface PaymentProvider {
  /** Charges, or answers what was answered for this transaction before. @throws Error when the provider is in trouble: ask again. */
  charge(request: ChargeRequest): Promise<ChargeReply | AuthenticationReply>;
  /** What was answered for a transaction, or has become of it since. A payment that can't succeed any more is cancelled. */
  lookUp(request: ChargeLookup): Promise<ChargeLookupReply>;
  /** Cancels a payment that waits for its buyer, unless it has succeeded. */
  cancel(request: ChargeCancellation): Promise<ChargeReply>;
  /** What its buyer needs to prove who they are. */
  action(request: PaymentActionRequest): Promise<PaymentActionReply>;
  /** The transaction of a payment. */
  find(request: PaymentSearch): Promise<PaymentSearchReply>;
  /** Gives money back, or answers what was answered for this attempt before. @throws Error when the provider is in trouble: ask again. */
  refund(request: RefundRequest): Promise<RefundReply>;
  /** What was answered for an attempt at a refund. */
  lookUpRefund(request: RefundLookup): Promise<RefundLookupReply>;
}

const PROVIDER = 'simulated';
const LEDGER_MS = 48 * 3_600_000;
const SLOW_MS = 3_000;
const FLAKY_FAILURES = 2;
/** Refunds to it fail. */
const REFUND_FAILS = 'pm_card_refundFail';

/** What the buyer's app would go on with, in Stripe's words. */
const ACTION = 'use_stripe_sdk';
/** Stripe's word for a buyer who could not prove who they are. */
const NOT_PROVED = 'payment_intent_authentication_failure';

/** A payment that waits for its buyer, with the card that decides what comes of it. */
type Waiting = AuthenticationReply & { readonly reference: string };
/** A transaction in the ledger. */
type Entry = ChargeReply | Waiting;

/** The simulated provider's name of a transaction's payment. */
const idOf = (transactionId: string): string => `ch_simulated_${transactionId}`;

function replyOf(entry: Entry): ChargeReply | AuthenticationReply {
  if (entry.outcome !== 'authentication') return entry;
  const { reference: _, ...reply } = entry;
  return reply;
}

/** What can be done to it beside what a provider does. */
export interface SimulatedPayments extends PaymentProvider {
  /** The buyer proves who they are, or fails to. @returns what came of it, now or before; `undefined`: no such payment */
  authenticate(transactionId: string, proves: boolean): Promise<ChargeReply | undefined>;
}

/**
 * The provider. `pm_card_slow` takes 3 s, `pm_card_flaky` fails twice before it is charged, `pm_card_refundFail` is charged and can't be refunded.
 * @param records its ledger, kept for 48 h. `now`: milliseconds since the epoch.
 */
export function simulatedPayments(records: Records, now: () => number): SimulatedPayments {
  const keyOf = (transactionId: string): string => `charge/${transactionId}`;

  const refundKey = (refundId: string, attempt: number): string => `refund/${refundId}/${attempt}`;

  const trouble = async (transactionId: string): Promise<void> => {
    const key = `chargeFailures/${transactionId}`;
    const failures = await records.get<number>(key);
    const count = (failures?.value ?? 0) + 1;
    if (count > FLAKY_FAILURES) return;
    await records.put(key, count, { expiresAt: now() + LEDGER_MS });
    throw new Error('the simulated provider is in trouble');
  };

  /** Keeps an answer, unless another one has been kept meanwhile. @returns the one that holds */
  const keep = async <E extends Entry>(transactionId: string, entry: E, expected: number): Promise<Entry> => {
    const key = keyOf(transactionId);
    if ((await records.put(key, entry, { expected, expiresAt: now() + LEDGER_MS })) !== undefined) return entry;
    return (await records.get<Entry>(key))?.value ?? entry;
  };
  const charged = (transactionId: string): ChargeReply => ({ outcome: 'charged', provider: PROVIDER, charge_id: idOf(transactionId), simulated: true });
  const declined = (code: string): ChargeReply => ({ outcome: 'declined', provider: PROVIDER, code, simulated: true });

  return {
    async charge({ transaction_id, payment_reference }) {
      const known = await records.get<Entry>(keyOf(transaction_id));
      if (known !== undefined) return replyOf(known.value);
      if (payment_reference === 'pm_card_slow') await sleep(SLOW_MS);
      if (payment_reference === 'pm_card_flaky') await trouble(transaction_id);
      if (needsAuthentication(payment_reference)) {
        const waiting: Waiting = { outcome: 'authentication', provider: PROVIDER, payment_id: idOf(transaction_id), action: ACTION, simulated: true, reference: payment_reference };
        return replyOf(await keep(transaction_id, waiting, 0));
      }
      const code = declineCodeOf(payment_reference);
      return replyOf(await keep(transaction_id, code === undefined ? charged(transaction_id) : declined(code), 0));
    },

    async lookUp({ transaction_id }) {
      const known = await records.get<Entry>(keyOf(transaction_id));
      return known === undefined ? { outcome: 'unknown' } : replyOf(known.value);
    },

    async cancel({ transaction_id, code }) {
      const known = await records.get<Entry>(keyOf(transaction_id));
      const entry = known === undefined || known.value.outcome === 'authentication' ? await keep(transaction_id, declined(code), known?.version ?? 0) : known.value;
      if (entry.outcome === 'authentication') throw new Error('the simulated provider lost a race');
      return entry;
    },

    async action({ transaction_id }) {
      const known = await records.get<Entry>(keyOf(transaction_id));
      return { outcome: 'action', client_secret: `${idOf(transaction_id)}_secret_simulated`, waiting: known?.value.outcome === 'authentication' };
    },

    async find({ payment_id }) {
      return payment_id.startsWith(idOf('')) ? { outcome: 'found', transaction_id: payment_id.slice(idOf('').length) } : { outcome: 'unknown' };
    },

    async authenticate(transactionId, proves) {
      const known = await records.get<Entry>(keyOf(transactionId));
      if (known?.value.outcome !== 'authentication') return known === undefined ? undefined : known.value;
      const code = proves ? afterAuthentication(known.value.reference) : NOT_PROVED;
      const entry = await keep(transactionId, code === undefined ? charged(transactionId) : declined(code), known.version);
      return entry.outcome === 'authentication' ? undefined : entry;
    },

    async refund({ refund_id, attempt, payment_reference, provider }) {
      refuseForeign(provider, PROVIDER);
      const reply: RefundReply =
        payment_reference === REFUND_FAILS
          ? { outcome: 'refused', provider: PROVIDER, code: 'expired_or_canceled_card', simulated: true }
          : { outcome: 'refunded', provider: PROVIDER, refund_ref: `re_simulated_${refund_id}_${attempt}`, simulated: true };
      const key = refundKey(refund_id, attempt);
      if ((await records.put(key, reply, { expected: 0, expiresAt: now() + LEDGER_MS })) !== undefined) return reply;
      return (await records.get<RefundReply>(key))?.value ?? reply;
    },

    async lookUpRefund({ refund_id, attempt, provider }) {
      refuseForeign(provider, PROVIDER);
      return (await records.get<RefundReply>(refundKey(refund_id, attempt)))?.value ?? { outcome: 'never' };
    },
  };
}

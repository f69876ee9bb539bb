/**
 * The simulated payment provider: follows Stripe's published test cards and payment methods (https://docs.stripe.com/testing) by the payment reference.
 * Answers each transaction once for ever: its ledger is a record a transaction.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Records } from '../../ports/readStore.js';
import type { ChargeLookup, ChargeLookupReply, ChargeReply, ChargeRequest, RefundLookup, RefundLookupReply, RefundReply, RefundRequest } from '../messages.js';
import { refuseForeign } from '../trouble.js';

/** Answers to charges and refunds. */
export interface PaymentProvider {
  /** Charges, or answers what was answered for this transaction before. @throws Error when the provider is in trouble: ask again. */
  charge(request: ChargeRequest): Promise<ChargeReply>;
  /** What was answered for a transaction. */
  lookUp(request: ChargeLookup): Promise<ChargeLookupReply>;
  /** Gives money back, or answers what was answered for this attempt before. @throws Error when the provider is in trouble: ask again. */
  refund(request: RefundRequest): Promise<RefundReply>;
  /** What was answered for an attempt at a refund. */
  lookUpRefund(request: RefundLookup): Promise<RefundLookupReply>;
}

/** Who answered, in events. */
export const PROVIDER = 'simulated';
/** Keys of its ledger, before the transaction's id or the refund's id and attempt. */
export const CHARGE_PREFIX = 'charge/';
export const REFUND_PREFIX = 'refund/';

/** An answer as its ledger keeps it, with what was asked: pence, the transaction, ms since the epoch. */
export type SimulatedEntry<R extends object> = R & { readonly amount?: number; readonly transaction_id?: string; readonly at?: number };

const LEDGER_MS = 48 * 3_600_000;
const SLOW_MS = 3_000;
const FLAKY_FAILURES = 2;
/** Refunds to it fail. */
const REFUND_FAILS = 'pm_card_refundFail';

const DECLINED_CARDS: Readonly<Record<string, string>> = {
  '4000000000000002': 'generic_decline',
  '4000000000009995': 'insufficient_funds',
  '4000000000009987': 'lost_card',
  '4000000000009979': 'stolen_card',
  '4000000000000069': 'expired_card',
  '4000000000000127': 'incorrect_cvc',
  '4000000000000119': 'processing_error',
  '4000000000006975': 'card_velocity_exceeded',
};

const DECLINED_METHODS: Readonly<Record<string, string>> = {
  chargeDeclined: 'generic_decline',
  chargeDeclinedInsufficientFunds: 'insufficient_funds',
  chargeDeclinedLostCard: 'lost_card',
  chargeDeclinedStolenCard: 'stolen_card',
  chargeDeclinedExpiredCard: 'expired_card',
  chargeDeclinedIncorrectCvc: 'incorrect_cvc',
  chargeDeclinedProcessingError: 'processing_error',
  chargeDeclinedVelocityLimitExceeded: 'card_velocity_exceeded',
};

/** The decline code (Stripe's) of a payment reference; `undefined`: it is charged. */
export function declineCodeOf(reference: string): string | undefined {
  const card = reference.replaceAll(/[ -]/g, '');
  if (Object.hasOwn(DECLINED_CARDS, card)) return DECLINED_CARDS[card];
  const method = /^(?:pm_card|tok)_(?:visa_)?(\w+)$/.exec(reference)?.[1] ?? '';
  return Object.hasOwn(DECLINED_METHODS, method) ? DECLINED_METHODS[method] : undefined;
}

/**
 * The provider. `pm_card_slow` takes 3 s, `pm_card_flaky` fails twice before it is charged, `pm_card_refundFail` is charged and can't be refunded.
 * @param records its ledger, kept for 48 h. `now`: milliseconds since the epoch.
 */
export function simulatedPayments(records: Records, now: () => number): PaymentProvider {
  const keyOf = (transactionId: string): string => `${CHARGE_PREFIX}${transactionId}`;

  const refundKey = (refundId: string, attempt: number): string => `${REFUND_PREFIX}${refundId}/${attempt}`;

  const trouble = async (transactionId: string): Promise<void> => {
    const key = `chargeFailures/${transactionId}`;
    const failures = await records.get<number>(key);
    const count = (failures?.value ?? 0) + 1;
    if (count > FLAKY_FAILURES) return;
    await records.put(key, count, { expiresAt: now() + LEDGER_MS });
    throw new Error('the simulated provider is in trouble');
  };

  return {
    async charge({ transaction_id, amount, payment_reference }) {
      const key = keyOf(transaction_id);
      const known = await records.get<SimulatedEntry<ChargeReply>>(key);
      if (known !== undefined) return replyOf(known.value);
      if (payment_reference === 'pm_card_slow') await sleep(SLOW_MS);
      if (payment_reference === 'pm_card_flaky') await trouble(transaction_id);
      const code = declineCodeOf(payment_reference);
      const reply: ChargeReply =
        code === undefined
          ? { outcome: 'charged', provider: PROVIDER, charge_id: `ch_simulated_${transaction_id}`, simulated: true }
          : { outcome: 'declined', provider: PROVIDER, code, simulated: true };
      const entry: SimulatedEntry<ChargeReply> = { ...reply, amount, at: now() };
      if ((await records.put(key, entry, { expected: 0, expiresAt: now() + LEDGER_MS })) !== undefined) return reply;
      return replyOf((await records.get<SimulatedEntry<ChargeReply>>(key))?.value ?? reply);
    },

    async lookUp({ transaction_id }) {
      const known = await records.get<SimulatedEntry<ChargeReply>>(keyOf(transaction_id));
      return known === undefined ? { outcome: 'unknown' } : replyOf(known.value);
    },

    async refund({ refund_id, attempt, transaction_id, amount, payment_reference, provider }) {
      refuseForeign(provider, PROVIDER);
      const reply: RefundReply =
        payment_reference === REFUND_FAILS
          ? { outcome: 'refused', provider: PROVIDER, code: 'expired_or_canceled_card', simulated: true }
          : { outcome: 'refunded', provider: PROVIDER, refund_ref: `re_simulated_${refund_id}_${attempt}`, simulated: true };
      const key = refundKey(refund_id, attempt);
      const entry: SimulatedEntry<RefundReply> = { ...reply, amount, transaction_id, at: now() };
      if ((await records.put(key, entry, { expected: 0, expiresAt: now() + LEDGER_MS })) !== undefined) return reply;
      return replyOf((await records.get<SimulatedEntry<RefundReply>>(key))?.value ?? reply);
    },

    async lookUpRefund({ refund_id, attempt, provider }) {
      refuseForeign(provider, PROVIDER);
      const known = await records.get<SimulatedEntry<RefundReply>>(refundKey(refund_id, attempt));
      return known === undefined ? { outcome: 'never' } : replyOf(known.value);
    },
  };
}

function replyOf<R extends object>({ amount: _amount, transaction_id: _transaction, at: _at, ...reply }: SimulatedEntry<R>): R {
  return reply as unknown as R;
}

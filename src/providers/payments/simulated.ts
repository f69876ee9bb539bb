/**
 * Follows Stripe's published test cards and payment methods (https://docs.stripe.com/testing) by the payment reference,
 * and repeats its answers from records.
 */
import { brokenCardLimit } from '../../domain/purchase/decisions.js';
import type { ProviderEvent } from '../../domain/purchase/providerEvent.js';
import { sleep } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import type { AuthenticationReply, ChargeReply, RefundReply } from '../../messages/payments.js';
import { ProviderError, RefusedError, refuseForeign } from '../providerErrors.js';
import { reportLater } from '../simulatedEvents.js';
import { failTwice, refuseDuringOutage } from '../simulatedOutage.js';
import type { PaymentProvider } from './provider.js';
import { afterAuthentication, declineCodeOf, needsAuthentication } from './testCards.js';

export const PROVIDER = 'simulated';
export const CHARGE_PREFIX = 'charge/';
export const REFUND_PREFIX = 'refund/';

/** The answer, and the request's pence, transaction and time (ms since the epoch). */
export type SimulatedEntry<R extends object> = R & {
  readonly amount?: number;
  readonly transaction_id?: string;
  readonly at?: number;
};

const LEDGER_MS = 48 * 3_600_000;
const SLOW_MS = 3_000;
/** Methods that fail twice before a charge: the first's failure passes by itself, the second's is parked. */
const FAILING: Readonly<Record<string, () => Error>> = {
  pm_card_flaky: () => new Error('the simulated provider is in trouble'),
  pm_card_parked: () => new RefusedError('the simulated provider does not take this request'),
};
/** Payment method that is refused for an hour from the first request on. */
const AWAY = 'pm_card_away';
/** Payment method that is charged, but the first answer is lost. */
const ANSWER_LOST = 'pm_card_answerLost';
const REFUND_FAILS = 'pm_card_refundFail';
/** Payment methods with the provider event that is reported once one is charged. */
const REPORTED: Readonly<Record<string, (charge: Charge) => ProviderEvent>> = {
  pm_card_createDispute: (charge) => ({ ...disputed(charge), kind: 'dispute opened' }),
  pm_card_disputeWon: (charge) => ({ ...disputed(charge), kind: 'dispute closed', outcome: 'won' }),
  pm_card_disputeLost: (charge) => ({ ...disputed(charge), kind: 'dispute closed', outcome: 'lost' }),
  pm_card_refundedByHand: ({ charge_id, amount }) => ({
    kind: 'refunded',
    provider: PROVIDER,
    charge_id,
    total: amount,
  }),
};

const ACTION = 'use_stripe_sdk';
/** Stripe's code for a buyer who failed to authenticate. */
const NOT_PROVED = 'payment_intent_authentication_failure';

/** A stored charge. While it waits for its buyer, it names the card, which decides the outcome. */
type Entry = SimulatedEntry<ChargeReply | (AuthenticationReply & { readonly reference: string })>;

interface Charge {
  readonly charge_id: string;
  readonly amount: number;
}

const disputed = ({ charge_id, amount }: Charge) =>
  ({ provider: PROVIDER, charge_id, dispute_id: `dp_${charge_id}`, amount, reason: 'fraudulent' }) as const;

const idOf = (transactionId: string): string => `ch_simulated_${transactionId}`;

const keyOf = (transactionId: string): string => `${CHARGE_PREFIX}${transactionId}`;

const refundKey = (refundId: string, attempt: number): string => `${REFUND_PREFIX}${refundId}/${attempt}`;

const settled = (transactionId: string, code: string | undefined): ChargeReply =>
  code === undefined
    ? { outcome: 'charged', provider: PROVIDER, charge_id: idOf(transactionId), simulated: true }
    : { outcome: 'declined', provider: PROVIDER, code, simulated: true };

interface SimulatedPayments extends PaymentProvider {
  /** @returns the outcome, decided now or earlier; `undefined`: no such payment */
  authenticate(transactionId: string, proves: boolean): Promise<ChargeReply | undefined>;
}

/**
 * `pm_card_slow` takes 3 s, `pm_card_flaky` fails twice before it is charged, `pm_card_parked` is refused twice (and
 * parked each time) before it is charged, `pm_card_away` finds the provider away for an hour, `pm_card_answerLost` is
 * charged without an answer, those of `REPORTED` are disputed or refunded later, `pm_card_refundFail` is charged and
 * can't be refunded.
 * @param records store of the provider's ledger, for 48 h. `now`: milliseconds since the epoch.
 */
export function simulatedPayments(records: Records, now: () => number): SimulatedPayments {
  const failFirst = async (transactionId: string, reference: string): Promise<void> => {
    const failure = Object.hasOwn(FAILING, reference) ? FAILING[reference] : undefined;
    if (failure !== undefined) await failTwice(records, `chargeFailures/${transactionId}`, failure, now() + LEDGER_MS);
  };

  const reportLaterOf = async (transaction_id: string, reference: string, amount: number): Promise<void> => {
    const eventOf = Object.hasOwn(REPORTED, reference) ? REPORTED[reference] : undefined;
    if (eventOf === undefined) return;
    const providerEvent = eventOf({ charge_id: idOf(transaction_id), amount });
    if (providerEvent.kind === 'refunded') {
      const refund_ref = `re_simulated_by_hand_${transaction_id}`;
      const entry = { outcome: 'refunded', provider: PROVIDER, refund_ref, simulated: true, transaction_id } as const;
      // The ledger has what was given back by hand, too.
      const made: SimulatedEntry<RefundReply> = { ...entry, amount, at: now() };
      await records.put(refundKey(refund_ref, 1), made, { expected: 0, expiresAt: now() + LEDGER_MS });
    }
    await reportLater(records, transaction_id, { about: 'payment', transaction_id, providerEvent }, now());
  };

  /** @returns the stored answer, which may be an earlier one */
  const keep = async (transactionId: string, entry: Entry, expected: number): Promise<Entry> => {
    const key = keyOf(transactionId);
    if ((await records.put(key, entry, { expected, expiresAt: now() + LEDGER_MS })) !== undefined) return entry;
    return (await records.get<Entry>(key))?.value ?? entry;
  };
  return {
    async charge({ transaction_id, amount, payment_reference }) {
      const requested = { amount, at: now() };
      const known = await records.get<Entry>(keyOf(transaction_id));
      if (known !== undefined) return replyOf(known.value);
      if (payment_reference === 'pm_card_slow') await sleep(SLOW_MS);
      await failFirst(transaction_id, payment_reference);
      if (payment_reference === AWAY)
        await refuseDuringOutage(records, `chargeAway/${transaction_id}`, { what: 'away', now, retainedMs: LEDGER_MS });
      if (needsAuthentication(payment_reference)) {
        const waiting = {
          outcome: 'authentication',
          provider: PROVIDER,
          payment_id: idOf(transaction_id),
          action: ACTION,
          simulated: true,
          reference: payment_reference,
        } as const;
        return replyOf(await keep(transaction_id, { ...waiting, ...requested }, 0));
      }
      const code = brokenCardLimit(amount) ?? declineCodeOf(payment_reference);
      // Stored before the charge: a repeated request finds the charge, and does not get here.
      if (code === undefined) await reportLaterOf(transaction_id, payment_reference, amount);
      const stored = await keep(transaction_id, { ...settled(transaction_id, code), ...requested }, 0);
      if (payment_reference === ANSWER_LOST)
        throw new ProviderError('the answer of the simulated provider was lost', { outcomeUnknown: true });
      return replyOf(stored);
    },

    async lookUp({ transaction_id }) {
      const known = await records.get<Entry>(keyOf(transaction_id));
      return known === undefined ? { outcome: 'unknown' } : replyOf(known.value);
    },

    async cancel({ transaction_id, code }) {
      const known = await records.get<Entry>(keyOf(transaction_id));
      if (known !== undefined && known.value.outcome !== 'authentication') return replyOf(known.value);
      const { amount } = known?.value ?? {};
      const stored = await keep(
        transaction_id,
        { ...settled(transaction_id, code), ...(amount === undefined ? {} : { amount }), at: now() },
        known?.version ?? 0,
      );
      if (stored.outcome === 'authentication')
        throw new Error('the simulated provider was asked for the charge meanwhile');
      return replyOf(stored);
    },

    async action({ transaction_id }) {
      const known = await records.get<Entry>(keyOf(transaction_id));
      return {
        outcome: 'action',
        client_secret: `${idOf(transaction_id)}_secret_simulated`,
        waiting: known?.value.outcome === 'authentication',
      };
    },

    async find({ payment_id }) {
      return payment_id.startsWith(idOf(''))
        ? { outcome: 'found', transaction_id: payment_id.slice(idOf('').length) }
        : { outcome: 'unknown' };
    },

    async authenticate(transactionId, proves) {
      const known = await records.get<Entry>(keyOf(transactionId));
      if (known === undefined) return undefined;
      if (known.value.outcome !== 'authentication') return replyOf(known.value);
      const code = proves ? afterAuthentication(known.value.reference) : NOT_PROVED;
      const { amount } = known.value;
      const stored = await keep(
        transactionId,
        { ...settled(transactionId, code), ...(amount === undefined ? {} : { amount }), at: now() },
        known.version,
      );
      return stored.outcome === 'authentication' ? undefined : replyOf(stored);
    },

    async refund({ refund_id, attempt, transaction_id, amount, payment_reference, provider }) {
      refuseForeign(provider, PROVIDER);
      const reply: RefundReply =
        payment_reference === REFUND_FAILS
          ? { outcome: 'refused', provider: PROVIDER, code: 'expired_or_canceled_card', simulated: true }
          : {
              outcome: 'refunded',
              provider: PROVIDER,
              refund_ref: `re_simulated_${refund_id}_${attempt}`,
              simulated: true,
            };
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

function replyOf<R extends object>({
  amount: _amount,
  transaction_id: _transaction,
  at: _at,
  reference: _reference,
  ...reply
}: SimulatedEntry<R> & { readonly reference?: string }): R {
  // The compiler can't tell that an entry without these fields is its reply.
  return reply as unknown as R;
}

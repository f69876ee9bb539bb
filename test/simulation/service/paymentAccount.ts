/**
 * The payment provider's account: the simulated provider over a ledger, in whose dashboard people give money back by
 * hand (docs/payments.md). It gives back no more than it has taken, and lists what was given back by hand.
 */
import type { RefundReply } from '../../../src/messages/payments.js';
import { clockMs } from '../../../src/lib/clock.js';
import type { PaymentProvider } from '../../../src/providers/payments/provider.js';
import {
  CHARGE_PREFIX,
  PROVIDER,
  REFUND_PREFIX,
  type SimulatedEntry,
  simulatedPayments,
} from '../../../src/providers/payments/simulated.js';
import { openSimulatedRecords, type RecordRows } from '../engines/records.js';
import type { Link } from '../world/link.js';

export const BY_HAND_PREFIX = 'by hand/';

/** Pence that were given back by hand, by keys `{transaction}/{number}`. */
export interface ByHand {
  readonly amount: number;
  readonly transaction_id: string;
  readonly at: number;
}

/** Clocks of a process and the provider differ by as much at most, as for the adapter of Stripe. */
const CLOCKS_MS = 60_000;
const LEDGER_MS = 48 * 3_600_000;

/** What the provider has stored under keys with this prefix, by the rest of the key. */
export function entriesOf<R extends object>(ledger: RecordRows, prefix: string): [string, SimulatedEntry<R>][] {
  return ledger
    .list(prefix, Number.MAX_SAFE_INTEGER, undefined, 0)
    .map(({ key, value }) => [key.slice(prefix.length), JSON.parse(value) as SimulatedEntry<R>]);
}

const sumOf = (entries: readonly { readonly amount?: number }[]): number =>
  entries.reduce((sum, { amount = 0 }) => sum + amount, 0);

export const madeByHand = (ledger: RecordRows, transaction: string, since = 0): number =>
  sumOf(
    entriesOf<ByHand>(ledger, `${BY_HAND_PREFIX}${transaction}/`)
      .map(([, entry]) => entry)
      .filter(({ at }) => at >= since),
  );

/** Pence of a transaction's charge that went back: by our refunds and by hand. */
export function givenBack(ledger: RecordRows, transaction: string): number {
  const ours = entriesOf<RefundReply>(ledger, REFUND_PREFIX).map(([, entry]) => entry);
  return (
    sumOf(ours.filter((one) => one.outcome === 'refunded' && one.transaction_id === transaction)) +
    madeByHand(ledger, transaction)
  );
}

/** The provider as a process reaches it by the link. */
export function openPaymentAccount(ledger: RecordRows, link: Link): PaymentProvider {
  const simulated = simulatedPayments(openSimulatedRecords(ledger, { link }), clockMs);
  // It forgets keys, but knows its payments, and lists its refunds, for good.
  const listed = simulatedPayments(openSimulatedRecords(ledger, { link, clock: () => 0 }), clockMs);
  const { lookUp, cancel, action, find } = listed;
  return {
    ...simulated,
    lookUp,
    cancel,
    action,
    find,
    async refund(request) {
      const { refund_id, attempt, transaction_id, amount } = request;
      const key = `${REFUND_PREFIX}${refund_id}/${attempt}`;
      const at = clockMs();
      await link.call({
        text: `put ${key} unless too much`,
        effect() {
          // It knows its payments for good.
          const charge = ledger.get(CHARGE_PREFIX + transaction_id, 0);
          const taken = charge === undefined ? 0 : (JSON.parse(charge.value) as { readonly amount?: number }).amount;
          if (givenBack(ledger, transaction_id) + amount <= (taken ?? 0)) return;
          const refused = { outcome: 'refused', provider: PROVIDER, code: 'charge_already_refunded', simulated: true };
          const entry = { ...refused, amount, transaction_id, at } as SimulatedEntry<RefundReply>;
          ledger.put(key, JSON.stringify(entry), { expected: 0, expiresAt: at + LEDGER_MS }, at);
        },
      });
      return simulated.refund(request);
    },
    async lookUpRefund(lookup) {
      const reply = await listed.lookUpRefund(lookup);
      if (reply.outcome !== 'never') return reply;
      const { charge_id, started_at } = lookup;
      const transaction = await find({ payment_id: charge_id });
      if (transaction.outcome === 'unknown') return reply;
      const since = started_at === undefined ? Infinity : Date.parse(started_at) - CLOCKS_MS;
      const others = madeByHand(ledger, transaction.transaction_id, since);
      return others === 0 ? reply : { ...reply, others };
    },
  };
}

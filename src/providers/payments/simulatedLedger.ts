import type { LedgerEntry, PaymentLedger } from '../../ports/paymentLedger.js';
import type { Records } from '../../ports/readStore.js';
import type { ChargeReply, RefundReply } from '../../messages/payments.js';
import { CHARGE_PREFIX, PROVIDER, REFUND_PREFIX, type SimulatedEntry } from './simulated.js';

/** The simulated provider's ledger, read once for one comparison. */
export function simulatedLedger(records: Records): PaymentLedger {
  const charges = async (): Promise<LedgerEntry[]> =>
    (await records.list<SimulatedEntry<ChargeReply>>(CHARGE_PREFIX)).flatMap(({ key, value }) =>
      value.outcome === 'charged' ? [entryOf('charge', value.charge_id, key.slice(CHARGE_PREFIX.length), value)] : [],
    );
  const refunds = async (): Promise<LedgerEntry[]> =>
    (await records.list<SimulatedEntry<RefundReply>>(REFUND_PREFIX)).flatMap(({ value }) =>
      value.outcome === 'refunded' ? [entryOf('refund', value.refund_ref, value.transaction_id ?? null, value)] : [],
    );
  let all: Promise<LedgerEntry[]> | undefined;
  const entries = (): Promise<LedgerEntry[]> =>
    (all ??= Promise.all([charges(), refunds()]).then((lists) => lists.flat()));

  return {
    provider: PROVIDER,
    async *list(from, to) {
      const found = (await entries()).filter(({ at }) => Date.parse(at) >= from && Date.parse(at) < to);
      if (found.length > 0) yield found;
    },
    find: async (kind, id) => (await entries()).find((entry) => entry.kind === kind && entry.id === id),
    async refundsOf(chargeId) {
      const known = await entries();
      const charge = known.find(({ kind, id }) => kind === 'charge' && id === chargeId);
      return known.filter(({ kind, transactionId }) => kind === 'refund' && transactionId === charge?.transactionId);
    },
  };
}

function entryOf(
  kind: LedgerEntry['kind'],
  id: string,
  transactionId: string | null,
  { amount, at }: SimulatedEntry<object>,
): LedgerEntry {
  return {
    kind,
    id,
    transactionId,
    ...(amount === undefined ? {} : { amount }),
    currency: 'gbp',
    at: new Date(at ?? 0).toISOString(),
    moved: true,
    status: 'succeeded',
  };
}

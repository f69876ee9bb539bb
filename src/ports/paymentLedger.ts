/**
 * A payment provider's own account of its charges and refunds: the other side of a reconciliation. Tested by
 * `test/ops/reconciliation/reconcile.test.ts`.
 */

/** A movement of money, also one that failed. */
export interface LedgerEntry {
  readonly kind: 'charge' | 'refund';
  /** As in events: `charge_id`, `refund_ref`. */
  readonly id: string;
  /** The transaction given to the provider with it; null: none. */
  readonly transactionId: string | null;
  /** In the currency's smallest unit, pence. Absent: unknown to the ledger. */
  readonly amount?: number;
  /** ISO 4217, lower case. */
  readonly currency: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  /** Whether money has moved or is on its way. */
  readonly moved: boolean;
  /** In the provider's own words. */
  readonly status: string;
}

/** Every method throws ProviderError, RetryLaterError or UnavailableError when the ledger can't be read. */
export interface PaymentLedger {
  /** As in `provider` of events. */
  readonly provider: string;
  /**
   * Entries from `from` (ms since the epoch) until before `to`, in pages, in any order. Callers ask for one span after
   * the other, in order of time. Entries without moved money may be left out.
   */
  list(from: number, to: number): AsyncIterable<readonly LedgerEntry[]>;
  find(kind: LedgerEntry['kind'], id: string, transactionId: string): Promise<LedgerEntry | undefined>;
}

/**
 * A payment provider's own account of its charges and refunds: the other side of a reconciliation. Tested by
 * `test/ops/reconciliation/reconcile.test.ts`.
 */

/** A movement of money, also one that failed. */
export interface LedgerEntry {
  readonly kind: 'charge' | 'refund';
  /** The movement's id, as events have it: `charge_id` of a charge, `refund_ref` of a refund. */
  readonly id: string;
  /** The transaction id that was given to the provider with the movement; null: none. */
  readonly transactionId: string | null;
  /** Amount in the currency's smallest unit, pence. Absent: unknown to the ledger. */
  readonly amount?: number;
  /** ISO 4217 code, lower case. */
  readonly currency: string;
  /** Time of the movement: ISO 8601, UTC. */
  readonly at: string;
  /** Whether money has moved or is on its way. */
  readonly moved: boolean;
  /** The movement's status as the provider names it. */
  readonly status: string;
}

/** Every method throws ProviderError, RetryLaterError or UnavailableError when the ledger can't be read. */
export interface PaymentLedger {
  /** The provider's name, as in the `provider` field of events. */
  readonly provider: string;
  /**
   * Entries from `from` (ms since the epoch) until before `to`, in pages, in any order. Callers request one span after
   * the other, in order of time. Entries without moved money may be left out.
   */
  list(from: number, to: number): AsyncIterable<readonly LedgerEntry[]>;
  find(kind: LedgerEntry['kind'], id: string, transactionId: string): Promise<LedgerEntry | undefined>;
  /** All refunds of a charge, whoever requested them, at any time. */
  refundsOf(chargeId: string): Promise<readonly LedgerEntry[]>;
}

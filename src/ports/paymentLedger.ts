/**
 * What a payment provider says that it has done: the other side of a reconciliation. `test/ops/reconciliation/reconcile.test.ts`
 * holds the providers' ledgers to it.
 */

/** Money that moved, or was to move. */
export interface LedgerEntry {
  readonly kind: 'charge' | 'refund';
  /** As events name it: `charge_id`, `refund_ref`. */
  readonly id: string;
  /** The transaction that the provider was told of with it; null: none. */
  readonly transactionId: string | null;
  /** Of the currency's smallest unit: pence. Absent: the ledger doesn't tell. */
  readonly amount?: number;
  /** ISO 4217, lower case. */
  readonly currency: string;
  /** When it was made: ISO 8601, UTC. */
  readonly at: string;
  /** Whether money has moved or is on its way. */
  readonly moved: boolean;
  /** The provider's own word for how it stands. */
  readonly status: string;
}

/** A provider's ledger. Everything throws ProviderError, RetryLaterError or UnavailableError when it can't be read. */
export interface PaymentLedger {
  /** Whose it is: what events name as their `provider`. */
  readonly provider: string;
  /**
   * The entries made from `from` up to but not `to` (ms since the epoch), a page at a time, in any order. Asked for one
   * span after the other, in order of time. Entries without moved money may be left out.
   */
  list(from: number, to: number): AsyncIterable<readonly LedgerEntry[]>;
  /** The entry of an id as it stands now. */
  find(kind: LedgerEntry['kind'], id: string, transactionId: string): Promise<LedgerEntry | undefined>;
}

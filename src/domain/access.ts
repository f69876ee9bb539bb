/**
 * Access records of calls under `/ops` and of exports (docs/decisions.md#access-records). Stream `access-{yyyy-mm-dd}`
 * (UTC). No decision depends on them.
 */
import type { DomainEvent } from './decider.js';

export const accessStream = (at: string): string => `access-${at.slice(0, 10)}`;

export interface AccessRequest {
  /** A route (`GET /ops/gifts/:id/history`) or a command (`gift history`). */
  readonly what: string;
  /** Path parameters and query, or options, as the caller spelled them. */
  readonly asked: Readonly<Record<string, unknown>>;
  /** Personal fields were shown unmasked. */
  readonly personal: boolean;
  readonly reason: string | null;
}

/** Appended before the answer goes out. */
export type RecordsShown = DomainEvent<'RecordsShown', AccessRequest & { readonly count: number }>;

/** Appended before the operation shows its first record or changes anything. */
export type OperationStarted = DomainEvent<'OperationStarted', AccessRequest & { readonly operation_id: string }>;

/**
 * `complete: false`: broken off or refused, though a repair may still be carried out. `position`: null where the
 * operation counts none.
 */
export type OperationEnded = DomainEvent<
  'OperationEnded',
  {
    readonly operation_id: string;
    readonly count: number;
    readonly position: string | null;
    readonly complete: boolean;
  }
>;

export type AccessEvent = RecordsShown | OperationStarted | OperationEnded;

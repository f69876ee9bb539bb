/**
 * Who saw or did what: the record that calls under `/ops` and exports leave (docs/decisions.md#access-records). Stream
 * `access-{yyyy-mm-dd}`, the day in UTC; no decision depends on it.
 */
import type { DomainEvent } from './decider.js';

/** The stream of a day's records; `at` is ISO 8601, UTC. */
export const accessStream = (at: string): string => `access-${at.slice(0, 10)}`;

/** What was asked for, as the caller spelled it. */
export interface AccessRequest {
  /** A route (`GET /ops/gifts/:id/history`) or a command (`gift history`). */
  readonly what: string;
  /** Path parameters, query or options, without those named below. */
  readonly asked: Readonly<Record<string, unknown>>;
  /** Personal fields were shown unmasked. */
  readonly personal: boolean;
  /** In the caller's words; null where none was given. */
  readonly reason: string | null;
}

/** `count` records were shown, all at once. Appended before the answer goes out. */
export type RecordsShown = DomainEvent<'RecordsShown', AccessRequest & { readonly count: number }>;

/** An export, a repair or a rebuild started. Appended before it shows the first record or changes anything. */
export type OperationStarted = DomainEvent<'OperationStarted', AccessRequest & { readonly operation_id: string }>;

/**
 * The operation ended after `count` records. Not `complete`: it was broken off or refused; what a repair was asked for
 * may still be done. `position`: where it had come to, null where it counts no positions.
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

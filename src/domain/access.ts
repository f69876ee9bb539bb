/**
 * Who saw what: the record that calls under `/ops` and exports leave (decisions 11). Stream `access-{yyyy-mm-dd}`, the
 * day in UTC; nothing decides by it.
 */
import type { DomainEvent } from './decider.js';

/** The stream of a day's records; `at` is ISO 8601, UTC. */
export const accessStream = (at: string): string => `access-${at.slice(0, 10)}`;

/** What was asked for, as whoever asked spelled it. */
export interface AccessRequest {
  /** A route (`GET /ops/gifts/:id/history`) or a command (`gift history`). */
  readonly what: string;
  /** Path parameters, query or options, without those named below. */
  readonly asked: Readonly<Record<string, unknown>>;
  /** Personal fields were shown unmasked. */
  readonly personal: boolean;
  /** Why, in the words of whoever asked; null where none was given. */
  readonly reason: string | null;
}

/** Records were shown, all at once; `count` of them. Appended before the answer goes out. */
export type RecordsSeen = DomainEvent<'RecordsSeen', AccessRequest & { readonly count: number }>;

/**
 * An export, or a repair of documents, began; from now on records may have been seen or put right. Appended before the
 * first of them is.
 */
export type ExportBegun = DomainEvent<'ExportBegun', AccessRequest & { readonly export_id: string }>;

/**
 * It ended after so many records; not `complete`: it was broken off or refused, and of a repair what was asked for may
 * still be done. `position` is where it had come to, null where it counts no positions.
 */
export type ExportEnded = DomainEvent<
  'ExportEnded',
  {
    readonly export_id: string;
    readonly count: number;
    readonly position: string | null;
    readonly complete: boolean;
  }
>;

/** Events of a day's stream. */
export type AccessEvent = RecordsSeen | ExportBegun | ExportEnded;

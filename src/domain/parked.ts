/** What a process manager could not do, kept for support. Stream `parked-{name}`. */
import type { DomainEvent } from './decider.js';

/** The stream of a process manager's parked work. */
export const parkedStream = (name: ParkedName): string => `parked-${name}`;

/** The process managers that park. */
export const PARKED_NAMES = ['purchase', 'notification', 'refund', 'dispute'] as const;

/** One of them. */
export type ParkedName = (typeof PARKED_NAMES)[number];

/**
 * Given up for good, with its cause; all other work went on. `entity` is the transaction's id (`purchase`), the gift's (`notification`), the refund's (`refund`) or the dispute's (`dispute`),
 * `step` what was tried, `event_id` the event that asked for it.
 */
export type WorkParked = DomainEvent<'WorkParked', {
  readonly entity: string;
  readonly transaction_id: string;
  readonly step: string;
  readonly cause: string;
  readonly event_id: string;
}>;

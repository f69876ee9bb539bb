/**
 * Outward work: charges, refunds, messages, reminders, webhooks, and all else that reaches others. A log does it under
 * one id only: a copy, or a log restored from a backup, has another id and waits until a person resumes the work there
 * (docs/design.md#outward-work).
 */
import type { DomainEvent } from './decider.js';

export const OUTWARD_STREAM = 'log-outward';

/** First event of the stream in a new log, appended before any outward work is done. */
type OutwardWorkStarted = DomainEvent<'OutwardWorkStarted', { readonly log_id: string }>;

/** A person stopped the outward work. `log_id`: the log that they held, which may have copies. */
type OutwardWorkHeld = DomainEvent<'OutwardWorkHeld', { readonly log_id: string; readonly reason: string }>;

/** From this event on the log `log_id` does the work, and no other log that has the event. */
type OutwardWorkResumed = DomainEvent<'OutwardWorkResumed', { readonly log_id: string; readonly reason: string }>;

export type OutwardEvent = OutwardWorkStarted | OutwardWorkHeld | OutwardWorkResumed;

/** Id of the log that does the work; null: none does, since a person held it; `undefined`: no log has started it. */
export type OutwardOwner = string | null | undefined;

export const ownerAfter = ({ type, data }: OutwardEvent): OutwardOwner =>
  type === 'OutwardWorkHeld' ? null : data.log_id;

/** Why the log with this id waits, for the operator to read; `undefined`: it does not wait. */
export function whyHeld(owner: OutwardOwner, logId: string): string | undefined {
  if (owner === undefined || owner === logId) return undefined;
  return owner === null
    ? 'it was held (gift hold)'
    : `it is a copy of the log ${owner}, or was restored from its backup`;
}

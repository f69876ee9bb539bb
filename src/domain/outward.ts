/**
 * Outward work: charges, refunds, messages, reminders, webhooks, and all else that reaches others. A log does it under
 * one id only: a copy, or a log restored from a backup, has another id and waits until a person resumes the work there
 * (docs/decisions.md#outward-work).
 */
import type { DomainEvent } from './decider.js';

export const OUTWARD_STREAM = 'log-outward';

/** The log's first, before any outward work is done. */
export type OutwardWorkStarted = DomainEvent<'OutwardWorkStarted', { readonly log_id: string }>;

/** `log_id`: the log that the person held, which may be one with copies. */
export type OutwardWorkHeld = DomainEvent<'OutwardWorkHeld', { readonly log_id: string; readonly reason: string }>;

/** From here on the log `log_id` does the work, and no other one that has this event. */
export type OutwardWorkResumed = DomainEvent<
  'OutwardWorkResumed',
  { readonly log_id: string; readonly reason: string }
>;

export type OutwardEvent = OutwardWorkStarted | OutwardWorkHeld | OutwardWorkResumed;

/** Which log does the work; null: none does, since a person held it; `undefined`: none was started. */
export type OutwardOwner = string | null | undefined;

export const ownerAfter = ({ type, data }: OutwardEvent): OutwardOwner =>
  type === 'OutwardWorkHeld' ? null : data.log_id;

/** Why a log of this id waits; `undefined`: it does not. */
export function whyHeld(owner: OutwardOwner, logId: string): string | undefined {
  if (owner === undefined || owner === logId) return undefined;
  return owner === null
    ? 'it was held (gift hold)'
    : `it is a copy of the log ${owner}, or was restored from its backup`;
}

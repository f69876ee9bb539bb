/** What the deliveries keep of their attempts, for the owner of the endpoint to look at. */

/** Kept of an endpoint. */
export const MOST_ATTEMPTS = 100;

/** Of the text of an answer, bytes. */
export const MOST_SHOWN = 1_024;

/** Starts the keys of all attempts. */
export const ATTEMPTS = 'webhookAttempt/';

/** Starts the keys of an endpoint's attempts, which are in no order. */
export const attemptRecords = (endpointId: string): string => `${ATTEMPTS}${endpointId}/`;

/** The value of a record. Times are ISO 8601, UTC, milliseconds. */
export interface WebhookAttempt {
  /** Random. */
  readonly id: string;
  /** The message: of a feed's entry its id, of a ping that of the event that asked for it. */
  readonly event_id: string;
  /** Of the feed's entry, in the log; absent: a ping. */
  readonly position?: string;
  /** Id of the gift or transaction that the message is about; absent: a ping. */
  readonly about?: string;
  readonly type: string;
  readonly at: string;
  /** Absent: there was no answer. */
  readonly status?: number;
  /** Why there was none: words for the owner, without addresses. */
  readonly error?: string;
  /** How the answer began, at most `MOST_SHOWN` bytes; empty once a person whom it may name was erased. */
  readonly response: string;
  readonly duration_ms: number;
  /** Absent: it is not tried again. */
  readonly next_at?: string;
}

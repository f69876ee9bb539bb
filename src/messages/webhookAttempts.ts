/** What the deliveries store of their attempts, and how they stand, for others to read. */

/** Number of attempts retained for each endpoint. */
export const MOST_ATTEMPTS = 100;

/** Maximum number of bytes stored of the text of an answer. */
export const MOST_SHOWN = 1_024;

/** Prefix of the keys of all attempts. */
export const ATTEMPTS = 'webhookAttempt/';

/** Prefix of the keys of an endpoint's attempts, which are in no order. */
export const attemptRecords = (endpointId: string): string => `${ATTEMPTS}${endpointId}/`;

/** An attempt to deliver a message, as stored. Times are ISO 8601, UTC, milliseconds. */
export interface WebhookAttempt {
  /** Random id of the attempt. */
  readonly id: string;
  /** Id of the message: the id of the feed's entry, or for a ping the id of the event that requested it. */
  readonly event_id: string;
  /** Position of the feed's entry in the log; absent for a ping. */
  readonly position?: string;
  /** Id of the gift or transaction that the message is about; absent for a ping. */
  readonly about?: string;
  readonly type: string;
  readonly at: string;
  /** HTTP status of the answer; absent: there was no answer. */
  readonly status?: number;
  /** Why there was no answer: a text for the owner, without addresses. */
  readonly error?: string;
  /** Beginning of the answer, at most `MOST_SHOWN` bytes; empty once a person whom it may name was erased. */
  readonly response: string;
  readonly duration_ms: number;
  /** Time of the message's next attempt; absent: there is no further attempt. */
  readonly next_at?: string;
}

/** How the deliveries to an endpoint stand. Times are ISO 8601, UTC. */
export interface DeliveryState {
  /** Whether several attempts in a row failed. */
  readonly failing: boolean;
  /** Failures since the last success. */
  readonly failures: number;
  /** Number of events that wait. */
  readonly waiting: number;
  /** Times of the oldest untried and the oldest failed event, among the first of each gift or transaction. */
  readonly oldest: { readonly untried?: string; readonly failed?: string };
}

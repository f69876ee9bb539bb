/** What a worker answers where it has no answer. */

/**
 * `retry_later`: nothing was done; ask again, not before `after_ms` (milliseconds). `limited`: a limit of our own holds
 * it back, however long. `impossible`: it can never be done, for a cause that a person must see to.
 */
export type WorkerFailure =
  | { readonly outcome: 'retry_later'; readonly after_ms: number; readonly limited: boolean; readonly cause: string }
  | { readonly outcome: 'impossible'; readonly cause: string };

/** Whether there is no answer in it. */
export function isFailure(reply: { readonly outcome: string }): reply is WorkerFailure {
  return reply.outcome === 'retry_later' || reply.outcome === 'impossible';
}

/**
 * Nothing was done: ask again after `afterMs` milliseconds at the earliest. `limited`: by a limit of our own, so it is
 * never given up.
 */
export class RetryLaterError extends Error {
  override readonly name = 'RetryLaterError';
  readonly afterMs: number;
  readonly limited: boolean;
  constructor(message: string, afterMs: number, { limited = false } = {}) {
    super(message);
    this.afterMs = afterMs;
    this.limited = limited;
  }
}

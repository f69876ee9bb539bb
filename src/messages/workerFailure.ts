/**
 * `retry_later`: nothing was done; repeat the request after at least `after_ms` (milliseconds). `limited`: a limit of
 * our own defers the request, however long. `impossible`: the request can never be carried out, for a cause that a
 * person must handle.
 */
export type WorkerFailure =
  | { readonly outcome: 'retry_later'; readonly after_ms: number; readonly limited: boolean; readonly cause: string }
  | { readonly outcome: 'impossible'; readonly cause: string };

export function isFailure(reply: { readonly outcome: string }): reply is WorkerFailure {
  return reply.outcome === 'retry_later' || reply.outcome === 'impossible';
}

/** Thrown in a worker, which then replies `retry_later` with these fields. */
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

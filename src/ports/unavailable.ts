/**
 * An engine (event store, read store, bus) did not answer, or answered that it can't now (a full disk, no connection, a deadline).
 * Callers answer 503 or try again.
 */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
  /** True when what was asked may have been done all the same. */
  readonly outcomeUnknown: boolean;
  constructor(message: string, options: { outcomeUnknown?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.outcomeUnknown = options.outcomeUnknown ?? false;
  }
}

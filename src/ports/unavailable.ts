/**
 * An engine (event store, read store, bus) did not answer, or answered that it can't now (a full disk, no connection, a
 * deadline). Callers answer 503 or try again.
 */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
  /** True when what was asked may have been done all the same. */
  readonly outcomeUnknown: boolean;
  /**
   * What anybody may be told of it, such as whoever asks whether the service is ready; absent: that it can't be
   * reached. No path, no address.
   */
  readonly told: string | undefined;
  constructor(message: string, options: { outcomeUnknown?: boolean; cause?: unknown; told?: string } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.outcomeUnknown = options.outcomeUnknown ?? false;
    this.told = options.told;
  }
}

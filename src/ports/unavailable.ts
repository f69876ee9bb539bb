/** An engine does not answer: a full disk, no connection, a passed deadline. Callers answer 503 or try again. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
  /** The request may still have been carried out. */
  readonly outcomeUnknown: boolean;
  /** The cause as a text for the public, without path or address; absent: the engine can't be reached. */
  readonly publicReason: string | undefined;
  constructor(message: string, options: { outcomeUnknown?: boolean; cause?: unknown; publicReason?: string } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.outcomeUnknown = options.outcomeUnknown ?? false;
    this.publicReason = options.publicReason;
  }
}

/** Returns the error as that of a request which may have been carried out. What it says stays the same. */
export function withUnknownOutcome(error: UnavailableError): UnavailableError {
  if (error.outcomeUnknown) return error;
  const { message, publicReason } = error;
  return new UnavailableError(message, {
    outcomeUnknown: true,
    cause: error,
    ...(publicReason === undefined ? {} : { publicReason }),
  });
}

/** The stored data of an event can't be the data that was appended: it was altered, and a retry does not help. */
export class AlteredEventError extends UnavailableError {
  constructor(message: string, cause?: unknown) {
    super(message, { cause, publicReason: 'what its disk gives is damaged' });
  }
}

/** A document is quarantined, or what is stored of it is damaged. */
export class OutOfServiceError extends UnavailableError {}

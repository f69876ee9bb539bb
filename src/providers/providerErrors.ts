/** Errors of providers. Their messages are shown to support, and hold no secrets and nothing personal. */

/**
 * A failure that passes by itself: no connection, no answer in time, an error of the provider's own, our credentials
 * refused.
 */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  /** Whether the request may have been carried out all the same. */
  readonly outcomeUnknown: boolean;
  constructor(message: string, options: { outcomeUnknown: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.outcomeUnknown = options.outcomeUnknown;
  }
}

/** A request that was refused for good. Nothing was done, except what the message names. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly code: string | undefined;
  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

export function neverSent(error: unknown): boolean {
  for (
    let one = error, depth = 0;
    one instanceof Object && depth < 4;
    one = 'cause' in one ? one.cause : undefined, depth++
  ) {
    if ('code' in one && typeof one.code === 'string' && NEVER_SENT.has(one.code)) return true;
  }
  return false;
}

/**
 * A refund goes through the provider that took the money. @throws RefusedError where the settings have changed since
 */
export function refuseForeign(provider: string, own: string): void {
  if (provider !== own)
    throw new RefusedError(
      `the charge was taken by ${provider}, and the payments here are ${own}'s: give it back there, or set PAYMENTS to it`,
    );
}

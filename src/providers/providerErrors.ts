/** Messages are shown to support: no secrets, nothing personal. */

/** Passes by itself: no connection, no answer in time, an error of the provider's own, our credentials refused. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  /** The request may have been carried out all the same. */
  readonly outcomeUnknown: boolean;
  constructor(message: string, options: { outcomeUnknown: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.outcomeUnknown = options.outcomeUnknown;
  }
}

/** Refused for good. Nothing was done, except what the message names. */
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

/** A wrong header, or a provider's clock that is ahead, must not stop all calls for long. */
const RETRY_AFTER_AT_MOST_MS = 3_600_000;
/**
 * The three forms of a date in headers (RFC 9110, 5.6.7). JavaScript takes much else for a date: `-5` is a day in May.
 */
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d\d:\d\d:\d\d/;

/** RFC 9110, 10.2.3: seconds or a date. @returns milliseconds, at most an hour; `undefined`: absent or malformed */
export function retryAfterMs(header: string | null | undefined, now: number): number | undefined {
  const value = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(value)) return Math.min(RETRY_AFTER_AT_MOST_MS, Number(value) * 1000);
  const date = HTTP_DATE.test(value) ? Date.parse(value.endsWith(' GMT') ? value : `${value} GMT`) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.min(RETRY_AFTER_AT_MOST_MS, Math.max(0, date - now));
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

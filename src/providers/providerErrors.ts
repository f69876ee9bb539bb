/** Failures of a provider, by what is to be done about them. Messages are shown to support: no secrets, nothing personal. */

/** No connection, no answer in time, an error of the provider's own, our credentials refused: it passes. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  /** Whether the request may have been carried out all the same. */
  readonly outcomeUnknown: boolean;
  constructor(message: string, options: { outcomeUnknown: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.outcomeUnknown = options.outcomeUnknown;
  }
}

/** The provider refuses for good. Nothing was done, but for what the message names: the cause that a person needs. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  /** The provider's code, where it has one. */
  readonly code: string | undefined;
  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/** Failures before anything could be sent. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Whether a failed request was never sent, by its error or one that caused it. */
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
/** The three forms of a date in headers (RFC 9110, 5.6.7). JavaScript takes much else for a date: `-5` is a day in May. */
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d\d:\d\d:\d\d/;

/**
 * `Retry-After` (RFC 9110, 10.2.3: seconds or a date) as milliseconds from now, an hour at most; `undefined`: absent or
 * senseless.
 */
export function retryAfterMs(header: string | null | undefined, now: number): number | undefined {
  const value = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(value)) return Math.min(RETRY_AFTER_AT_MOST_MS, Number(value) * 1000);
  const date = HTTP_DATE.test(value) ? Date.parse(value.endsWith(' GMT') ? value : `${value} GMT`) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.min(RETRY_AFTER_AT_MOST_MS, Math.max(0, date - now));
}

/** A refund goes through the provider that took the money. @throws RefusedError: the settings have changed since */
export function refuseForeign(provider: string, own: string): void {
  if (provider !== own)
    throw new RefusedError(
      `the charge was taken by ${provider}, and the payments here are ${own}'s: give it back there, or set PAYMENTS to it`,
    );
}

/**
 * What can go wrong at a provider, told apart by what is to be done about it. Messages are shown to support: no
 * secrets, nothing personal.
 */

/**
 * The provider is in trouble (no connection, no answer in time, an error of its own, our credentials refused): it
 * passes.
 */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  /** True when what was asked may have been done all the same. */
  readonly outcomeUnknown: boolean;
  constructor(message: string, options: { outcomeUnknown: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.outcomeUnknown = options.outcomeUnknown;
  }
}

/**
 * The provider refuses what was asked, and always will: the message is the cause that a person needs. Nothing was done,
 * but for what the cause names.
 */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  /** The provider's own word for why, where it has one. */
  readonly code: string | undefined;
  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/** What goes out wrong on the way to a provider before anything could be sent. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Whether a failed connection (its error, or one that led to it) never carried the request. */
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
 * Who wants to be left alone for longer can say so again. One header that makes no sense, and a provider's clock that
 * is ahead, must not hold up everybody until what they wait for can't be asked for any more.
 */
const RETRY_AFTER_AT_MOST_MS = 3_600_000;
/**
 * As dates are written in headers, today's way and the two of former times, one of which does not say that it is in UTC
 * (RFC 9110, 5.6.7). Much else is a date to JavaScript: `-5` is a day in May.
 */
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

/**
 * Money goes back through who took it. @throws RefusedError when that was another provider: the settings have changed
 * since
 */
export function refuseForeign(provider: string, own: string): void {
  if (provider !== own)
    throw new RefusedError(
      `the charge was taken by ${provider}, and the payments here are ${own}'s: give it back there, or set PAYMENTS to it`,
    );
}

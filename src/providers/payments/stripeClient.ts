/**
 * Stripe's official library as all that talks to Stripe uses it: the account, the pinned version, and what its failures
 * mean.
 */
import Stripe from 'stripe';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { RefusedError, retryAfterMs, ProviderError } from '../providerErrors.js';
import { stripeHttp } from './stripeHttp.js';

/** The version of Stripe's API that all this was written for; the library knows its types. */
export const STRIPE_API_VERSION = '2026-10-28.endive';

/** The account. */
export interface StripeSettings {
  /** Secret. */
  readonly secretKey: string;
  /** Scheme, host and port; default Stripe's. */
  readonly apiUrl?: string;
}

/** A payment, as Stripe shows it. */
export type Intent = Stripe.PaymentIntent;

/** Who answered, in events. */
export const PROVIDER = 'stripe';

/** States of refunds that gave nothing back, and never will. */
export const GAVE_NOTHING: ReadonlySet<string | null> = new Set(['failed', 'canceled']);

/** Stripe forgets keys after 24 h, milliseconds: a request that was so long on its way may not move money. */
export const KEY_LIVES_MS = 20 * 3_600_000;

/** Without a word from Stripe about it. */
const RATE_LIMIT_PAUSE_MS = 1_000;

/** The card was refused. The intent, where Stripe made one, waits for another card. */
export class DeclinedError extends Error {
  override readonly name = 'DeclinedError';
  readonly code: string;
  readonly intent: Intent | undefined;
  constructor(code: string, intent: Intent | undefined) {
    super(`declined: ${code}`);
    this.code = code;
    this.intent = intent;
  }
}

/** Stripe will never take this payment, and made none of the request. `code`: its word for why. */
export class NeverTakenError extends Error {
  override readonly name = 'NeverTakenError';
  readonly code: string;
  constructor(code: string, where: string) {
    super(`Stripe will never take this payment (${where})`);
    this.code = code;
  }
}

/** Stripe answered with a failure of its own: what was done must be looked up. */
export class UnclearError extends ProviderError {}

/**
 * Stripe knows the key by another request (the method's customer has changed since): that one must be looked up. Stripe
 * itself is well.
 */
export class MismatchError extends Error {
  override readonly name = 'MismatchError';
}

/** The library's client; `timeout`: of one request, milliseconds. */
export function openStripe({ secretKey, apiUrl }: StripeSettings, timeout: number): Stripe {
  const where = apiUrl === undefined ? undefined : new URL(apiUrl);
  return new Stripe(secretKey, {
    apiVersion: STRIPE_API_VERSION,
    // Process managers repeat, for longer than the library would.
    maxNetworkRetries: 0,
    timeout,
    httpClient: stripeHttp(),
    telemetry: false,
    ...(where === undefined
      ? {}
      : {
          host: where.hostname,
          port: where.port === '' ? (where.protocol === 'http:' ? 80 : 443) : Number(where.port),
          protocol: where.protocol === 'http:' ? 'http' : 'https',
        }),
  });
}

/** The decline code that a failure holds, Stripe's general one where it holds none. */
export function codeOf(
  error: { readonly decline_code?: string | undefined; readonly code?: string | undefined } | undefined,
): string {
  // The library leaves what it wasn't told empty.
  return [error?.decline_code, error?.code].find((code) => code !== undefined && code !== '') ?? 'generic_decline';
}

/** What a request for a payment brings of the purchase and its buyer. All else in it is ours. */
const OF_THE_PURCHASE: ReadonlySet<string> = new Set(['amount', 'currency', 'payment_method', 'customer']);
/** Codes that speak of the money or the card, though they name no parameter (https://docs.stripe.com/error-codes). */
const ABOUT_THE_PAYMENT = /^(?:amount|currency|card|charge_exceeds|customer|payment_method)_/;

/**
 * Whether a refusal of a request for a payment is about what the purchase brings, so that it is final: the amount, or a
 * card that is gone. One about our key, account or API version can be put right by a person, and then be asked for
 * again. Of a card that was detached from its customer Stripe says it in words alone: neither code nor parameter.
 */
export function isAboutThePayment({
  statusCode,
  code,
  param,
}: {
  readonly statusCode?: number | undefined;
  readonly code?: string | undefined;
  readonly param?: string | undefined;
}): boolean {
  if (statusCode !== 400 && statusCode !== 402) return false;
  const named = (param ?? '') !== '';
  if (named && OF_THE_PURCHASE.has(param as string)) return code !== 'parameter_unknown';
  return (code ?? '') === '' ? !named : ABOUT_THE_PAYMENT.test(code as string);
}

/** Tells a final refusal of a request for a payment from other failures. @throws always */
export function neverTaken(error: unknown): never {
  if (!(error instanceof Stripe.errors.StripeInvalidRequestError) || !isAboutThePayment(error)) throw error;
  throw new NeverTakenError(
    error.code === undefined || error.code === '' ? 'invalid_request_error' : error.code,
    whereOf(error),
  );
}

function whereOf({ statusCode, requestId, code, param }: Stripe.errors.StripeError): string {
  return [`HTTP ${statusCode ?? 'none'}`, code, requestId === undefined ? '' : `request ${requestId}`, param]
    .filter((part) => part !== undefined && part !== '')
    .join(', ');
}

/** What a failure of the library means. Its own errors hold more than may be logged. @throws always */
export function failed(error: unknown, now: () => number): never {
  if (!(error instanceof Stripe.errors.StripeError)) throw error;
  const { statusCode, requestId, code } = error;
  const where = `HTTP ${statusCode ?? 'none'}${code === undefined || code === '' ? '' : `, ${code}`}${requestId === undefined ? '' : `, request ${requestId}`}`;
  if (error instanceof Stripe.errors.StripeCardError)
    throw new DeclinedError(codeOf(error), error.payment_intent as Intent | undefined);
  if (error instanceof Stripe.errors.StripeRateLimitError) {
    throw new RetryLaterError(
      `Stripe limits our requests (${where})`,
      retryAfterMs(error.headers?.['retry-after'], now()) ?? RATE_LIMIT_PAUSE_MS,
    );
  }
  if (error instanceof Stripe.errors.StripeConnectionError)
    throw new ProviderError('Stripe did not answer', { outcomeUnknown: true, cause: error.detail });
  if (error instanceof Stripe.errors.StripeIdempotencyError)
    throw new MismatchError(`Stripe knows this transaction by another request (${where})`);
  if (error instanceof Stripe.errors.StripeInvalidRequestError)
    throw new RefusedError(
      `Stripe refuses the request (${where}${error.param === undefined ? '' : `, ${error.param}`})`,
      code,
    );
  if (statusCode === 409) throw new RetryLaterError(`Stripe is busy with this very request (${where})`, 0);
  if (
    error instanceof Stripe.errors.StripeAuthenticationError ||
    error instanceof Stripe.errors.StripePermissionError
  ) {
    throw new ProviderError(`Stripe refuses our key (${where})`, { outcomeUnknown: false });
  }
  throw new UnclearError(`Stripe failed (${where})`, { outcomeUnknown: true });
}

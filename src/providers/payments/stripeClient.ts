import Stripe from 'stripe';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { RefusedError, ProviderError } from '../providerErrors.js';
import { retryAfterMs } from '../../lib/retryAfter.js';
import { within } from '../../lib/async/within.js';
import { ticks } from '../../lib/world.js';

export const STRIPE_API_VERSION = '2026-10-28.endive';

export interface StripeSettings {
  /** Secret. */
  readonly secretKey: string;
  /** Scheme, host and port; default Stripe's. */
  readonly apiUrl?: string;
}

export type Intent = Stripe.PaymentIntent;

export const PROVIDER = 'stripe';

export const GAVE_NOTHING: ReadonlySet<string | null> = new Set(['failed', 'canceled']);

/** Stripe forgets keys after 24 h: a request older than this, milliseconds, may not move money. */
export const KEY_LIVES_MS = 20 * 3_600_000;

/** Pause where Stripe names none. */
const RATE_LIMIT_PAUSE_MS = 1_000;

/** The card was declined. The intent, if there is one, waits for another card. */
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

/** Stripe will never accept this payment, and made none. `code`: Stripe's. */
export class NeverTakenError extends Error {
  override readonly name = 'NeverTakenError';
  readonly code: string;
  constructor(code: string, where: string) {
    super(`Stripe will never take this payment (${where})`);
    this.code = code;
  }
}

/** An answer that does not tell what was done, which must be looked up. */
export class UnclearError extends ProviderError {}

/** The idempotency key was used for another request (with another customer), which must be looked up. */
export class MismatchError extends Error {
  override readonly name = 'MismatchError';
}

export function openStripe({ secretKey, apiUrl }: StripeSettings, timeout: number): Stripe {
  const where = apiUrl === undefined ? undefined : new URL(apiUrl);
  return new Stripe(secretKey, {
    apiVersion: STRIPE_API_VERSION,
    // Process managers repeat requests, for longer than the library would.
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

export function codeOf(
  error: { readonly decline_code?: string | undefined; readonly code?: string | undefined } | undefined,
): string {
  // The library leaves fields empty that Stripe does not send.
  return [error?.decline_code, error?.code].find((code) => code !== undefined && code !== '') ?? 'generic_decline';
}

const OF_THE_PURCHASE: ReadonlySet<string> = new Set(['amount', 'currency', 'payment_method', 'customer']);
/** Codes about the money or the card that name no parameter (https://docs.stripe.com/error-codes). */
const ABOUT_THE_PAYMENT = /^(?:amount|currency|card|charge_exceeds|customer|payment_method)_/;

/**
 * A refusal about the amount or a missing card is final. A person can mend one about our key, account or API version. A
 * card that was detached from its customer has neither code nor parameter.
 */
function isAboutThePayment({
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

/** @throws NeverTakenError for a final refusal, else `error` */
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

/** The library's errors hold more than may be logged. @throws always */
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

type HttpClient = ReturnType<typeof Stripe.createNodeHttpClient>;
type Body = Awaited<ReturnType<HttpClient['makeRequest']>>;

/**
 * The library sets a property on each answer. For JSON that is not an object (a proxy's health page) that throws an
 * uncatchable error, which ends the process. Its timeout limits only silence: an answer that comes byte by byte would
 * hold its caller for ever.
 */
function stripeHttp(): HttpClient {
  const client = Stripe.createNodeHttpClient();
  return {
    getClientName: () => client.getClientName(),
    async makeRequest(...request) {
      const timeoutMs = request[7];
      const start = ticks();
      const making = client.makeRequest(...request);
      const response = await within(making, timeoutMs, () => {
        making.then(destroy, () => undefined);
        throw Stripe.HttpClient.makeTimeoutError();
      });
      const toJSON = response.toJSON.bind(response);
      response.toJSON = () => objectIn(within(toJSON(), start + timeoutMs - ticks(), () => tooLate(response)));
      return response;
    },
  };
}

async function objectIn(answer: Promise<unknown>): Promise<object> {
  const body = await answer;
  if (body instanceof Object) return body;
  throw new SyntaxError('the answer is no JSON object');
}

function destroy(response: Body): void {
  (response.getRawResponse() as NodeJS.ReadableStream & { destroy(): void }).destroy();
}

function tooLate(response: Body): never {
  destroy(response);
  throw Stripe.HttpClient.makeResponseBodyError(Stripe.HttpClient.makeTimeoutError());
}

/**
 * Card payments by Stripe: one PaymentIntent a transaction, confirmed off-session on the stored card. Its idempotency key and metadata are the
 * transaction's id, so that a repeat changes nothing, and what became of it can be found when nobody knows.
 */
import Stripe from 'stripe';
import type { Logger } from 'pino';
import { guard, type GuardOptions } from '../guard.js';
import type { ChargeReply } from '../messages.js';
import { NotNowError, RefusedError, retryAfterMs, TroubleError } from '../trouble.js';
import type { PaymentProvider } from './simulated.js';

/** The version of Stripe's API that all this was written for; the library knows its types. */
export const STRIPE_API_VERSION = '2026-10-28.endive';

/** The account. */
export interface StripeSettings {
  /** Secret. */
  readonly secretKey: string;
  /** Scheme, host and port; default Stripe's. */
  readonly apiUrl?: string;
}

/** What the worker works with. */
export interface StripeDeps {
  readonly logger: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Of one request; default 8 s. A charge and its cancellation both have to fit into what process managers wait for. */
  readonly timeoutMs?: number;
  readonly guard?: GuardOptions;
}

type Intent = Stripe.PaymentIntent;

const PROVIDER = 'stripe';
const TIMEOUT_MS = 8_000;
/** Stripe forgets keys after 24 h: a request that was so long on its way may not charge. */
const KEY_LIVES_MS = 20 * 3_600_000;
/** Without a word from Stripe about it. */
const RATE_LIMIT_PAUSE_MS = 1_000;
const PROCESSING_MS = 5_000;
const AUTHENTICATION = 'authentication_required';

/** The worker. */
export function stripePayments(settings: StripeSettings, { logger, now, timeoutMs = TIMEOUT_MS, guard: options }: StripeDeps): PaymentProvider {
  const stripe = openStripe(settings, timeoutMs);
  const guarded = guard(PROVIDER, logger, now, options);
  const call = <T>(request: () => Promise<T>): Promise<T> => guarded.run(() => request().catch((error: unknown) => failed(error, now)));

  /** The intent is cancelled first, so that it can't succeed after all; if it has meanwhile, it is charged. */
  const decline = async (intent: Intent, code: string): Promise<ChargeReply> => {
    const cancelled = intent.status === 'canceled' ? intent : await cancel(intent.id);
    if (cancelled.status === 'succeeded') return charged(cancelled);
    return { outcome: 'declined', provider: PROVIDER, code, simulated: false };
  };

  const cancel = async (id: string): Promise<Intent> => {
    try {
      return await call(() => stripe.paymentIntents.cancel(id));
    } catch (error) {
      // Cancelled before, or succeeded: it can't be cancelled then, and says so itself.
      const standing = error instanceof RefusedError ? await call(() => stripe.paymentIntents.retrieve(id)) : undefined;
      if (standing?.status === 'canceled' || standing?.status === 'succeeded') return standing;
      throw error;
    }
  };

  const settle = async (intent: Intent): Promise<ChargeReply> => {
    // Something on the way may answer in Stripe's place.
    if (intent.object !== 'payment_intent') throw new UnclearError('Stripe answered with something else', { outcomeUnknown: true });
    switch (intent.status) {
      case 'succeeded':
        return charged(intent);
      case 'processing':
        throw new NotNowError('Stripe is still processing the payment', PROCESSING_MS);
      case 'requires_action':
        return decline(intent, AUTHENTICATION);
      default:
        return decline(intent, codeOf(intent.last_payment_error ?? undefined));
    }
  };

  /** Finds a transaction's intent by its metadata. Stripe's search lags behind by up to a minute. */
  const find = async (transactionId: string): Promise<Intent | undefined> => {
    if (!/^[\w-]+$/.test(transactionId)) throw new RefusedError('the transaction id holds characters that cannot be searched for');
    const query = `metadata['transaction_id']:'${transactionId}'`;
    const { data } = await call(() => stripe.paymentIntents.search({ query, limit: 10 }));
    return data.find(({ status }) => status === 'succeeded') ?? data.find(({ status }) => status !== 'canceled') ?? data[0];
  };

  return {
    async charge({ transaction_id, amount, payment_reference, customer, started_at }) {
      if (amount === 0) return { outcome: 'charged', provider: PROVIDER, charge_id: `free_${transaction_id}`, simulated: false };
      const age = now() - Date.parse(started_at);
      if (!(age < KEY_LIVES_MS)) throw new TroubleError('the charge was asked for too long ago to be made', { outcomeUnknown: true });
      try {
        const create = (): Promise<Intent> =>
          stripe.paymentIntents.create(
            {
              amount,
              currency: 'gbp',
              payment_method: payment_reference,
              ...(customer === null ? {} : { customer }),
              allowed_payment_method_types: ['card'],
              confirm: true,
              off_session: true,
              metadata: { transaction_id },
            },
            { idempotencyKey: transaction_id },
          );
        return await settle(await call(create));
      } catch (error) {
        if (error instanceof DeclinedError) return error.intent === undefined ? { outcome: 'declined', provider: PROVIDER, code: error.code, simulated: false } : decline(error.intent, error.code);
        if (!(error instanceof UnclearError) && !(error instanceof MismatchError)) throw error;
        // Stripe repeats its own failures under their key for a day: what came of it stands with the intent alone.
        const found = await find(transaction_id);
        if (found === undefined) throw error;
        return settle(found);
      }
    },

    async lookUp({ transaction_id }) {
      const found = await find(transaction_id);
      return found === undefined ? { outcome: 'unknown' } : settle(found);
    },
  };
}

/** The card was refused. The intent, where Stripe made one, waits for another card. */
class DeclinedError extends Error {
  override readonly name = 'DeclinedError';
  readonly code: string;
  readonly intent: Intent | undefined;
  constructor(code: string, intent: Intent | undefined) {
    super(`declined: ${code}`);
    this.code = code;
    this.intent = intent;
  }
}

/** Stripe answered with a failure of its own: what was done must be looked up. */
class UnclearError extends TroubleError {}

/** Stripe knows the key by another request (the method's customer has changed since): that one must be looked up. Stripe itself is well. */
class MismatchError extends Error {
  override readonly name = 'MismatchError';
}

function openStripe({ secretKey, apiUrl }: StripeSettings, timeout: number): Stripe {
  const where = apiUrl === undefined ? undefined : new URL(apiUrl);
  return new Stripe(secretKey, {
    apiVersion: STRIPE_API_VERSION,
    // Process managers repeat, for longer than the library would.
    maxNetworkRetries: 0,
    timeout,
    telemetry: false,
    ...(where === undefined ? {} : { host: where.hostname, port: where.port === '' ? (where.protocol === 'http:' ? 80 : 443) : Number(where.port), protocol: where.protocol === 'http:' ? 'http' : 'https' }),
  });
}

function charged({ id }: Intent): ChargeReply {
  return { outcome: 'charged', provider: PROVIDER, charge_id: id, simulated: false };
}

function codeOf(error: { readonly decline_code?: string | undefined; readonly code?: string | undefined } | undefined): string {
  // The library leaves what it wasn't told empty.
  return [error?.decline_code, error?.code].find((code) => code !== undefined && code !== '') ?? 'generic_decline';
}

/** What a failure of the library means. Its own errors hold more than may be logged. */
function failed(error: unknown, now: () => number): never {
  if (!(error instanceof Stripe.errors.StripeError)) throw error;
  const { statusCode, requestId, code } = error;
  const where = `HTTP ${statusCode ?? 'none'}${code === undefined || code === '' ? '' : `, ${code}`}${requestId === undefined ? '' : `, request ${requestId}`}`;
  if (error instanceof Stripe.errors.StripeCardError) throw new DeclinedError(codeOf(error), error.payment_intent as Intent | undefined);
  if (error instanceof Stripe.errors.StripeRateLimitError) {
    throw new NotNowError(`Stripe limits our requests (${where})`, retryAfterMs(error.headers?.['retry-after'], now()) ?? RATE_LIMIT_PAUSE_MS);
  }
  if (error instanceof Stripe.errors.StripeConnectionError) throw new TroubleError('Stripe did not answer', { outcomeUnknown: true, cause: error.detail });
  if (error instanceof Stripe.errors.StripeIdempotencyError) throw new MismatchError(`Stripe knows this transaction by another request (${where})`);
  if (error instanceof Stripe.errors.StripeInvalidRequestError) throw new RefusedError(`Stripe refuses the request (${where}${error.param === undefined ? '' : `, ${error.param}`})`);
  if (statusCode === 409) throw new NotNowError(`Stripe is busy with this very request (${where})`, 0);
  if (error instanceof Stripe.errors.StripeAuthenticationError || error instanceof Stripe.errors.StripePermissionError) {
    throw new TroubleError(`Stripe refuses our key (${where})`, { outcomeUnknown: false });
  }
  throw new UnclearError(`Stripe failed (${where})`, { outcomeUnknown: true });
}

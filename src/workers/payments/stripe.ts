/**
 * Card payments by Stripe: one PaymentIntent a transaction, confirmed off-session on the stored card. Its idempotency key and metadata are the
 * transaction's id, so that a repeat changes nothing, and what became of it can be found when nobody knows.
 */
import type { Logger } from 'pino';
import { guard, type GuardOptions } from '../guard.js';
import type { ChargeReply } from '../messages.js';
import { NotNowError, RefusedError, TroubleError } from '../trouble.js';
import type { PaymentProvider } from './simulated.js';
import { codeOf, DeclinedError, failed, type Intent, KEY_LIVES_MS, MismatchError, openStripe, PROVIDER, type StripeSettings, UnclearError } from './stripeClient.js';
import { stripeRefunds } from './stripeRefunds.js';

/** What the worker works with. */
export interface StripeDeps {
  readonly logger: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Of one request; default 8 s. A charge and its cancellation both have to fit into what process managers wait for. */
  readonly timeoutMs?: number;
  readonly guard?: GuardOptions;
}

const TIMEOUT_MS = 8_000;
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

    ...stripeRefunds(stripe, call, now),
  };
}

function charged({ id }: Intent): ChargeReply {
  return { outcome: 'charged', provider: PROVIDER, charge_id: id, simulated: false };
}

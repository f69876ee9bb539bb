/**
 * One PaymentIntent per transaction, confirmed on the stored card while its buyer is there. The transaction's id is its
 * idempotency key, so a repeat changes nothing, and in its metadata, so it can be found.
 */
import type Stripe from 'stripe';
import { openCircuitBreaker, type RealProviderDeps } from '../circuitBreaker.js';
import type { AuthenticationReply, ChargeReply } from '../../messages/payments.js';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { RefusedError, ProviderError } from '../providerErrors.js';
import type { PaymentProvider } from './provider.js';
import { CURRENCY, intentIn, pageIn, penceTaken } from './stripeAnswers.js';
import {
  codeOf,
  DeclinedError,
  failed,
  type Intent,
  KEY_LIVES_MS,
  MismatchError,
  NeverTakenError,
  neverTaken,
  openStripe,
  PROVIDER,
  type StripeSettings,
  UnclearError,
} from './stripeClient.js';
import { stripeRefunds } from './stripeRefunds.js';

/** Longest time of one request. A charge and its cancellation must fit into the wait of process managers. */
const TIMEOUT_MS = 8_000;
const PROCESSING_MS = 5_000;
/** Action to be taken by Stripe's library in the buyer's app. */
const ACTION = 'use_stripe_sdk';

/** Makes a request through the circuit breaker. @throws errors of `stripeClient.ts` */
type Call = <T>(request: () => Promise<T>) => Promise<T>;

export function stripePayments(
  settings: StripeSettings,
  { logger, now, timeoutMs = TIMEOUT_MS, circuitBreaker: options }: RealProviderDeps,
): PaymentProvider {
  const stripe = openStripe(settings, timeoutMs);
  const breaker = openCircuitBreaker(PROVIDER, logger, now, options);
  const call: Call = (request) => breaker.run(() => request().catch((error: unknown) => failed(error, now)));
  const { find, retrieve, settle, decline } = intentsOf(stripe, call);

  /** Declines, unless the payment exists: an earlier request may have made it before the card was gone. */
  const refuse = async (transactionId: string, error: NeverTakenError): Promise<ChargeReply | AuthenticationReply> => {
    const found = await find(transactionId);
    if (found !== undefined) return settle(found);
    logger.warn({ err: error }, 'a payment was declined, since Stripe will never take it');
    return { outcome: 'declined', provider: PROVIDER, code: error.code, simulated: false };
  };

  return {
    async charge({ transaction_id, amount, payment_reference, customer, started_at }) {
      if (amount === 0)
        return { outcome: 'charged', provider: PROVIDER, charge_id: `free_${transaction_id}`, simulated: false };
      const age = now() - Date.parse(started_at);
      if (!(age < KEY_LIVES_MS))
        throw new ProviderError('the charge was asked for too long ago to be made', { outcomeUnknown: true });
      try {
        const create = (): Promise<Intent> =>
          stripe.paymentIntents.create(
            {
              amount,
              currency: CURRENCY,
              payment_method: payment_reference,
              ...(customer === null ? {} : { customer }),
              allowed_payment_method_types: ['card'],
              confirm: true,
              // The buyer waits for the answer, so their bank may ask for authentication.
              use_stripe_sdk: true,
              metadata: { transaction_id },
            },
            { idempotencyKey: transaction_id },
          );
        const made = await call(() =>
          create()
            .catch(neverTaken)
            .then((answer) => intentIn(answer)),
        );
        // For a day Stripe repeats its first answer under this key, failures too: only the intent has the present
        // status.
        return await settle(made.status === 'processing' ? ((await retrieve(made.id)) ?? made) : made);
      } catch (error) {
        if (error instanceof DeclinedError)
          return error.intent === undefined
            ? { outcome: 'declined', provider: PROVIDER, code: error.code, simulated: false }
            : decline(intentIn(error.intent), error.code);
        if (error instanceof NeverTakenError) return refuse(transaction_id, error);
        if (!(error instanceof UnclearError) && !(error instanceof MismatchError)) throw error;
        const found = await find(transaction_id);
        if (found === undefined) throw error;
        return settle(found);
      }
    },

    async lookUp({ transaction_id, payment_id }) {
      const found = await (payment_id === null ? find(transaction_id) : retrieve(payment_id));
      return found === undefined ? { outcome: 'unknown' } : settle(found);
    },

    async cancel({ payment_id, code }) {
      const intent = await retrieve(payment_id);
      if (intent === undefined) throw new RefusedError('Stripe does not know the payment that is to be cancelled');
      if (intent.status === 'succeeded') return charged(intent);
      if (intent.status === 'processing') throw stillProcessing();
      return decline(intent, code);
    },

    async action({ payment_id }) {
      const intent = await retrieve(payment_id);
      if (intent === undefined || intent.client_secret === null) return { outcome: 'unknown' };
      return { outcome: 'action', client_secret: intent.client_secret, waiting: intent.status === 'requires_action' };
    },

    async find({ payment_id }) {
      const transaction_id = (await retrieve(payment_id))?.metadata['transaction_id'];
      return transaction_id === undefined || transaction_id === ''
        ? { outcome: 'unknown' }
        : { outcome: 'found', transaction_id };
    },

    ...stripeRefunds(stripe, call, now),
  };
}

/** The payments at Stripe: finding one, and bringing it to an outcome. */
function intentsOf(stripe: Stripe, call: Call) {
  /** Cancels the payment, so that it can't succeed later, and declines it. If it has succeeded, it is charged. */
  const decline = async (intent: Intent, code: string): Promise<ChargeReply> => {
    const cancelled = intent.status === 'canceled' ? intent : await cancel(intent.id);
    if (cancelled.status === 'succeeded') return charged(cancelled);
    return { outcome: 'declined', provider: PROVIDER, code, simulated: false };
  };

  const cancel = async (id: string): Promise<Intent> => {
    try {
      const cancelled = await call(() => stripe.paymentIntents.cancel(id).then((answer) => intentIn(answer, id)));
      if (cancelled.status === 'canceled' || cancelled.status === 'succeeded') return cancelled;
      throw new UnclearError('Stripe did not cancel the payment', { outcomeUnknown: true });
    } catch (error) {
      // The payment was cancelled already, or has succeeded, or its buyer has just authenticated.
      const current = error instanceof RefusedError ? await retrieve(id) : undefined;
      if (current?.status === 'canceled' || current?.status === 'succeeded') return current;
      if (current?.status === 'processing') throw stillProcessing();
      throw error;
    }
  };

  const settle = async (intent: Intent): Promise<ChargeReply | AuthenticationReply> => {
    switch (intent.status) {
      case 'succeeded':
        return charged(intent);
      case 'processing':
        throw stillProcessing();
      case 'requires_action':
        return {
          outcome: 'authentication',
          provider: PROVIDER,
          payment_id: intent.id,
          action: intent.next_action?.type ?? ACTION,
          simulated: false,
        };
      default:
        return decline(intent, codeOf(intent.last_payment_error ?? undefined));
    }
  };

  /** Finds the payment of a transaction. Stripe's search lags behind by up to a minute. */
  const find = async (transactionId: string): Promise<Intent | undefined> => {
    if (!/^[\w-]+$/.test(transactionId))
      throw new RefusedError('the transaction id holds characters that cannot be searched for');
    const query = `metadata['transaction_id']:'${transactionId}'`;
    const { data } = await call(() => stripe.paymentIntents.search({ query, limit: 10 }).then(pageIn));
    const found =
      data.find(({ status }) => status === 'succeeded') ?? data.find(({ status }) => status !== 'canceled') ?? data[0];
    return found === undefined ? undefined : intentIn(found);
  };

  const retrieve = async (id: string): Promise<Intent | undefined> => {
    try {
      return await call(() => stripe.paymentIntents.retrieve(id).then((answer) => intentIn(answer, id)));
    } catch (error) {
      if (error instanceof RefusedError && error.code === 'resource_missing') return undefined;
      throw error;
    }
  };

  return { find, retrieve, settle, decline };
}

function stillProcessing(): RetryLaterError {
  return new RetryLaterError('Stripe is still processing the payment', PROCESSING_MS);
}

function charged(intent: Intent): ChargeReply {
  return { outcome: 'charged', provider: PROVIDER, charge_id: intent.id, amount: penceTaken(intent), simulated: false };
}

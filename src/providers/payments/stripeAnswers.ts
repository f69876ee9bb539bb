/** A proxy may answer in Stripe's place, and such an answer proves nothing about money. */
import type Stripe from 'stripe';
import { RefusedError } from '../providerErrors.js';
import { type Intent, UnclearError } from './stripeClient.js';

export const CURRENCY = 'gbp';

/** Checks that the answer is a payment. `id`: id of the requested payment. @throws UnclearError */
export function intentIn(answer: Intent, id?: string): Intent {
  const { object, status, metadata, amount_received } = answer as Partial<Intent>;
  const sound =
    object === 'payment_intent' &&
    isId(answer.id) &&
    (id === undefined || answer.id === id) &&
    typeof status === 'string' &&
    metadata instanceof Object;
  if (!sound || (status === 'succeeded' && !Number.isInteger(amount_received))) throw somethingElse();
  return answer;
}

/** The pence that Stripe took. @throws RefusedError for another currency */
export function penceTaken({ id, amount_received: amount, currency }: Intent): number {
  if (currency !== CURRENCY)
    throw new RefusedError(
      `Stripe took ${amount} of the smallest unit of ${currency} for this transaction (${id}), which is paid in ${CURRENCY}: give them back there, then discard this`,
    );
  return amount;
}

/** @throws UnclearError */
export function refundIn(answer: Stripe.Refund): Stripe.Refund {
  const { object, id, status } = answer as Partial<Stripe.Refund>;
  if (object !== 'refund' || !isId(id) || status === undefined) throw somethingElse();
  return answer;
}

/** Checks that the answer is a list, since an unlisted payment counts as never made. @throws UnclearError */
export function pageIn<P extends { readonly object: string; readonly data: readonly unknown[] }>(answer: P): P {
  const { object, data } = answer as Partial<P>;
  if ((object !== 'list' && object !== 'search_result') || !Array.isArray(data)) throw somethingElse();
  return answer;
}

const isId = (id: unknown): boolean => typeof id === 'string' && id !== '';

function somethingElse(): UnclearError {
  return new UnclearError('Stripe answered with something else', { outcomeUnknown: true });
}

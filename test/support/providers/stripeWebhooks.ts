/**
 * Messages as Stripe sends them to webhook endpoints, signed by Stripe's own library (https://docs.stripe.com/webhooks,
 * https://docs.stripe.com/api/events/object).
 */
import { randomBytes } from 'node:crypto';
import Stripe from 'stripe';
import { STRIPE_API_VERSION } from '../../../src/providers/payments/stripeClient.js';
import type { StripeIntent } from './stripeServer.js';

/** A message as it is sent. */
export interface Webhook {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A message of a type about an object. `id`: the same when it is sent again. */
export function stripeMessage(type: string, object: object, id = `evt_${randomBytes(12).toString('hex')}`): object {
  return {
    id,
    object: 'event',
    api_version: STRIPE_API_VERSION,
    created: Math.floor(Date.now() / 1000),
    data: { object },
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type,
  };
}

/** Signs a message. `agoS`: so many seconds ago. */
export function signed(message: object | string, secret: string, agoS = 0): Webhook {
  const body = typeof message === 'string' ? message : JSON.stringify(message);
  const signature = Stripe.webhooks.generateTestHeaderString({
    payload: body,
    secret,
    timestamp: Math.floor(Date.now() / 1000) - agoS,
  });
  return { body, headers: { 'stripe-signature': signature, 'content-type': 'application/json; charset=utf-8' } };
}

/** `payment_intent.succeeded` of an intent, or with some of it replaced. */
export const succeeded = (intent: Pick<StripeIntent, 'id' | 'amount' | 'metadata'>, id?: string): object =>
  stripeMessage(
    'payment_intent.succeeded',
    {
      ...intent,
      object: 'payment_intent',
      amount_received: intent.amount,
      status: 'succeeded',
      last_payment_error: null,
    },
    id,
  );

/** `payment_intent.payment_failed` of an intent. */
export const paymentFailed = (
  intent: Pick<StripeIntent, 'id' | 'amount' | 'metadata'>,
  code: string,
  id?: string,
): object =>
  stripeMessage(
    'payment_intent.payment_failed',
    {
      ...intent,
      object: 'payment_intent',
      amount_received: 0,
      status: 'requires_payment_method',
      last_payment_error: { type: 'invalid_request_error', code },
    },
    id,
  );

/**
 * `charge.refunded`: so much of the intent's charge has been given back in all, pence. Its metadata are the intent's.
 */
export const refunded = (
  {
    id: payment_intent,
    amount,
    metadata,
    latest_charge,
  }: Pick<StripeIntent, 'id' | 'amount' | 'metadata' | 'latest_charge'>,
  total: number,
  id?: string,
): object =>
  stripeMessage(
    'charge.refunded',
    {
      id: latest_charge,
      object: 'charge',
      amount,
      amount_refunded: total,
      refunded: total === amount,
      payment_intent,
      metadata,
    },
    id,
  );

/** `charge.dispute.created` or `.closed`. A dispute has no metadata of the payment. */
export const dispute = (
  kind: 'created' | 'closed',
  { id: payment_intent, amount, latest_charge }: Pick<StripeIntent, 'id' | 'amount' | 'latest_charge'>,
  { disputeId, status }: { readonly disputeId: string; readonly status: string },
  id?: string,
): object =>
  stripeMessage(
    `charge.dispute.${kind}`,
    {
      id: disputeId,
      object: 'dispute',
      amount,
      charge: latest_charge,
      currency: 'gbp',
      metadata: {},
      payment_intent,
      reason: 'fraudulent',
      status,
    },
    id,
  );

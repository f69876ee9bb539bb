/**
 * Stripe's API as far as it is used, from its public description (https://docs.stripe.com/api,
 * https://docs.stripe.com/testing): PaymentIntents that are created and confirmed in one, refunds, idempotency keys
 * that are kept for 24 h with whatever was answered, test payment methods, search, a ledger.
 */
import { randomBytes } from 'node:crypto';
import { STRIPE_API_VERSION } from '../../../src/providers/payments/stripeClient.js';
import { type Answered, type Requested, openStandIn, type StandIn } from './standIn.js';

/** An intent, with the fields that are used. */
export interface StripeIntent {
  readonly id: string;
  readonly object: 'payment_intent';
  amount: number;
  amount_received: number;
  currency: string;
  readonly customer: string | null;
  readonly payment_method: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly client_secret: string;
  status: 'succeeded' | 'requires_payment_method' | 'requires_action' | 'processing' | 'canceled';
  latest_charge: string | null;
  last_payment_error: object | null;
  next_action: object | null;
}

/** A refund, with the fields that are used. */
export interface StripeRefund {
  readonly id: string;
  readonly object: 'refund';
  readonly amount: number;
  readonly currency: string;
  readonly charge: string | null;
  readonly payment_intent: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Seconds since the epoch. */
  readonly created: number;
  status: 'succeeded' | 'pending' | 'failed';
  failure_reason?: string;
}

/** The stand-in and its ledger. */
export interface StripeServer extends StandIn {
  readonly secretKey: string;
  readonly intents: StripeIntent[];
  readonly refunds: StripeRefund[];
  /** How often a transaction has been charged. */
  charges(transactionId: string): number;
  /** How much of a transaction has been given back, pence. */
  refunded(transactionId: string): number;
  /** The buyer answers the challenge of their bank. `proves` false: they fail to. */
  authenticate(intentId: string, proves: boolean): StripeIntent;
  /** Somebody gives money back by hand. */
  refundByHand(intentId: string, amount: number): void;
  /** Its clock goes forward. */
  advance(ms: number): void;
  /** Whether search finds what was made; Stripe's lags behind. */
  searchable: boolean;
}

const KEY_MS = 24 * 3_600_000;

/** Decline codes of test payment methods, after `pm_card_` and `pm_card_visa_`. */
const DECLINES: Readonly<Record<string, readonly [code: string, declineCode: string]>> = {
  chargeDeclined: ['card_declined', 'generic_decline'],
  chargeDeclinedInsufficientFunds: ['card_declined', 'insufficient_funds'],
  chargeDeclinedLostCard: ['card_declined', 'lost_card'],
  chargeDeclinedStolenCard: ['card_declined', 'stolen_card'],
  chargeDeclinedExpiredCard: ['expired_card', 'expired_card'],
  chargeDeclinedIncorrectCvc: ['incorrect_cvc', 'incorrect_cvc'],
  chargeDeclinedProcessingError: ['processing_error', 'processing_error'],
  chargeDeclinedVelocityLimitExceeded: ['card_declined', 'card_velocity_exceeded'],
};

/** Methods whose buyer is challenged by their bank, with what becomes of the charge after that. */
const CHALLENGES: Readonly<Record<string, readonly [code: string, declineCode: string] | null>> = {
  authenticationRequired: null,
  threeDSecure2Required: null,
  authenticationRequiredChargeDeclinedInsufficientFunds: ['card_declined', 'insufficient_funds'],
};

const idOf = (prefix: string): string => `${prefix}_${randomBytes(12).toString('hex')}`;
const failure = (status: number, error: Readonly<Record<string, unknown>>): Answered => ({
  status,
  body: { error },
  headers: { 'Request-Id': idOf('req') },
});
const invalid = (code: string, message: string, param?: string): Answered =>
  failure(400, {
    type: 'invalid_request_error',
    code,
    message,
    ...(param === undefined ? {} : { param }),
    doc_url: `https://stripe.com/docs/error-codes/${code}`,
  });

function metadataOf(form: URLSearchParams): Record<string, string> {
  const metadata: Record<string, string> = {};
  for (const [name, value] of form) {
    const key = /^metadata\[(\w+)\]$/.exec(name)?.[1];
    if (key !== undefined) metadata[key] = value;
  }
  return metadata;
}

/** Opens it. */
export async function openStripeServer(): Promise<StripeServer> {
  const secretKey = `sk_test_${randomBytes(12).toString('hex')}`;
  const intents: StripeIntent[] = [];
  const refunds: StripeRefund[] = [];
  const keys = new Map<string, { readonly request: string; readonly at: number; readonly answer: Answered }>();
  let ahead = 0;
  const now = (): number => Date.now() + ahead;

  const confirm = (intent: StripeIntent): Answered => {
    const method = /^pm_card_(?:visa_)?(\w+)$/.exec(intent.payment_method ?? '')?.[1] ?? '';
    if (!(intent.payment_method ?? '').startsWith('pm_'))
      return invalid('resource_missing', `No such PaymentMethod: '${intent.payment_method}'`, 'payment_method');
    intents.push(intent);
    if (method === 'processing') return { status: 200, body: { ...Object.assign(intent, { status: 'processing' }) } };
    if (Object.hasOwn(CHALLENGES, method)) {
      return {
        status: 200,
        body: {
          ...Object.assign(intent, {
            status: 'requires_action',
            next_action: { type: 'use_stripe_sdk', use_stripe_sdk: { type: 'three_d_secure_redirect' } },
          }),
        },
      };
    }
    const declined = Object.hasOwn(DECLINES, method) ? DECLINES[method] : undefined;
    intent.latest_charge = idOf('ch');
    if (declined === undefined) {
      Object.assign(intent, { status: 'succeeded', amount_received: intent.amount });
      return { status: 200, body: { ...intent } };
    }
    const [code, decline_code] = declined;
    intent.last_payment_error = { type: 'card_error', code, decline_code, message: 'Your card was declined.' };
    return failure(402, {
      type: 'card_error',
      code,
      decline_code,
      message: 'Your card was declined.',
      charge: intent.latest_charge,
      payment_intent: { ...intent },
    });
  };

  const create = (form: URLSearchParams): Answered => {
    const amount = Number(form.get('amount'));
    if (form.has('payment_method_types[0]'))
      return invalid('parameter_unknown', 'Received unknown parameter: payment_method_types', 'payment_method_types');
    if (!(amount >= 30)) return invalid('amount_too_small', 'Amount must be at least £0.30 gbp', 'amount');
    if (amount > 99_999_999) return invalid('amount_too_large', 'Amount must be no more than £999,999.99', 'amount');
    if (form.get('payment_method') === 'pm_card_detached') {
      return failure(400, {
        type: 'invalid_request_error',
        message:
          'The provided PaymentMethod was previously used with a PaymentIntent without Customer attachment, or was detached from a Customer. It may not be used again.',
      });
    }
    if (form.has('off_session') || form.get('confirm') !== 'true' || form.get('use_stripe_sdk') !== 'true')
      return invalid('parameter_missing', 'Only payments confirmed on-session by the SDK are stood in for');
    const metadata = metadataOf(form);
    const id = idOf('pi');
    return confirm({
      id,
      object: 'payment_intent',
      amount,
      amount_received: 0,
      currency: form.get('currency') ?? '',
      customer: form.get('customer'),
      payment_method: form.get('payment_method'),
      metadata,
      created: Math.floor(now() / 1000),
      client_secret: `${id}_secret_${randomBytes(8).toString('hex')}`,
      status: 'requires_payment_method',
      latest_charge: null,
      last_payment_error: null,
      next_action: null,
    });
  };

  const cancel = (intent: StripeIntent): Answered => {
    if (!['requires_payment_method', 'requires_action', 'processing'].includes(intent.status)) {
      return invalid(
        'payment_intent_unexpected_state',
        `You cannot cancel this PaymentIntent because it has a status of ${intent.status}.`,
      );
    }
    intent.status = 'canceled';
    intent.next_action = null;
    return { status: 200, body: { ...intent } };
  };

  const given = (intentId: string): number =>
    refunds.reduce(
      (sum, one) => (one.payment_intent === intentId && one.status !== 'failed' ? sum + one.amount : sum),
      0,
    );

  const refund = (form: URLSearchParams): Answered => {
    const intent = intents.find(({ id }) => id === form.get('payment_intent'));
    if (intent === undefined)
      return invalid('resource_missing', `No such payment_intent: '${form.get('payment_intent')}'`, 'payment_intent');
    if (intent.status !== 'succeeded')
      return invalid(
        'payment_intent_unexpected_state',
        `This PaymentIntent (${intent.id}) does not have a successful charge to refund.`,
      );
    const amount = Number(form.get('amount'));
    const left = intent.amount - given(intent.id);
    if (left === 0)
      return invalid('charge_already_refunded', `Charge ${intent.latest_charge} has already been refunded.`);
    if (!(amount >= 1))
      return invalid('parameter_invalid_integer', 'This value must be greater than or equal to 1.', 'amount');
    if (amount > left)
      return invalid(
        '',
        `Refund amount (£${amount / 100}) is greater than unrefunded amount on charge (£${left / 100})`,
        'amount',
      );
    const made: StripeRefund = {
      id: idOf('re'),
      object: 'refund',
      amount,
      currency: intent.currency,
      charge: intent.latest_charge,
      payment_intent: intent.id,
      metadata: metadataOf(form),
      created: Math.floor(now() / 1000),
      ...(intent.payment_method === 'pm_card_refundFail'
        ? { status: 'failed', failure_reason: 'expired_or_canceled_card' }
        : { status: intent.payment_method === 'pm_card_pendingRefund' ? 'pending' : 'succeeded' }),
    };
    refunds.unshift(made);
    return { status: 200, body: { ...made } };
  };

  const within = (query: URLSearchParams, created: number): boolean =>
    created >= Number(query.get('created[gte]') ?? 0) &&
    created < Number(query.get('created[lt]') ?? Number.POSITIVE_INFINITY);

  /** Most recent first. */
  const page = (query: URLSearchParams, url: string, all: readonly { readonly id: string }[]): Answered => {
    const start = query.has('starting_after') ? all.findIndex(({ id }) => id === query.get('starting_after')) + 1 : 0;
    const end = start + Number(query.get('limit') ?? 10);
    return {
      status: 200,
      body: { object: 'list', url, has_more: end < all.length, data: all.slice(start, end).map((one) => ({ ...one })) },
    };
  };

  const expanded = (one: StripeRefund, by: URLSearchParams, name: string): object =>
    [...by.values()].includes(name)
      ? { ...one, payment_intent: intents.find(({ id }) => id === one.payment_intent) ?? one.payment_intent }
      : one;

  const listRefunds = (query: URLSearchParams): Answered => {
    const all = refunds.filter(
      ({ payment_intent, created }) =>
        within(query, created) && (!query.has('payment_intent') || payment_intent === query.get('payment_intent')),
    );
    return page(
      query,
      '/v1/refunds',
      all.map((one) => expanded(one, query, 'data.payment_intent')) as { id: string }[],
    );
  };

  const listCharges = (query: URLSearchParams): Answered => {
    const all = intents
      .toReversed()
      .filter(({ latest_charge, created }) => latest_charge !== null && within(query, created));
    return page(
      query,
      '/v1/charges',
      all.map(({ id, amount, currency, metadata, created, status, latest_charge }) => ({
        id: latest_charge ?? '',
        object: 'charge',
        amount,
        currency,
        metadata,
        created,
        payment_intent: id,
        status: status === 'succeeded' ? 'succeeded' : 'failed',
      })),
    );
  };

  const search = (query: string): Answered => {
    const wanted = /^metadata\['transaction_id'\]:'([^']+)'$/.exec(query)?.[1];
    if (wanted === undefined)
      return invalid('parameter_invalid_string', 'We were unable to parse your search query.', 'query');
    const data = server.searchable ? intents.filter(({ metadata }) => metadata['transaction_id'] === wanted) : [];
    return {
      status: 200,
      body: {
        object: 'search_result',
        url: '/v1/payment_intents/search',
        has_more: false,
        next_page: null,
        data: data.map((intent) => ({ ...intent })),
      },
    };
  };

  const route = ({ method, path, query, body }: Requested): Answered => {
    if (path === '/v1/charges') return listCharges(query);
    const refundId = /^\/v1\/refunds\/(\w+)$/.exec(path)?.[1];
    if (refundId !== undefined) {
      const found = refunds.find((one) => one.id === refundId);
      return found === undefined
        ? failure(404, {
            type: 'invalid_request_error',
            code: 'resource_missing',
            message: `No such refund: '${refundId}'`,
          })
        : { status: 200, body: expanded(found, query, 'payment_intent') };
    }
    if (path === '/v1/refunds') return method === 'POST' ? refund(new URLSearchParams(body)) : listRefunds(query);
    const [, id, action] = /^\/v1\/payment_intents(?:\/(\w+))?(?:\/(\w+))?$/.exec(path) ?? [];
    if (method === 'POST' && id === undefined) return create(new URLSearchParams(body));
    if (method === 'GET' && id === 'search') return search(query.get('query') ?? '');
    const intent = intents.find((one) => one.id === id);
    if (intent === undefined)
      return failure(404, {
        type: 'invalid_request_error',
        code: 'resource_missing',
        message: `No such payment_intent: '${id}'`,
      });
    if (method === 'GET') return { status: 200, body: { ...intent } };
    if (method === 'POST' && action === 'cancel') return cancel(intent);
    return failure(404, { type: 'invalid_request_error', message: `Unrecognized request URL (${method}: ${path}).` });
  };

  /**
   * As documented: whatever an endpoint answered under a key is answered again for 24 h, failures of its own too; what
   * fails validation is not kept.
   */
  const handle = (requested: Requested, failing: boolean): Answered => {
    if (requested.headers.authorization !== `Bearer ${secretKey}`)
      return failure(401, { type: 'invalid_request_error', message: 'Invalid API Key provided: sk_test_****' });
    if (requested.headers['stripe-version'] !== STRIPE_API_VERSION)
      return invalid('invalid_version', 'another version was pinned');
    const key = requested.headers['idempotency-key'];
    if (requested.method !== 'POST' || typeof key !== 'string') return route(requested);
    const request = `${requested.path}?${requested.body}`;
    const known = keys.get(key);
    if (known !== undefined && now() - known.at < KEY_MS) {
      if (known.request === request)
        return { ...known.answer, headers: { ...known.answer.headers, 'Idempotent-Replayed': 'true' } };
      return failure(400, {
        type: 'idempotency_error',
        message: 'Keys for idempotent requests can only be used with the same parameters they were first used with.',
      });
    }
    const answer = route(requested);
    if (answer.status !== 400 && answer.status !== 404)
      keys.set(key, { request, at: now(), answer: failing ? provider.error : answer });
    return answer;
  };

  const provider = {
    handle,
    error: failure(500, { type: 'api_error', message: 'An unknown error occurred' }),
    limited: failure(429, { type: 'invalid_request_error', code: 'rate_limit', message: 'Too many requests' }),
  };
  const server: StripeServer = Object.assign(await openStandIn(provider), {
    secretKey,
    intents,
    refunds,
    authenticate(intentId: string, proves: boolean) {
      const intent = intents.find(({ id }) => id === intentId);
      if (intent?.status !== 'requires_action') throw new Error(`no challenge is open for ${intentId}`);
      const method = /^pm_card_(\w+)$/.exec(intent.payment_method ?? '')?.[1] ?? '';
      const [code, decline_code] = proves
        ? (CHALLENGES[method] ?? [])
        : ['payment_intent_authentication_failure', undefined];
      intent.next_action = null;
      intent.latest_charge = proves ? idOf('ch') : null;
      intent.status = code === undefined ? 'succeeded' : 'requires_payment_method';
      intent.amount_received = code === undefined ? intent.amount : 0;
      if (code !== undefined)
        intent.last_payment_error = {
          type: proves ? 'card_error' : 'invalid_request_error',
          code,
          ...(decline_code === undefined ? {} : { decline_code }),
          message: 'It came to nothing.',
        };
      return intent;
    },
    refundByHand(intentId: string, amount: number) {
      const made = refund(new URLSearchParams({ payment_intent: intentId, amount: String(amount) }));
      if (made.status !== 200) throw new Error(JSON.stringify(made.body));
    },
    refunded: (transactionId: string) =>
      intents.reduce(
        (sum, { id, metadata }) => (metadata['transaction_id'] === transactionId ? sum + given(id) : sum),
        0,
      ),
    charges: (transactionId: string) =>
      intents.filter(({ status, metadata }) => status === 'succeeded' && metadata['transaction_id'] === transactionId)
        .length,
    advance(ms: number) {
      ahead += ms;
    },
    searchable: true,
  });
  return server;
}

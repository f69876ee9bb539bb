/** Stripe's webhook: verifies events and records them in the transaction's stream, for the process managers. */
import type { Logger } from 'pino';
import { recordProviderEvent, PROVIDER_USER } from '../../commands/recordProviderEvent.js';
import type { PaymentQuestions } from '../../commands/paymentAction.js';
import type { EventStore } from '../../ports/eventStore.js';
import {
  type EventReader,
  MalformedEventError,
  type OtherMessage,
  type ProviderMessage,
} from '../../providers/payments/providerEvents.js';
import { SignatureError } from '../../providers/signature.js';
import { HttpError } from '../pipeline/errors.js';
import type { Answer, Call, Route, Schema } from '../pipeline/route.js';
import { refuseForgeries } from './forgeries.js';
import { received, receivedAnswers } from './received.js';
import { integerSchema, textSchema } from '../pipeline/schemas.js';

interface WebhookDeps {
  readonly events: EventStore;
  readonly read: EventReader;
  readonly questions: Pick<PaymentQuestions, 'transactionOf' | 'refundedByOthers'>;
  /** Whether payments are simulated, and so have no ledger to query. */
  readonly simulated: boolean;
  readonly logger: Logger;
  /** The present, ISO 8601, UTC. */
  now(): string;
}

const TRANSACTION_ID = /^[\w-]{1,64}$/;

const BODY: Schema = {
  title: 'StripeEvent',
  type: 'object',
  required: ['id', 'type', 'created', 'data'],
  properties: {
    id: textSchema(),
    type: textSchema(
      'Handled: `payment_intent.succeeded`, `payment_intent.payment_failed`, `charge.refunded`, `refund.failed`, `refund.updated`, `charge.dispute.created`, `charge.dispute.closed`.',
    ),
    created: integerSchema('Seconds since 1970.'),
    data: { type: 'object', required: ['object'], properties: { object: { type: 'object' } } },
  },
};

const BODY_EXAMPLE = {
  id: 'evt_3OyAbCdEfGhIjKlM',
  object: 'event',
  type: 'payment_intent.succeeded',
  created: 1_795_000_000,
  data: {
    object: {
      id: 'pi_3OyAbCdEfGhIjKlM',
      object: 'payment_intent',
      amount_received: 375,
      metadata: { transaction_id: '0f7d3a61c5b84e2f9a6d1c3e5b7f9024' },
    },
  },
};

export function webhookRoutes(deps: WebhookDeps): Route[] {
  const refuseForgery = refuseForgeries(deps.logger);

  const read = async (call: Call): Promise<ProviderMessage | OtherMessage> => {
    try {
      return deps.read(call.bytes, call.header('stripe-signature') ?? '');
    } catch (error) {
      if (error instanceof SignatureError) return refuseForgery(call, error);
      if (!(error instanceof MalformedEventError)) throw error;
      deps.logger.error({ req: call.requestId, cause: error.message }, 'a webhook of Stripe could not be understood');
      // The sender has proved who it is: the cause names fields and no values.
      throw new HttpError('invalid_event', { message: `Invalid event: ${error.message}.` });
    }
  };

  const ignored = (message: ProviderMessage | OtherMessage, why: string): Answer => {
    deps.logger.info({ event: message.id, why }, 'a webhook was ignored');
    return received('ignored');
  };

  return [
    {
      method: 'POST',
      path: '/webhooks/stripe',
      operation: 'receiveStripeEvent',
      summary: 'Events of Stripe',
      description:
        'For Stripe, which signs its requests. Each message is recorded once, in whatever order they arrive. Messages about no transaction of this installation get 200 and ' +
        '`ignored`, so that Stripe does not send them again; after a 503 it sends the message again.',
      tag: 'Webhooks',
      caller: 'none',
      noStore: true,
      signature: {
        header: 'Stripe-Signature',
        description: 'Time and HMAC of the body, by the secret of this endpoint; valid for five minutes.',
      },
      body: BODY,
      bodyExample: BODY_EXAMPLE,
      answers: receivedAnswers(
        'WebhookReceived',
        'it is about no transaction of this installation, or of a kind that is not handled',
      ),
      errors: ['invalid_signature', 'invalid_event', 'too_many_requests'],
      async handle(call) {
        const message = await read(call);
        if (!('providerEvent' in message)) return ignored(message, 'not handled');
        const transactionId = message.transactionId ?? (await deps.questions.transactionOf(message.paymentId));
        // Metadata of other systems may hold foreign ids.
        if (transactionId === undefined || !TRANSACTION_ID.test(transactionId))
          return ignored(message, 'no transaction named');
        const context = {
          commandId: `stripe-${message.id}`,
          correlationId: call.requestId,
          requestId: call.requestId,
          by: { user: PROVIDER_USER },
          ...(deps.simulated ? { simulated: true as const } : {}),
          now: deps.now(),
        };
        const outcome = await recordProviderEvent(
          deps.events,
          transactionId,
          message.providerEvent,
          context,
          deps.simulated ? undefined : deps.questions,
        );
        if (outcome === 'foreign') return ignored(message, 'no transaction of ours');
        return received(outcome);
      },
    },
  ];
}

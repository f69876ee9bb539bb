/** Twilio's status callback: records failed deliveries in the notification's stream. */
import type { Logger } from 'pino';
import { noteUndelivered } from '../../commands/noteDelivery.js';
import type { EventStore } from '../../ports/eventStore.js';
import { notificationKey } from '../../messages/notifications.js';
import {
  type CallbackReader,
  type DeliveryReport,
  replyOf,
  TWILIO_CALLBACK_PATH,
} from '../../providers/notifications/callbacks.js';
import type { Ledger } from '../../providers/notifications/ledger.js';
import { SignatureError } from '../../providers/signature.js';
import type { Call, Route, Schema } from '../pipeline/route.js';
import { refuseForgeries } from './forgeries.js';
import { received, receivedAnswers } from './received.js';
import { integerSchema, querySchema, textSchema } from '../pipeline/schemas.js';

interface TwilioWebhookDeps {
  readonly events: EventStore;
  readonly read: CallbackReader;
  readonly ledger: Pick<Ledger, 'learn'>;
  readonly logger: Logger;
  now(): string;
}

const TWILIO_USER = 'system:twilio';
/** How long to wait for the record that the message was sent, ms. Twilio waits for 15 s. */
const WAIT_MS = 5_000;

const BODY: Schema = {
  title: 'TwilioStatusCallback',
  type: 'object',
  required: ['AccountSid', 'MessageSid', 'MessageStatus'],
  properties: {
    AccountSid: textSchema(),
    MessageSid: textSchema(),
    MessageStatus: textSchema('`failed` and `undelivered` are recorded; all others mean that Twilio has the message.'),
    ErrorCode: textSchema('https://www.twilio.com/docs/api/errors'),
  },
};

export function twilioWebhookRoutes({ events, read, ledger, logger, now }: TwilioWebhookDeps): Route[] {
  const refuseForgery = refuseForgeries(logger);

  const report = async (call: Call): Promise<DeliveryReport | undefined> => {
    try {
      return read({
        signature: call.header('x-twilio-signature') ?? '',
        query: call.rawQuery,
        body: call.bytes.toString('utf8'),
      });
    } catch (error) {
      if (error instanceof SignatureError) return refuseForgery(call, error);
      throw error;
    }
  };

  return [
    {
      method: 'POST',
      path: TWILIO_CALLBACK_PATH,
      operation: 'receiveTwilioStatus',
      summary: 'The delivery of a message by Twilio',
      description:
        'For Twilio, which signs its requests. A failed delivery is recorded once, with its cause, however often Twilio calls.',
      tag: 'Webhooks',
      caller: 'none',
      noStore: true,
      signature: {
        header: 'X-Twilio-Signature',
        description: "HMAC of the address and the form's fields, by the account's auth token.",
      },
      query: querySchema({
        gift: textSchema('The gift that the message is about.'),
        attempt: integerSchema('The number of the notification; absent: the first.', { minimum: 1 }),
      }),
      body: BODY,
      bodyExample: {
        AccountSid: 'AC0123456789abcdef0123456789abcdef',
        MessageSid: 'SM0123456789abcdef0123456789abcdef',
        MessageStatus: 'undelivered',
        ErrorCode: '30005',
      },
      answers: receivedAnswers('DeliveryReceived', 'it is about no gift, or about a status that does not matter'),
      errors: ['invalid_signature', 'too_many_requests'],
      async handle(call) {
        const callback = await report(call);
        if (callback === undefined) return received('ignored');
        // The ledger learns the outcome for a worker that doesn't know whether the message was sent.
        await ledger.learn(notificationKey({ gift_id: callback.giftId, attempt: callback.attempt }), replyOf(callback));
        if (callback.outcome === 'taken') return received('known');
        const { giftId, attempt, messageId, outcome } = callback;
        const context = {
          commandId: `twilio-${messageId}-undelivered`,
          correlationId: call.requestId,
          requestId: call.requestId,
          by: { user: TWILIO_USER },
          now: now(),
        };
        const noted = await noteUndelivered(
          events,
          giftId,
          { attempt, provider: 'twilio', message_id: messageId, cause: outcome.failed },
          context,
          WAIT_MS,
        );
        if (noted === 'unsettled')
          logger.info(
            { gift: giftId.slice(0, 6) },
            'a message could not be delivered whose notification was not started, or ended otherwise',
          );
        return received(noted === 'unsettled' ? 'known' : noted);
      },
    },
  ];
}

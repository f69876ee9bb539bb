/**
 * Schemas of the messages that endpoints are sent, for the API's description (docs/api/webhooks.md#webhook-deliveries).
 */
import { eventData, eventExample, eventFields, subjectData } from '../events/schemas.js';
import type { DescribedWebhook } from '../openapi/webhooks.js';
import { entity, record, textSchema, timeSchema } from '../pipeline/schemas.js';

const pingSchema = entity('WebhookPing', {
  id: textSchema(),
  type: { type: 'string', const: 'ping' },
  created_at: timeSchema(),
  position: textSchema('Its place in the log, as in `Gift-Position`.'),
  data: record({}),
});

const deliverySchema = entity('WebhookEvent', {
  ...eventFields,
  data: {
    ...record(
      {
        ...eventData,
        ...subjectData,
      },
      ['transaction_id'],
    ),
    title: 'WebhookEventData',
    description: 'What the feed says, and the gift or purchase.',
  },
});

const COMMON = {
  tag: 'Webhook endpoints',
  headers: {
    'webhook-id': 'The same at every attempt: `id` of the body. Pass over what you have seen.',
    'webhook-timestamp': 'When it was sent, in seconds since 1970. Refuse what is older than five minutes.',
    'webhook-signature':
      '`v1,` and the HMAC-SHA256, in base64, of `webhook-id`, `webhook-timestamp` and body, joined by dots, under the bytes of the secret behind `whsec_`. After a rotation several, separated by spaces.',
  },
  answers: {
    '2XX': 'It was received. Answer within 15 seconds, and do the work afterwards.',
    '410': 'The endpoint is no more: it is disabled at once.',
    default: 'It is sent again, for three days, as `Retry-After` asks for. Redirects are not followed.',
  },
} as const;

export const DELIVERED: Readonly<Record<string, DescribedWebhook>> = {
  event: {
    ...COMMON,
    operation: 'receiveEvent',
    summary: 'An event of the feed',
    description:
      'The body is the entry of `GET /api/v2/events`, with the gift or purchase as it was right after the event. Events of a gift come in order, others may overtake.',
    body: deliverySchema,
    example: {
      ...eventExample,
      data: {
        ...eventExample.data,
        gift: {
          status: 'redeemed',
          product_id: 'latte',
          brand_id: 'beanhouse',
          value: '3.75',
          receiver: 'user',
          merchant_id: 'beanhouse',
        },
      },
    },
  },
  ping: {
    ...COMMON,
    operation: 'receivePing',
    summary: 'A ping that you asked for',
    body: pingSchema,
    example: {
      id: '7f0a2d1c-52a1-4d0b-8a1e-6f9c3e2b1d04',
      type: 'ping',
      created_at: '2026-05-04T12:30:00.000Z',
      position: '5d1f6f0c-8f55-4a3b-9f5e-2f3c1f0f7a11:0000000000001043',
      data: {},
    },
  },
};

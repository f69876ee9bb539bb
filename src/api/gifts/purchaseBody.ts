/** Bodies of a purchase and of a change of its time (docs/api/purchases.md#buy-gifts). */
import { SEND_NOW } from '../../commands/rescheduleSend.js';
import { DECEIVING } from '../../lib/unicodeText.js';
import type { Schema } from '../pipeline/route.js';
import { orNull, record, textSchema } from '../pipeline/schemas.js';

const MAX_RECEIVERS = 10_000;
/** Longest text of a time, in characters. */
const MAX_TIME = 40;

export type PurchaseBody = {
  readonly payment: { readonly reference: string };
  readonly purchase: {
    readonly reference: string;
    readonly message?: string;
    readonly receivers?: readonly { readonly phone_number?: string; readonly user_id?: string }[];
    readonly send_at?: string;
    readonly reference_id?: string;
  };
};

/** Schema of a caller's own name for a purchase. */
export const REFERENCE_ID = { type: 'string', minLength: 1, maxLength: 255, pattern: `^[^${DECEIVING}]*$` };

export const PURCHASE_BODY: Schema = {
  title: 'Purchase',
  ...record(
    {
      payment: record({
        method: { type: 'string', const: 'card' },
        reference: textSchema('The card processor’s card id, or a wallet’s reference.'),
      }),
      purchase: record(
        {
          type: { type: 'string', const: 'gift' },
          reference: textSchema('The product to buy.'),
          receivers: {
            type: 'array',
            description: 'One entry per gift to create; absent: one gift without a receiver, to be shared by URL.',
            minItems: 1,
            maxItems: MAX_RECEIVERS,
            'x-errors': { minItems: 'receivers: at least 1', maxItems: `receivers: at most ${MAX_RECEIVERS}` },
            items: {
              type: 'object',
              additionalProperties: false,
              properties: {
                phone_number: textSchema(
                  'Mobile number, which can receive an SMS; without a country code a British one, such as `07700 900123`.',
                ),
                user_id: textSchema(),
              },
              not: {
                type: 'object',
                properties: { phone_number: textSchema(), user_id: textSchema() },
                required: ['phone_number', 'user_id'],
              },
              'x-errors': { not: 'receivers: give only one of phone_number or user_id' },
            },
          },
          message: textSchema('Shown to the receivers.', {
            maxLength: 1000,
            pattern: `^[^${DECEIVING}]*$`,
            'x-errors': {
              pattern: 'purchase.message must not contain control characters, nor ones that turn the direction of text',
            },
          }),
          send_at: textSchema(
            'When receivers are notified and find their gifts: RFC 3339 with its zone, at most 366 days ahead and no later than the gifts expire; absent: at once. The charge is made at once.',
            { maxLength: MAX_TIME },
          ),
          reference_id: {
            ...REFERENCE_ID,
            description:
              'The caller’s own name for the purchase, such as the number of an order; not unique, and never anything personal.',
            'x-errors': {
              pattern:
                'purchase.reference_id must not contain control characters, nor ones that turn the direction of text',
            },
          },
        },
        ['type', 'reference'],
      ),
      embed: {
        type: 'array',
        maxItems: 100,
        items: textSchema(),
        description: 'Relations to embed, as in the query.',
      },
    },
    ['payment', 'purchase'],
  ),
};

export const RESCHEDULE_BODY: Schema = {
  title: 'Reschedule',
  ...record({
    send_at: orNull(
      textSchema(`RFC 3339 with its zone; \`${SEND_NOW}\`; or null: not before another time is named.`, {
        maxLength: MAX_TIME,
      }),
    ),
  }),
};

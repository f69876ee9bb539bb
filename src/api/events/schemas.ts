import { TRANSACTION_STATUSES } from '../../domain/purchase/status.js';
import { RECEIVER_KINDS } from '../../domain/gift/events.js';
import { ALL_ENTRY_TYPES } from '../../projections/feed/entryTypes.js';
import {
  choiceSchema,
  entity,
  flagSchema,
  integerSchema,
  orNull,
  record,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';

const ID = textSchema();
const POUNDS = { type: 'string', pattern: '^\\d+\\.\\d{2}$' } as const;

export const eventFields = {
  id: textSchema('The same to every caller, and in every copy of the log.'),
  type: choiceSchema(ALL_ENTRY_TYPES),
  created_at: timeSchema(),
  position: textSchema('Its place in the log, as in `Gift-Position`.'),
};

export const eventData = {
  transaction_id: ID,
  reference_id: textSchema('Of events of a purchase that was made with one.'),
  gift_id: textSchema('Of events of a gift.'),
  redemption_id: textSchema('Of a redemption or its reversal.'),
  by_support: flagSchema("Of a reversal by support; absent: a merchant's user did it.", { enum: [true] }),
  location_id: textSchema('Where it was redeemed.'),
  voucher_id: textSchema('Of the voucher that it got.'),
  replaced_by: textSchema('The gift that support gave in its place, at no charge.'),
  replaces: textSchema('Of a purchase at no charge: the gift in whose place its gift is.'),
  refund_id: textSchema('Of a refund made by support.'),
  send_at: orNull(timeSchema('When a purchase is to be sent; null: not before its buyer names a time.')),
  expires_on: textSchema('The last valid day (UTC).', { format: 'date' }),
  blocked: flagSchema('Whether it is blocked after the event: causes may be several.'),
};

/** The gift or purchase in the body of a webhook. */
export const subjectData = {
  gift: {
    ...record(
      {
        status: choiceSchema(['sent', 'redeemed', 'cancelled']),
        product_id: ID,
        brand_id: ID,
        value: { ...POUNDS, description: 'Of the gift, in pounds.' },
        receiver: choiceSchema(RECEIVER_KINDS, 'nobody: the first user to claim it.'),
        merchant_id: textSchema('Where it was redeemed: of a redemption or its reversal.'),
      },
      ['status', 'product_id', 'brand_id', 'value', 'receiver'],
    ),
    title: 'WebhookGift',
    description: 'Of events of a gift: the gift right after the event.',
  },
  transaction: {
    ...record({
      status: choiceSchema(TRANSACTION_STATUSES),
      product_id: ID,
      brand_id: ID,
      gifts: integerSchema('How many were bought.'),
      retail: { ...POUNDS, description: 'The total, in pounds.' },
    }),
    title: 'WebhookTransaction',
    description: 'Of other events: the purchase right after the event.',
  },
};

export const eventSchema = entity('FeedEvent', {
  ...eventFields,
  data: {
    ...record({ ...eventData, ...subjectData }, ['transaction_id']),
    title: 'FeedEventData',
    description:
      'Ids and state. The gift, transaction or redemption has the rest; `gift` and `transaction` are there with `form=webhook` only.',
  },
});

export const eventExample = {
  id: '2f0b7a52-6c0e-4b1f-9a40-0c7d1f6e8b11',
  type: 'gift.redeemed',
  created_at: '2026-05-04T12:30:00.000Z',
  position: '5d1f6f0c-8f55-4a3b-9f5e-2f3c1f0f7a11:0000000000001042',
  data: {
    transaction_id: '6ec0bd7f11c043da975e2a8ad9ebae0b',
    gift_id: '5f2c9d6a1b7e4c80d3a1',
    redemption_id: '19df2f781409a0c4b9df0b4440db5d3',
    location_id: 'store-7',
  },
};

/** Schemas, with examples that fit together (docs/api/gifts.md#gift). */
import { TRANSACTION_STATUSES } from '../../domain/purchase/status.js';
import { MASK } from '../../lib/mask.js';
import type { Schema } from '../pipeline/route.js';
import {
  brandExample,
  brandSchema,
  integrationSchema,
  productExample,
  productSchema,
  segmentExample,
  segmentSchema,
  storeSchema,
} from '../catalogue/schemas.js';
import {
  choiceSchema,
  embeddedSchema,
  entity,
  flagSchema,
  integerSchema,
  listSchema,
  orNull,
  record,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';

const ID = textSchema('An identifier.');
const GIFT_ID = textSchema("A gift's id.", { pattern: '^[0-9a-f]{20}$' });
const EMPTY = textSchema('Empty.');
const NULL = orNull(textSchema());
const PLAIN_TIME = textSchema('`YYYY-MM-DD HH:MM:SS`, UTC.', {
  pattern: '^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d$',
});
const PLAIN_OR_EMPTY = '^(\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d)?$';
const ISO_TIME = timeSchema('ISO 8601, UTC.');
const DATE: Schema = { type: 'string', format: 'date' };
const SEND_AT: Schema = {
  ...ISO_TIME,
  type: ['string', 'null'],
  description:
    'Of a purchase that was given such a time, for its buyer: when it is sent, or was; null: not before a time is named.',
};

export const redemptionProperties = {
  id: ID,
  gift_id: GIFT_ID,
  redeemed: flagSchema('True after redeem, false after unredeem.'),
  creation_at: ISO_TIME,
  updated_at: ISO_TIME,
  location_id: textSchema('The location it was made at.'),
};

export const redemptionSchema = entity('Redemption', redemptionProperties);

export const reversedSchema = entity('ReversedRedemption', {
  id: textSchema('An identifier; where nothing was redeemed, it names no redemption.'),
  gift_id: GIFT_ID,
  redeemed: { type: 'boolean', const: false },
  creation_at: ISO_TIME,
  updated_at: ISO_TIME,
  location_id: orNull(
    textSchema('The location it was made at; null: nothing was redeemed, and never will be with this key.'),
  ),
});

export const giftSchema = entity(
  'Gift',
  {
    id: GIFT_ID,
    shortcode: textSchema('What opens the gift for others; it can’t be made of the id. Read without regard to case.', {
      pattern: '^[0-9A-HJKMNP-TV-Z]{16}$',
    }),
    sender_id: textSchema("The buyer's user id."),
    receiver_id: textSchema("The owner's user id, shown to the owner and to a buyer who named that user; else empty."),
    purchase_id: textSchema('The product bought.'),
    transaction_id: ID,
    message_id: ID,
    voucher_id: orNull(textSchema("The gift's voucher, once it has one.")),
    redeemed_id: orNull(textSchema('The redemption, while redeemed.')),
    code: EMPTY,
    vid: EMPTY,
    redeem_code: EMPTY,
    reminder_sent: textSchema('When the last reminder was sent; or empty.', { pattern: PLAIN_OR_EMPTY }),
    type: EMPTY,
    expiry_date: { ...DATE, description: 'The last valid day, in UTC.' },
    created_at: PLAIN_TIME,
    updated_at: PLAIN_TIME,
    sent_date: textSchema('When the charge settled, or a scheduled gift was sent; empty before.', {
      pattern: PLAIN_OR_EMPTY,
    }),
    deleted_at: NULL,
    assigned_date: NULL,
    assigned_client: NULL,
    viewed_date: NULL,
    viewed_client: NULL,
    account_id: NULL,
    order_id: NULL,
    cover_image_url: NULL,
    image_url: NULL,
    theme_id: EMPTY,
    theme_info: record({
      clientIds: listSchema(textSchema()),
      name: EMPTY,
      type: EMPTY,
      label: EMPTY,
      id: EMPTY,
    }),
    launch_url: textSchema('A page about the gift that needs no token.', { format: 'uri' }),
    reminders_sent: listSchema(PLAIN_TIME, 'When the reminders were sent, in order.'),
    is_expired: flagSchema(),
    gift_status: choiceSchema(['pending', 'sent', 'redeemed', 'cancelled']),
    status_code: choiceSchema(['PE', 'SE', 'UC', 'RE', 'CA'], 'SE: has a receiver; UC: has none yet.'),
    status: { type: 'integer', enum: [1, 2, 3, 5, 12] },
  },
  { send_at: SEND_AT },
);

/** Schema of a gift for auditors: without its shortcode they can't open it. */
export const maskedGiftSchema: Schema = {
  ...giftSchema,
  title: 'MaskedGift',
  properties: {
    ...(giftSchema['properties'] as Readonly<Record<string, Schema>>),
    shortcode: textSchema('Masked, also in `launch_url`.', { const: MASK }),
  },
};

const messageSchema = entity('Message', {
  id: ID,
  created_at: PLAIN_TIME,
  updated_at: PLAIN_TIME,
  gift_id: GIFT_ID,
  message: textSchema('Shown to the receiver; empty when none was given.'),
  conversation_id: EMPTY,
  sender_id: textSchema(),
});

export const voucherV1Schema = entity('VoucherV1', {
  id: ID,
  code: textSchema(),
  gift_id: GIFT_ID,
  segment_id: textSchema(),
  expiry_date: PLAIN_TIME,
  created_at: { ...PLAIN_TIME, type: ['string', 'null'] },
  updated_at: PLAIN_TIME,
});

export const voucherV2Schema = entity('VoucherV2', {
  voucherType: textSchema(),
  segment: segmentSchema,
  expiresAt: ISO_TIME,
  data: listSchema(
    record({
      type: choiceSchema(['qr', 'alpha/qr', 'alpha/pin']),
      label: textSchema(),
      value: textSchema(),
    }),
  ),
  dateCreated: ISO_TIME,
  dateModified: ISO_TIME,
  giftId: GIFT_ID,
});

export const voucherOptionsSchema = entity('VoucherOptions', {
  segments: listSchema(record({ id: ID, name: textSchema(), expiry: integerSchema() })),
  dateCreated: ISO_TIME,
  dateModified: ISO_TIME,
  productId: textSchema(),
});

export const adjustmentCodesSchema = entity('AdjustmentCodes', {
  product_id: textSchema(),
  adjustment_codes: listSchema(textSchema()),
});

export const transactionSchema = entity(
  'Transaction',
  {
    id: ID,
    retail: textSchema('The total, in pounds.', { pattern: '^\\d+\\.\\d{2}$' }),
    created_at: PLAIN_TIME,
    updated_at: PLAIN_TIME,
    gifts: listSchema(GIFT_ID, 'Ids of the gifts bought.'),
    purchased_at_date: DATE,
    purchased_at_time: { type: 'string', pattern: '^\\d\\d:\\d\\d:\\d\\d$' },
    status: choiceSchema(TRANSACTION_STATUSES, '`disputed`: the buyer’s bank claims the money, or has taken it back.'),
  },
  {
    send_at: SEND_AT,
    reference_id: textSchema('Only of a purchase that was made with one: the caller’s own name for it.'),
    replaces: textSchema('Only of a purchase at no charge: the gift that support replaced by this one’s.'),
  },
);

const SHARED_KINDS = {
  messages: messageSchema,
  vouchers: voucherV1Schema,
  segments: segmentSchema,
  products: productSchema,
  brands: brandSchema,
  stores: storeSchema,
  integrations: integrationSchema,
};

export const giftEmbeddedSchema = embeddedSchema({ ...SHARED_KINDS, redemptions: redemptionSchema });

export const listedGiftsEmbeddedSchema = embeddedSchema(SHARED_KINDS);

export const transactionEmbeddedSchema = embeddedSchema({ ...SHARED_KINDS, gifts: giftSchema });

const GIFT = 'b1946ac92492d2347c62';
const TRANSACTION = '0f7d3a61c5b84e2f9a6d1c3e5b7f9024';
const VOUCHER = '3c0e9a7b5d1f2846e0aa';

export const redemptionExample = {
  id: '1a1fd9a99d06a1f0c92b7d34e58a0c1',
  gift_id: GIFT,
  redeemed: true,
  creation_at: '2026-11-21T10:15:30.000Z',
  updated_at: '2026-11-21T10:15:30.000Z',
  location_id: 'store-kettle-covent-garden',
};

export const messageExample = {
  id: '91e2ab03c4d5f6078899',
  created_at: '2026-11-20 18:02:11',
  updated_at: '2026-11-20 18:02:11',
  gift_id: GIFT,
  message: 'Happy birthday! The first coffee is on me.',
  conversation_id: '',
  sender_id: 'user-olivia',
};

export const giftExample = {
  id: GIFT,
  shortcode: 'P6A6NJ94JB938Z32',
  sender_id: 'user-olivia',
  receiver_id: 'user-noah',
  purchase_id: 'product-flat-white',
  transaction_id: TRANSACTION,
  message_id: messageExample.id,
  voucher_id: VOUCHER,
  redeemed_id: redemptionExample.id,
  code: '',
  vid: '',
  redeem_code: '',
  reminder_sent: '',
  type: '',
  expiry_date: '2027-11-20',
  created_at: '2026-11-20 18:02:11',
  updated_at: '2026-11-21 10:15:30',
  sent_date: '2026-11-20 18:02:12',
  deleted_at: null,
  assigned_date: null,
  assigned_client: null,
  viewed_date: null,
  viewed_client: null,
  account_id: null,
  order_id: null,
  cover_image_url: null,
  image_url: null,
  theme_id: '',
  theme_info: { clientIds: [], name: '', type: '', label: '', id: '' },
  launch_url: 'https://gifts.example/g/P6A6NJ94JB938Z32',
  reminders_sent: [],
  is_expired: false,
  gift_status: 'redeemed',
  status_code: 'RE',
  status: 1,
};

/** The same gift before its redemption: paid for and sent, without a voucher. */
export const boughtGiftExample = {
  ...giftExample,
  voucher_id: null,
  redeemed_id: null,
  updated_at: giftExample.sent_date,
  gift_status: 'sent',
  status_code: 'SE',
  status: 5,
};

export const voucherV1Example = {
  id: VOUCHER,
  code: '7KQ2M9XW4TBR6',
  gift_id: GIFT,
  segment_id: segmentExample.id,
  expiry_date: '2027-02-19 10:12:00',
  created_at: '2026-11-21 10:12:00',
  updated_at: '2026-11-21 10:12:00',
};

export const voucherV2Example = {
  voucherType: 'qr',
  segment: segmentExample,
  expiresAt: '2027-02-19T10:12:00.000Z',
  data: [{ type: 'qr', label: '', value: voucherV1Example.code }],
  dateCreated: '2026-11-21T10:12:00.000Z',
  dateModified: '2026-11-21T10:12:00.000Z',
  giftId: GIFT,
};

export const voucherOptionsExample = {
  segments: [{ id: segmentExample.id, name: segmentExample.name, expiry: segmentExample.expiry }],
  dateCreated: '2026-11-20T18:02:11.000Z',
  dateModified: '2026-11-20T18:02:11.000Z',
  productId: productExample.id,
};

export const transactionExample = {
  id: TRANSACTION,
  retail: '3.75',
  created_at: '2026-11-20 18:02:11',
  updated_at: '2026-11-20 18:02:12',
  gifts: [GIFT],
  purchased_at_date: '2026-11-20',
  purchased_at_time: '18:02:11',
  status: 'charged',
};

export const giftEmbeddedExample = { messages: [messageExample], products: [productExample], brands: [brandExample] };

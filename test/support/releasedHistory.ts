/**
 * A log as releases have written it, and what a fold makes of it, in one hash: so that a test of this release knows
 * whether a fold still is that of the last one. The events are as they were recorded, so of no type that follows the
 * code. Only with a release are new ones added.
 */
import { createHash } from 'node:crypto';
import { changedTypes, dataUpToDate } from '../../src/domain/upcasters.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { type Projection, touchedBy } from '../../src/runtime/readmodels/projection.js';

const [USERS_GIFT, PHONES_GIFT, OPEN_GIFT, DECLINED_GIFT] = [
  'gift-000b0168b4cdd08dc055',
  'gift-3aa1cf81636c247921b4',
  'gift-db5b2d19d2534a5d624f',
  'gift-f1ea1043f84c926b6ab0',
] as const;
const BOUGHT = {
  buyer_id: 'ada',
  product_id: 'tea',
  brand_id: 'kettle',
  product_name: 'Tea',
  sale_price: 350,
  payment_reference: 'pm',
  expires_on: '2027-01-01',
  message: 'Hello',
};
const USER = {
  id: 'ada',
  username: 'ada@example',
  password_hash: 'p1',
  name: 'Ada',
  locale: null,
  phone_number: '+447700900101',
  device_tokens: ['d'],
  active: true,
  roles: [],
  merchant_id: null,
  permissions: [],
};
const REDEEMED = {
  location_id: 'store',
  location_merchant_id: 'm',
  merchant_id: 'm',
  brand_id: 'kettle',
  product_id: 'tea',
  value: 350,
};
const CODE = (hash: string): string => `voucherCode-card-${hash.repeat(22)}`;

const HISTORY: readonly (readonly [stream: string, type: string, data: object])[] = [
  ['integration-i', 'IntegrationAdded', { id: 'i', name: 'Till' }],
  ['integration-i', 'IntegrationChanged', { name: 'Tills' }],
  ['integration-i', 'IntegrationRetired', { reason: 'gone' }],
  ['merchant-m', 'MerchantAdded', { id: 'm', name: 'Kettle Ltd', adjustment_codes: ['a'] }],
  ['merchant-m', 'MerchantChanged', { adjustment_codes: ['a', 'b'] }],
  ['merchant-m', 'MerchantRetired', { reason: 'gone' }],
  [
    'segment-card',
    'SegmentAdded',
    { id: 'card', name: 'Card', voucherType: 'qr', expiry: 30, configuration: { a: 1 } },
  ],
  ['segment-card', 'SegmentChanged', { expiry: 31 }],
  ['segment-card', 'SegmentRetired', { reason: 'gone' }],
  [
    'brand-kettle',
    'BrandAdded',
    {
      id: 'kettle',
      name: 'Kettle',
      merchant_id: 'm',
      integration_id: 'i',
      consolidated: 0,
      consolidated_products: [],
      description: '',
      image_url: '',
      active: true,
      visible_to: null,
    },
  ],
  ['brand-kettle', 'BrandChanged', { visible_to: ['ada'] }],
  ['brand-kettle', 'BrandRetired', { reason: 'gone' }],
  [
    'brand-kettle',
    'BrandAdded',
    {
      id: 'kettle',
      name: 'Kettle again',
      merchant_id: 'm',
      integration_id: null,
      consolidated: 1,
      consolidated_products: ['tea'],
      description: '',
      image_url: '',
      active: true,
      visible_to: null,
    },
  ],
  [
    'product-tea',
    'ProductAdded',
    {
      id: 'tea',
      brand_id: 'kettle',
      name: 'Tea',
      description: '',
      sale_price: 350,
      image_url: '',
      active: true,
      segments: ['card'],
      valid_days: 365,
    },
  ],
  ['product-tea', 'ProductChanged', { sale_price: 400 }],
  ['product-tea', 'ProductRetired', { reason: 'gone' }],
  [
    'store-store',
    'StoreAdded',
    {
      id: 'store',
      brand_id: 'kettle',
      name: 'Shop',
      address: '1 Street',
      postcode: 'AB1',
      longitude: -0.1,
      latitude: 51.5,
    },
  ],
  ['store-store', 'StoreChanged', { name: 'The shop' }],
  ['store-store', 'StoreRetired', { reason: 'gone' }],
  ['category-drinks', 'CategoryAdded', { id: 'drinks', name: 'Drinks', image_url: '', featured: 1, products: ['tea'] }],
  ['category-drinks', 'CategoryChanged', { products: [] }],
  ['category-drinks', 'CategoryRetired', { reason: 'gone' }],
  ['user-ada', 'UserAdded', USER],
  ['user-ada', 'UserChanged', { password_hash: 'p2' }],
  ['user-ada', 'UserChanged', { name: 'Ada L' }],
  ['user-ada', 'UserRetired', { reason: 'gone' }],
  ['user-ada', 'UserAdded', { ...USER, password_hash: 'p3' }],
  ['client-app', 'ClientAdded', { id: 'app', secret_hash: 's1', name: 'App', active: true, users: null }],
  ['client-app', 'ClientChanged', { secret_hash: 's2', users: ['ada'] }],
  ['client-app', 'ClientRetired', { reason: 'gone' }],
  [
    'paymentMethod-pm',
    'PaymentMethodAdded',
    { reference: 'pm', kind: 'card', users: ['ada'], customer: 'c', prepaid: false, active: true },
  ],
  ['paymentMethod-pm', 'PaymentMethodChanged', { users: ['ada', 'ben'] }],
  ['paymentMethod-pm', 'PaymentMethodRetired', { reason: 'gone' }],
  ['username-h1', 'UsernameTaken', { user_id: 'ada' }],
  ['username-h2', 'UsernameTaken', { user_id: 'ben' }],
  ['username-h2', 'UsernameGivenUp', { user_id: 'ben' }],
  ['phone-h1', 'PhoneTaken', { user_id: 'ada' }],
  ['phone-h1', 'PhoneGivenUp', { user_id: 'ada' }],
  ['phone-h1', 'PhoneTaken', { user_id: 'ben' }],
  [CODE('a'), 'VoucherCodeAdded', { segment_id: 'card', code: 'A', pin: null }],
  [CODE('a'), 'VoucherCodeChanged', { pin: '1' }],
  [CODE('a'), 'VoucherCodeAssigned', { gift_id: '000b0168b4cdd08dc055' }],
  [CODE('b'), 'VoucherCodeAdded', { segment_id: 'card', code: 'B', pin: '2' }],
  [CODE('b'), 'VoucherCodeWithdrawn', { reason: 'gone' }],
  [CODE('c'), 'VoucherCodeAdded', { segment_id: 'card', code: 'C', pin: null }],
  [
    'transaction-t1',
    'GiftsPurchased',
    {
      ...BOUGHT,
      transaction_id: 't1',
      seed: '5e'.repeat(32),
      total: 1050,
      receivers: [{ user_id: 'ben' }, { phone_number: '+447700900102', phone_hash: 'h2' }, {}],
    },
  ],
  [
    'transaction-t1',
    'PaymentAuthenticationRequired',
    { provider: 'simulated', payment_id: 'p', action: 'use_stripe_sdk', until: '2026-01-01T00:20:00.000Z' },
  ],
  ['transaction-t1', 'PaymentCharged', { amount: 1050, provider: 'simulated', charge_id: 'ch' }],
  ['transaction-t1', 'PaymentDeclined', { provider: 'simulated', code: 'late' }],
  [
    'transaction-t2',
    'GiftsPurchased',
    {
      ...BOUGHT,
      transaction_id: 't2',
      seed: '7f'.repeat(32),
      total: 350,
      message: '',
      receivers: [{ user_id: 'ben' }],
    },
  ],
  ['transaction-t2', 'PaymentDeclined', { provider: 'simulated', code: 'card_declined' }],
  [DECLINED_GIFT, 'GiftCancelled', { reason: 'declined' }],
  [
    USERS_GIFT,
    'VoucherAssigned',
    { voucher_id: 'v', code: 'A', pin: '1', segment_id: 'card', expires_at: '2026-02-01T00:00:00.000Z' },
  ],
  [
    USERS_GIFT,
    'GiftExtended',
    { expires_on: '2028-01-01', voucher_expires_at: '2026-03-01T00:00:00.000Z', reason: 'late' },
  ],
  [USERS_GIFT, 'GiftRedeemed', { redemption_id: 'r1', ...REDEEMED }],
  [USERS_GIFT, 'GiftUnredeemed', { redemption_id: 'r1' }],
  [USERS_GIFT, 'GiftRedeemed', { redemption_id: 'r2', ...REDEEMED, merchant_id: null }],
  [PHONES_GIFT, 'GiftExtended', { expires_on: '2028-02-01', voucher_expires_at: null, reason: 'late' }],
  [PHONES_GIFT, 'GiftRedeemed', { redemption_id: 'r3', ...REDEEMED }],
  [PHONES_GIFT, 'GiftUnredeemed', { redemption_id: 'r3' }],
  [OPEN_GIFT, 'GiftClaimed', { user_id: 'cleo' }],
  [
    OPEN_GIFT,
    'GiftReassigned',
    { transaction_id: 't1', receiver: { phone_hash: 'h3' }, phone_number: '+447700900103', reason: 'wrong one' },
  ],
  [
    'parked-purchase',
    'WorkParked',
    { entity: 't1', transaction_id: 't1', step: 'charge', cause: 'refused', event_id: 'e1' },
  ],
  ['parked-purchase', 'WorkRetried', { entity: 't1', transaction_id: 't1', step: 'charge', times: 1, reason: 'again' }],
  [
    'parked-purchase',
    'WorkParked',
    { entity: 't1', transaction_id: 't1', step: 'charge', cause: 'refused', event_id: 'e1', times: 2 },
  ],
  [
    'parked-notification',
    'WorkParked',
    { entity: 'g', transaction_id: 't1', step: 'send', cause: 'unknown', event_id: 'e2' },
  ],
  [
    'parked-notification',
    'WorkDiscarded',
    { entity: 'g', transaction_id: 't1', step: 'send', times: 1, reason: 'told by hand' },
  ],
];

/** The history as a log holds it: a second apart, positions and revisions counted. */
function recorded(): RecordedEvent[] {
  const revisions = new Map<string, number>();
  const changed = changedTypes();
  return HISTORY.map(([stream, type, data], index) => {
    const revision = (revisions.get(stream) ?? -1) + 1;
    revisions.set(stream, revision);
    return {
      id: `event-${index}`,
      type,
      at: new Date(Date.UTC(2026, 0, 1, 0, 0, index)).toISOString(),
      data: dataUpToDate(data, 1, changed.get(type) ?? []),
      metadata: { commandId: `command-${index}`, correlationId: 'history', by: { user: 'sam', roles: ['support'] } },
      stream,
      revision,
      position: String(index + 1).padStart(16, '0'),
    };
  });
}

/** The types that events of the history have. */
export const HISTORY_TYPES: ReadonlySet<string> = new Set(HISTORY.map(([, type]) => type));

/**
 * What the fold makes of the history, and of which of its event types: SHA-256, hexadecimal, its first 16 digits.
 * @throws what the fold throws
 */
export function foldHash(projection: Projection): string {
  const documents = new Map<string, object>();
  for (const event of recorded()) {
    if (!projection.types.includes(event.type)) continue;
    const begins = projection.begins?.includes(event.type) === true;
    for (const [index, id] of touchedBy(projection, event).entries()) {
      documents.set(id, projection.evolve(begins ? undefined : documents.get(id), event, id, index));
    }
  }
  const folded = {
    types: [...projection.types].sort(),
    documents: [...documents].sort(([one], [other]) => (one < other ? -1 : 1)),
  };
  return createHash('sha256').update(JSON.stringify(folded, inOrder)).digest('hex').slice(0, 16);
}

/** The order of a document's fields means nothing. */
function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

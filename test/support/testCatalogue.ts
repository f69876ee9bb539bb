/**
 * The catalogue of HTTP tests: small, every special case once. Passwords are `{id}-password`, secrets `{id}-secret`.
 */
import { hashSync } from '@node-rs/argon2';

/** Cheap hashes: tests log in often, and the cost is in the hash. */
const hashed = (secret: string): string => hashSync(secret, { memoryCost: 64, timeCost: 1, parallelism: 1 });

const user = (id: string, more: object = {}): object => ({
  id,
  username: `${id}@test.example`,
  password_hash: hashed(`${id}-password`),
  name: id,
  ...more,
});
const client = (id: string, more: object = {}): object => ({
  id,
  secret_hash: hashed(`${id}-secret`),
  name: id,
  ...more,
});
const till = (id: string, merchant: string, permissions: readonly string[] = ['redeem', 'unredeem']): object =>
  user(id, { merchant_id: merchant, permissions });

/** The import file. */
export const CATALOGUE = {
  integrations: [
    { id: '1', name: 'Till' },
    { id: '6', name: 'Print' },
    { id: '7', name: 'Online' },
  ],
  merchants: [
    { id: 'coffee', name: 'Coffee Ltd', adjustment_codes: ['C1', 'C2'] },
    { id: 'cinema', name: 'Cinema Ltd' },
    { id: 'shops', name: 'Shops Ltd', adjustment_codes: ['S1'] },
  ],
  brands: [
    { id: 'bean', name: 'Bean', merchant_id: 'coffee', integration_id: '1', consolidated_products: ['any-20'] },
    { id: 'screen', name: 'Screen', merchant_id: 'cinema', integration_id: '7', consolidated_products: ['any-20'] },
    { id: 'high-street', name: 'High Street', merchant_id: 'shops', integration_id: '6', consolidated: 1 },
    { id: 'club', name: 'Club', merchant_id: 'shops', visible_to: ['vip'] },
    { id: 'closed', name: 'Closed', merchant_id: 'shops', active: false },
    { id: 'empty', name: 'Empty', merchant_id: 'shops' },
  ],
  stores: [
    { id: 'bean-soho', brand_id: 'bean', name: 'Bean Soho', longitude: -0.1337, latitude: 51.5136 },
    { id: 'bean-leeds', brand_id: 'bean', name: 'Bean Leeds', longitude: -1.5437, latitude: 53.7974 },
    { id: 'screen-soho', brand_id: 'screen', name: 'Screen Soho', longitude: -0.1341, latitude: 51.514 },
    { id: 'street-bath', brand_id: 'high-street', name: 'High Street Bath', longitude: -2.3597, latitude: 51.3811 },
    { id: 'club-house', brand_id: 'club', name: 'Club House', longitude: -0.12, latitude: 51.51 },
  ],
  segments: [
    { id: 'seg-qr', name: 'At the till', voucherType: 'qr', expiry: 30, configuration: { colour: 'red' } },
    { id: 'seg-alpha', name: 'In the app', voucherType: 'alpha/qr', expiry: 9000 },
    { id: 'seg-pin', name: 'Online', voucherType: 'alpha/pin', expiry: 60 },
    { id: 'seg-pool', name: 'From the pool', voucherType: 'alpha/pin', expiry: 60 },
  ],
  products: [
    {
      id: 'latte',
      brand_id: 'bean',
      name: 'Café latte',
      description: 'Coffee with milk',
      sale_price: 350,
      segments: ['seg-qr', 'seg-alpha'],
    },
    { id: 'mocha', brand_id: 'bean', name: 'Mocha', description: 'Chocolate coffee', sale_price: 400, valid_days: 1 },
    {
      id: 'ticket',
      brand_id: 'screen',
      name: 'Cinema ticket',
      description: 'Any film',
      sale_price: 1050,
      segments: ['seg-pin'],
    },
    { id: 'pooled', brand_id: 'bean', name: 'Pooled', sale_price: 100, segments: ['seg-pool'] },
    { id: 'any-20', brand_id: 'high-street', name: 'High street 20', sale_price: 2000, segments: ['seg-qr'] },
    { id: 'secret', brand_id: 'club', name: 'Club entry', sale_price: 5000 },
    { id: 'old', brand_id: 'bean', name: 'Old product', sale_price: 200, active: false },
    { id: 'shut', brand_id: 'closed', name: 'Shut product', sale_price: 200 },
  ],
  categories: [
    { id: 'drinks', name: 'Drinks', featured: 1, products: ['latte', 'mocha', 'old'] },
    { id: 'fun', name: 'Fun', products: ['ticket', 'secret'] },
  ],
  users: [
    user('ann', { phone_number: '07700 900001', device_tokens: ['device-ann'] }),
    user('bob', { phone_number: '07700 900002' }),
    user('cat'),
    user('dan'),
    user('vip'),
    user('gone', { active: false }),
    till('till-coffee', 'coffee'),
    till('till-cinema', 'cinema'),
    till('till-shops', 'shops'),
    till('till-redeem-only', 'coffee', ['redeem']),
    till('till-nothing', 'coffee', []),
    user('sue', { roles: ['support'] }),
    user('aud', { roles: ['auditor'] }),
  ],
  clients: [
    client('app'),
    client('pos', { users: ['till-coffee', 'till-cinema', 'till-shops'] }),
    client('off', { active: false }),
  ],
  payment_methods: [
    { reference: 'pm_card_visa', kind: 'card', users: ['ann', 'bob', 'vip'] },
    { reference: 'pm_card_visa_chargeDeclined', kind: 'card', users: ['ann'] },
    { reference: 'pm_card_slow', kind: 'card', users: ['ann'] },
    { reference: 'wallet-invoice', kind: 'wallet', users: ['ann'] },
    {
      reference: 'wallet-prepaid',
      kind: 'wallet',
      users: ['ann'],
      prepaid: true,
      top_ups: [{ id: 't1', amount: 1000 }],
    },
  ],
  voucher_codes: [
    { segment_id: 'seg-pool', code: 'POOL-0001', pin: '1111' },
    { segment_id: 'seg-pool', code: 'POOL-0002', pin: '2222' },
    { segment_id: 'seg-pool', code: 'POOL-0003', pin: '3333' },
  ],
};

/** Histories made by hand, for the tests of the model. Times are ms after `START`. */
import { ERRORS } from './errorTable.js';
import type { Observation } from './history.js';
import type { GiftOperation, Operation, Purchase, Redeem } from './operations.js';
import { installationOf } from './installation.js';

export const START = Date.parse('2027-03-04T10:00:00.000Z');
const DAY = '2027-03-04';

/** Two merchants, of which `coffee` and `cinema` both take the product `any`, and `latte` is coffee's only. */
export const INSTALLATION = installationOf({
  brands: [
    { id: 'bean', merchant_id: 'coffee', integration_id: '1', consolidated_products: ['any'] },
    { id: 'screen', merchant_id: 'cinema' },
  ],
  stores: [
    { id: 'bean-soho', brand_id: 'bean' },
    { id: 'screen-soho', brand_id: 'screen' },
  ],
  products: [
    { id: 'latte', brand_id: 'bean', sale_price: 350, valid_days: 2, segments: ['seg'] },
    { id: 'any', brand_id: 'screen', sale_price: 2_000 },
  ],
  users: [
    { id: 'ann', phone_number: '07700 900001' },
    { id: 'bob', phone_number: '07700 900002' },
    { id: 'dan' },
    { id: 'till', merchant_id: 'coffee', permissions: ['redeem', 'unredeem'] },
    { id: 'redeemer', merchant_id: 'coffee', permissions: ['redeem'] },
    { id: 'usher', merchant_id: 'cinema', permissions: ['redeem', 'unredeem'] },
    { id: 'sue', roles: ['support'] },
  ],
  payment_methods: [
    { reference: 'pm_card_visa', kind: 'card', users: ['ann', 'bob'] },
    { reference: 'pm_card_visa_chargeDeclined', kind: 'card', users: ['ann'] },
    { reference: 'wallet-prepaid', kind: 'wallet', users: ['ann'], prepaid: true },
  ],
});

/** Sent and answered, ms after `START`. */
export type Times = readonly [number, number];

/** An answer without its times. */
export interface Said {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** One observation. */
export function seen(client: string, operation: Operation, [sent, answered]: Times, said: Said): Observation {
  const answer = { status: said.status, headers: said.headers ?? {}, body: said.body };
  return { client, operation, sent: START + sent, answered: START + answered, answer };
}

/** A request without an answer. */
export function lost(client: string, operation: Operation, sent: number): Observation {
  return { client, operation, sent: START + sent, answered: undefined, answer: undefined };
}

/** The error with this code, as docs/api/errors.md has it. */
export function refusal(code: string, headers: Readonly<Record<string, string>> = {}): Said {
  const row = ERRORS.get(code);
  if (row?.message === undefined) throw new Error(`no fixed message of ${code}`);
  const allow = row.status === 405 ? { allow: 'POST' } : {};
  return { status: row.status, headers: { 'error-code': code, ...allow, ...headers }, body: { error: row.message } };
}

/** The same answer as a replay. */
export function again(said: Said): Said {
  return { ...said, headers: { ...said.headers, 'idempotent-replayed': 'true' } };
}

/** A time of an answer, ms after `START`. */
export const iso = (ms: number): string => new Date(START + ms).toISOString();

/** A redemption as answers show it. */
export function redemption(
  id: string,
  made: number,
  more: { readonly reversed?: number; readonly location?: string } = {},
) {
  const { reversed, location = 'bean-soho' } = more;
  return {
    id,
    gift_id: 'g1',
    redeemed: reversed === undefined,
    creation_at: iso(made),
    updated_at: iso(reversed ?? made),
    location_id: location,
  };
}

export const redeemed = (id: string, made: number, location = 'bean-soho'): Said => ({
  status: 201,
  body: { data: redemption(id, made, { location }) },
});

export const reversed = (id: string, made: number, at: number): Said => ({
  status: 200,
  body: { data: redemption(id, made, { reversed: at }) },
});

/** A page of redemptions, whole. */
export const page = (...data: readonly object[]): Said => ({
  status: 200,
  body: { data, next: null, has_more: false },
});

/** The gift `g1` as a look-up shows it; by default to its buyer ann, sent to bob. */
export const gift = (more: object = {}): Said => ({
  status: 200,
  body: {
    data: {
      id: 'g1',
      shortcode: 'CODE1',
      sender_id: 'ann',
      receiver_id: 'bob',
      purchase_id: 'latte',
      transaction_id: 't1',
      voucher_id: null,
      redeemed_id: null,
      expiry_date: '2027-03-06',
      is_expired: false,
      gift_status: 'sent',
      status: 5,
      status_code: 'SE',
      ...more,
    },
  },
});

/** Requests to the gift `g1`. */
export const redeem = (more: Partial<Redeem> = {}): Redeem => ({
  kind: 'redeem',
  gift: 'g1',
  location: 'bean-soho',
  ...more,
});
export const unredeem = (redemptionId = 'latest', key?: string): GiftOperation => ({
  kind: 'unredeem',
  gift: 'g1',
  redemption: redemptionId,
  key,
});
export const claim = (shortcode?: string, key?: string): GiftOperation => ({
  kind: 'claim',
  gift: 'g1',
  shortcode,
  key,
});
export const getGift = (shortcode?: string): GiftOperation => ({ kind: 'getGift', gift: 'g1', shortcode });
export const listRedemptions: GiftOperation = { kind: 'listRedemptions', gift: 'g1' };
export const lookUp = (of: string): GiftOperation => ({ kind: 'lookUpKey', gift: 'g1', of });
export const keyIs = (of: string, more: object): Said => ({
  status: 200,
  body: { data: { key: of, gift_id: 'g1', ...more } },
});

/** A purchase of a latte for bob by ann, as order `o1`. */
export const purchase = (more: Partial<Purchase> = {}): Purchase => ({
  kind: 'purchase',
  product: 'latte',
  payment: 'pm_card_visa',
  receivers: [{ user_id: 'bob' }],
  order: 'o1',
  key: 'buy',
  ...more,
});

/** The transaction of that purchase. */
export const transaction = (more: object = {}): Said => ({
  status: 201,
  body: {
    data: {
      id: 't1',
      retail: '3.50',
      created_at: `${DAY} 10:00:00`,
      updated_at: `${DAY} 10:00:00`,
      gifts: ['g1'],
      purchased_at_date: DAY,
      purchased_at_time: '10:00:00',
      status: 'charged',
      reference_id: 'o1',
      ...more,
    },
    embedded: { gifts: [] },
  },
});

/** ann buys `g1` for bob, from 0 to 10 ms. */
export const BOUGHT: Observation = seen('ann', purchase(), [0, 10], transaction());
/** The same without a receiver. */
export const BOUGHT_OPEN: Observation = seen('ann', purchase({ receivers: [] }), [0, 10], transaction());

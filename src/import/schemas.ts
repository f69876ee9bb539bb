/** JSON schemas of entries. A `description` is the fault of a value that does not match the `pattern`. */
import { PERMISSIONS } from '../domain/account.js';
import { INVISIBLE } from '../lib/invisible.js';
import { ARRAY_NAMES, type ArrayName, DEFAULTS } from './file.js';

interface EntrySchema {
  readonly type: 'object';
  readonly additionalProperties: false;
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, object>>;
}

/** Maximum number of items in a list, so that an entry fits into one event. */
const MAX_ITEMS = 20_000;

/** Ids are part of stream names and URLs. */
export const ID_PATTERN = '^[A-Za-z0-9_][A-Za-z0-9_.:@~-]{0,63}$';

const id = {
  type: 'string',
  pattern: ID_PATTERN,
  description: 'must be 1 to 64 of A-Z a-z 0-9 _ . : @ ~ - and start with a letter, a digit or _',
};
const ids = { type: 'array', items: id, maxItems: MAX_ITEMS };
/** Schema of a text without NUL and halves of surrogate pairs, which engines can't store. */
const text = (minLength: number, maxLength: number): object => ({
  type: 'string',
  minLength,
  maxLength,
  pattern: '^[^\\p{Cs}\\u0000]*$',
  description: 'must be well-formed text without NUL characters',
});
const VISIBLE = String.raw`[^\s\p{Cc}\p{Cs}${INVISIBLE}]+`;
/** Schema for values that are compared or typed in: a blank at an end, such as a CR, would remain unnoticed. */
const exact = (maxLength: number): object => ({
  type: 'string',
  minLength: 1,
  maxLength,
  pattern: `^(${VISIBLE}( +${VISIBLE})*)?$`,
  description: 'must have no blanks at either end, and neither control characters nor invisible ones within',
});
const name = text(1, 200);
const longText = text(0, 10_000);
const imageUrl = {
  type: 'string',
  maxLength: 2_000,
  pattern: '^(https?://[^\\s\\p{Cc}\\p{Cs}]+)?$',
  description: 'must be an http or https address, or empty',
};
const flag = { enum: [0, 1] };
const bool = { type: 'boolean' };
const days = { type: 'integer', minimum: 1, maximum: 36_500 };
const argon2 = {
  type: 'string',
  maxLength: 500,
  pattern: '^\\$argon2id\\$v=19\\$m=\\d{1,7},t=\\d{1,3},p=\\d{1,3}\\$[A-Za-z0-9+/]{11,}\\$[A-Za-z0-9+/]{22,}$',
  description: 'must be an argon2id hash in the PHC form ($argon2id$v=19$m=…,t=…,p=…$salt$hash)',
};

const entry = (properties: Readonly<Record<string, object>>, optional: readonly string[] = []): EntrySchema => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties).filter((field) => !optional.includes(field)),
  properties,
});

/** Names of the optional fields besides those with a default. */
const OTHER_OPTIONAL = ['password', 'password_hash', 'secret', 'secret_hash', 'top_ups'];

const PROPERTIES: Readonly<Record<ArrayName, Readonly<Record<string, object>>>> = {
  integrations: { id, name },
  merchants: {
    id,
    name,
    adjustment_codes: { type: 'array', items: exact(64), maxItems: 1_000, uniqueItems: true },
  },
  brands: {
    id,
    name,
    merchant_id: id,
    integration_id: id,
    consolidated: flag,
    consolidated_products: ids,
    description: longText,
    image_url: imageUrl,
    active: bool,
    visible_to: ids,
  },
  stores: {
    id,
    brand_id: id,
    name,
    address: text(0, 1_000),
    postcode: text(0, 20),
    longitude: { type: 'number', minimum: -180, maximum: 180 },
    latitude: { type: 'number', minimum: -90, maximum: 90 },
  },
  segments: {
    id,
    name,
    voucherType: { enum: ['qr', 'alpha/qr', 'alpha/pin'] },
    expiry: days,
    configuration: { type: 'object' },
  },
  products: {
    id,
    brand_id: id,
    name,
    description: longText,
    sale_price: { type: 'integer', minimum: 0, maximum: 100_000_000 },
    image_url: imageUrl,
    active: bool,
    segments: ids,
    valid_days: days,
  },
  categories: { id, name, image_url: imageUrl, featured: flag, products: ids },
  users: {
    id,
    username: {
      type: 'string',
      maxLength: 100,
      pattern: '^[^\\p{Cc}\\p{Cs}\\p{Z}]+( [^\\p{Cc}\\p{Cs}\\p{Z}]+)*$',
      description:
        'must be 1 to 100 characters without control characters, and without spaces at either end or in a row',
    },
    password: {
      type: 'string',
      minLength: 1,
      maxLength: 1_024,
      pattern: '^[^\\p{Cc}\\p{Cs}]*$',
      description: 'must be without control characters (RFC 8265 4.2)',
    },
    password_hash: argon2,
    name: text(0, 200),
    locale: {
      type: 'string',
      pattern: '^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,4}$',
      description: 'must be a language tag such as en-GB',
    },
    phone_number: { type: 'string', maxLength: 40 },
    device_tokens: { type: 'array', items: exact(4_096), maxItems: 100, uniqueItems: true },
    active: bool,
    roles: { type: 'array', items: { enum: ['support', 'auditor'] }, uniqueItems: true },
    merchant_id: id,
    permissions: { type: 'array', items: { enum: PERMISSIONS }, uniqueItems: true },
  },
  clients: { id, secret: exact(1_024), secret_hash: argon2, name, active: bool, users: ids, staff: bool },
  payment_methods: {
    reference: id,
    kind: { enum: ['card', 'wallet'] },
    users: ids,
    customer: exact(64),
    prepaid: bool,
    top_ups: {
      type: 'array',
      maxItems: MAX_ITEMS,
      items: entry({ id, amount: { type: 'integer', minimum: 1, maximum: 10_000_000_000 } }),
    },
  },
  voucher_codes: { segment_id: id, code: exact(200), pin: exact(64) },
};

export const ENTRY_SCHEMAS = Object.fromEntries(
  ARRAY_NAMES.map((array) => [array, entry(PROPERTIES[array], [...Object.keys(DEFAULTS[array]), ...OTHER_OPTIONAL])]),
) as Readonly<Record<ArrayName, EntrySchema>>;

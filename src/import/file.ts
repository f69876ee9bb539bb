/** The import file (docs/import.md#import-file), and its entries once their shape has been checked. */
import type { Client, PaymentMethod, User } from '../domain/account.js';
import type { Brand, Category, Integration, Merchant, Product, Segment, Store } from '../domain/catalogue.js';
import type { VoucherCodeAdded } from '../domain/voucherCode.js';

/**
 * Optional fields, and their values in the log where an entry leaves them out. Secrets (one of two fields) and top-ups
 * (events of their own) are optional, too, and have no default.
 */
export const DEFAULTS = {
  integrations: {},
  merchants: { adjustment_codes: [] },
  brands: {
    integration_id: null,
    consolidated: 0,
    consolidated_products: [],
    description: '',
    image_url: '',
    active: true,
    visible_to: null,
  },
  stores: { address: '', postcode: '' },
  segments: { configuration: {} },
  // valid_days: docs/api/gifts.md#gift-expiry.
  products: { description: '', image_url: '', active: true, segments: [], valid_days: 365 },
  categories: { image_url: '', featured: 0 },
  users: {
    name: '',
    locale: null,
    phone_number: null,
    device_tokens: [],
    active: true,
    roles: [],
    merchant_id: null,
    permissions: [],
  },
  clients: { active: true, users: null, staff: null },
  payment_methods: { customer: null, prepaid: false },
  voucher_codes: { pin: null },
} as const;

/** An entry of type `V` as the file has it: fields with a default are optional. */
type Given<V, A extends keyof typeof DEFAULTS> = Omit<V, keyof (typeof DEFAULTS)[A]> & {
  readonly [F in keyof V & keyof (typeof DEFAULTS)[A]]?: NonNullable<V[F]>;
};

/** A top-up of a wallet; `amount` is pence. */
interface FileTopUp {
  readonly id: string;
  readonly amount: number;
}

export interface FileArrays {
  readonly integrations: Integration;
  readonly merchants: Given<Merchant, 'merchants'>;
  readonly brands: Given<Brand, 'brands'>;
  readonly stores: Given<Store, 'stores'>;
  readonly segments: Given<Segment, 'segments'>;
  readonly products: Given<Product, 'products'>;
  readonly categories: Given<Category, 'categories'>;
  readonly users: Given<Omit<User, 'password_hash'>, 'users'> & {
    readonly password?: string;
    readonly password_hash?: string;
  };
  readonly clients: Given<Omit<Client, 'secret_hash'>, 'clients'> & {
    readonly secret?: string;
    readonly secret_hash?: string;
  };
  readonly payment_methods: Given<Omit<PaymentMethod, 'active'>, 'payment_methods'> & {
    readonly top_ups?: readonly FileTopUp[];
  };
  readonly voucher_codes: Given<VoucherCodeAdded['data'], 'voucher_codes'>;
}

export type ArrayName = keyof FileArrays;

/** Kind of each array's entries, with which the names of their streams start. */
export const KIND_OF_ARRAY = {
  integrations: 'integration',
  merchants: 'merchant',
  brands: 'brand',
  stores: 'store',
  segments: 'segment',
  products: 'product',
  categories: 'category',
  users: 'user',
  clients: 'client',
  payment_methods: 'paymentMethod',
  voucher_codes: 'voucherCode',
} as const satisfies Record<ArrayName, string>;

export const ARRAY_NAMES = Object.keys(KIND_OF_ARRAY) as ArrayName[];

export type IdKind = Exclude<(typeof KIND_OF_ARRAY)[ArrayName], 'voucherCode'>;

export interface Placed<E> {
  readonly index: number;
  readonly entry: E;
}

/** The file's entries whose shape is valid. */
export type CheckedFile = { readonly [A in ArrayName]?: readonly Placed<FileArrays[A]>[] };

/** Fields that refer to other entries, and their kinds. A field holds one id or a list of ids. */
export const REFERENCES: { readonly [A in ArrayName]: Readonly<Record<string, IdKind>> } = {
  integrations: {},
  merchants: {},
  brands: {
    merchant_id: 'merchant',
    integration_id: 'integration',
    consolidated_products: 'product',
    visible_to: 'user',
  },
  stores: { brand_id: 'brand' },
  segments: {},
  products: { brand_id: 'brand', segments: 'segment' },
  categories: { products: 'product' },
  users: { merchant_id: 'merchant' },
  clients: { users: 'user' },
  payment_methods: { users: 'user' },
  voucher_codes: { segment_id: 'segment' },
};

/** The import file (decisions 9): its arrays and what an entry of each looks like once its shape has been checked. */
import type { PaymentMethod, Permission, Role } from '../domain/account.js';

/** An integration method. */
export interface FileIntegration {
  readonly id: string;
  readonly name: string;
}

/** A merchant. */
export interface FileMerchant {
  readonly id: string;
  readonly name: string;
  readonly adjustment_codes?: readonly string[];
}

/** A brand. */
export interface FileBrand {
  readonly id: string;
  readonly name: string;
  readonly merchant_id: string;
  readonly integration_id?: string;
  readonly consolidated?: 0 | 1;
  readonly consolidated_products?: readonly string[];
  readonly description?: string;
  readonly image_url?: string;
  readonly active?: boolean;
  readonly visible_to?: readonly string[];
}

/** A store. Degrees. */
export interface FileStore {
  readonly id: string;
  readonly brand_id: string;
  readonly name: string;
  readonly address?: string;
  readonly postcode?: string;
  readonly longitude: number;
  readonly latitude: number;
}

/** A voucher segment; `expiry` is days. */
export interface FileSegment {
  readonly id: string;
  readonly name: string;
  readonly voucherType: string;
  readonly expiry: number;
  readonly configuration?: Readonly<Record<string, unknown>>;
}

/** A product; `sale_price` is pence. */
export interface FileProduct {
  readonly id: string;
  readonly brand_id: string;
  readonly name: string;
  readonly description?: string;
  readonly sale_price: number;
  readonly image_url?: string;
  readonly active?: boolean;
  readonly segments?: readonly string[];
  readonly valid_days?: number;
}

/** A category. */
export interface FileCategory {
  readonly id: string;
  readonly name: string;
  readonly image_url?: string;
  readonly featured?: 0 | 1;
  readonly products: readonly string[];
}

/** A user, with one of `password` and `password_hash`. */
export interface FileUser {
  readonly id: string;
  readonly username: string;
  readonly password?: string;
  readonly password_hash?: string;
  readonly name?: string;
  readonly locale?: string;
  readonly phone_number?: string;
  readonly device_tokens?: readonly string[];
  readonly active?: boolean;
  readonly roles?: readonly Role[];
  readonly merchant_id?: string;
  readonly permissions?: readonly Permission[];
}

/** A client, with one of `secret` and `secret_hash`. */
export interface FileClient {
  readonly id: string;
  readonly secret?: string;
  readonly secret_hash?: string;
  readonly name: string;
  readonly active?: boolean;
  readonly users?: readonly string[];
}

/** Money put into a wallet, in pence. */
export interface FileTopUp {
  readonly id: string;
  readonly amount: number;
}

/** A payment method. */
export interface FilePaymentMethod {
  readonly reference: string;
  readonly kind: PaymentMethod['kind'];
  readonly users: readonly string[];
  readonly customer?: string;
  readonly prepaid?: boolean;
  readonly top_ups?: readonly FileTopUp[];
}

/** A voucher code of a segment's pool. */
export interface FileVoucherCode {
  readonly segment_id: string;
  readonly code: string;
  readonly pin?: string;
}

/** The arrays with their entries. */
export interface FileArrays {
  readonly integrations: FileIntegration;
  readonly merchants: FileMerchant;
  readonly brands: FileBrand;
  readonly stores: FileStore;
  readonly segments: FileSegment;
  readonly products: FileProduct;
  readonly categories: FileCategory;
  readonly users: FileUser;
  readonly clients: FileClient;
  readonly payment_methods: FilePaymentMethod;
  readonly voucher_codes: FileVoucherCode;
}

/** The name of an array. */
export type ArrayName = keyof FileArrays;

/** The entry kind that an array brings in; it is also the first part of its streams' names. */
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

/** The names of all arrays. */
export const ARRAY_NAMES = Object.keys(KIND_OF_ARRAY) as ArrayName[];

/** Entry kinds whose entries have an id. */
export type IdKind = Exclude<(typeof KIND_OF_ARRAY)[ArrayName], 'voucherCode'>;

/** One entry of the file, with its place there. */
export interface Placed<E> {
  readonly index: number;
  readonly entry: E;
}

/** The entries whose shape is right. An array that doesn't stand in the file is absent. */
export type CheckedFile = { readonly [A in ArrayName]?: readonly Placed<FileArrays[A]>[] };

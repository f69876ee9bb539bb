/** What the model knows of an installation: the part of the import file (docs/import.md) that decides on gifts. */

/** A product, and which merchants its gifts are valid for (docs/api/gifts.md#valid-merchants). */
export interface Product {
  readonly id: string;
  /** Pence. */
  readonly price: number;
  readonly validDays: number;
  /** That of its brand. */
  readonly merchant: string;
  readonly merchants: readonly string[];
  /** Ids of its voucher segments, the one that is used by default first. */
  readonly segments: readonly string[];
  /** Whether its brand has V1 vouchers. */
  readonly servesV1: boolean;
}

export interface User {
  readonly id: string;
  /** The merchant that the user works for. */
  readonly merchant: string | undefined;
  readonly permissions: readonly string[];
  readonly roles: readonly string[];
  /** As imported. */
  readonly phone: string | undefined;
}

/** What a payment method does: its charges settle or are declined, or the documents leave it open. */
export type PaymentOutcome = 'charged' | 'declined' | 'either';

export interface PaymentMethod {
  readonly reference: string;
  readonly users: readonly string[];
  readonly outcome: PaymentOutcome;
  /** Whether a ledger has its charges: wallets that are not prepaid are settled by invoice. */
  readonly booked: boolean;
}

export interface Installation {
  readonly products: ReadonlyMap<string, Product>;
  readonly users: ReadonlyMap<string, User>;
  /** Ids of locations, each with the merchant whose it is. */
  readonly locations: ReadonlyMap<string, string>;
  readonly payments: ReadonlyMap<string, PaymentMethod>;
  /** Codes of voucher segments that have a pool. */
  readonly pools: ReadonlyMap<string, readonly string[]>;
}

interface ImportFile {
  readonly brands: readonly {
    readonly id: string;
    readonly merchant_id: string;
    readonly integration_id?: string;
    readonly active?: boolean;
    readonly visible_to?: readonly string[];
    readonly consolidated_products?: readonly string[];
  }[];
  readonly stores: readonly { readonly id: string; readonly brand_id: string }[];
  readonly products: readonly {
    readonly id: string;
    readonly brand_id: string;
    readonly sale_price: number;
    readonly valid_days?: number;
    readonly active?: boolean;
    readonly segments?: readonly string[];
  }[];
  readonly users: readonly {
    readonly id: string;
    readonly merchant_id?: string;
    readonly permissions?: readonly string[];
    readonly roles?: readonly string[];
    readonly phone_number?: string;
    readonly active?: boolean;
  }[];
  readonly payment_methods: readonly {
    readonly reference: string;
    readonly kind: string;
    readonly users: readonly string[];
    readonly prepaid?: boolean;
  }[];
  readonly voucher_codes?: readonly { readonly segment_id: string; readonly code: string }[];
}

/** What the documents say of the cards of Stripe that are charged or declined (docs/api/sandbox.md#cards). */
const CARDS: readonly (readonly [RegExp, PaymentOutcome])[] = [
  [/^pm_card_.*[cC]hargeDeclined/, 'declined'],
  [/^pm_card_(visa|slow|flaky|answerLost|away)$/, 'charged'],
];

/** Reads an import file. Products that nobody can buy, or only some users, are left out. */
export function installationOf(file: object): Installation {
  const { brands, stores, products, users, payment_methods, voucher_codes = [] } = file as ImportFile;
  const brand = new Map(brands.map((one) => [one.id, one]));
  const merchantOf = (id: string): string => {
    const found = brand.get(id);
    if (found === undefined) throw new Error(`no brand ${id}`);
    return found.merchant_id;
  };
  const sold = products.filter(({ active, brand_id }) => {
    const made = brand.get(brand_id);
    return active !== false && made?.active !== false && made?.visible_to === undefined;
  });
  return {
    products: new Map(
      sold.map((one) => [
        one.id,
        {
          id: one.id,
          price: one.sale_price,
          validDays: one.valid_days ?? 365,
          merchant: merchantOf(one.brand_id),
          merchants: [
            ...new Set([
              merchantOf(one.brand_id),
              ...brands
                .filter(({ consolidated_products = [] }) => consolidated_products.includes(one.id))
                .map(({ merchant_id }) => merchant_id),
            ]),
          ],
          segments: one.segments ?? [],
          servesV1: /^[1-6]$/.test(brand.get(one.brand_id)?.integration_id ?? ''),
        },
      ]),
    ),
    users: new Map(
      users
        .filter(({ active }) => active !== false)
        .map((one) => [
          one.id,
          {
            id: one.id,
            merchant: one.merchant_id,
            permissions: one.permissions ?? [],
            roles: one.roles ?? [],
            phone: one.phone_number,
          },
        ]),
    ),
    locations: new Map(stores.map(({ id, brand_id }) => [id, merchantOf(brand_id)])),
    payments: new Map(
      payment_methods.map(({ reference, users: may, kind, prepaid }) => {
        const card = CARDS.find(([pattern]) => pattern.test(reference))?.[1] ?? 'either';
        const outcome = kind === 'card' ? card : prepaid === true ? 'either' : 'charged';
        const booked = kind === 'card' || prepaid === true;
        return [reference, { reference, users: may, outcome, booked }];
      }),
    ),
    pools: new Map(
      [...new Set(voucher_codes.map(({ segment_id }) => segment_id))].map((segment) => [
        segment,
        voucher_codes.filter(({ segment_id }) => segment_id === segment).map(({ code }) => code),
      ]),
    ),
  };
}

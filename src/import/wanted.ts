/** What a file wants to stand in the log: its entries whole, with the defaults of what they leave out. */
import type { Client, PaymentMethod, ReservationKind, User } from '../domain/account.js';
import type { Brand, Category, Integration, Merchant, Product, Segment, Store } from '../domain/catalogue.js';
import type { KeyedHash } from '../domain/keyedHash.js';
import { normalisePhoneNumber } from '../domain/phoneNumber.js';
import { isUsername, normaliseUsername, opaqueString } from '../domain/precis.js';
import { inSlices } from '../lib/async/slices.js';
import type { ArrayName, CheckedFile, FileArrays, Placed } from './file.js';

/** Days that a gift is valid where its product doesn't say (decisions 4). */
const VALID_DAYS = 365;

/** A secret as the file gives it: plain, or hashed already. */
export type GivenSecret = { readonly plain: string } | { readonly hash: string };

/** An entry of the file as it is to stand. */
export interface Wanted<V> {
  readonly index: number;
  readonly id: string;
  readonly value: V;
}

/**
 * A user, whose password is still to be compared or hashed. `value.phone_number` is E.164, null where it is not valid
 * (which is a fault).
 */
export interface WantedUser extends Wanted<Omit<User, 'password_hash'>> {
  readonly secret: GivenSecret | undefined;
  readonly usernameHash: string;
  /** It holds what no username may. */
  readonly usernameFaulty: boolean;
  readonly phoneHash: string | undefined;
  readonly phoneFaulty: boolean;
}

/** The hash that a user reserves; `undefined`: none, having no number. */
export function reservedHash(kind: ReservationKind, { usernameHash, phoneHash }: WantedUser): string | undefined {
  return kind === 'username' ? usernameHash : phoneHash;
}

/** A client, whose secret is still to be compared or hashed. */
export interface WantedClient extends Wanted<Omit<Client, 'secret_hash'>> {
  readonly secret: GivenSecret | undefined;
}

/** A payment method with its top-ups. */
export interface WantedPaymentMethod extends Wanted<PaymentMethod> {
  readonly topUps: readonly { readonly id: string; readonly amount: number }[];
}

/** A pool code; its id is segment and hash, as in the stream's name. */
export interface WantedCode extends Wanted<{
  readonly segment_id: string;
  readonly code: string;
  readonly pin: string | null;
}> {}

/** Everything, by array; an array that doesn't stand in the file is absent. */
export interface WantedImport {
  readonly integrations?: readonly Wanted<Integration>[];
  readonly merchants?: readonly Wanted<Merchant>[];
  readonly brands?: readonly Wanted<Brand>[];
  readonly stores?: readonly Wanted<Store>[];
  readonly segments?: readonly Wanted<Segment>[];
  readonly products?: readonly Wanted<Product>[];
  readonly categories?: readonly Wanted<Category>[];
  readonly users?: readonly WantedUser[];
  readonly clients?: readonly WantedClient[];
  readonly payment_methods?: readonly WantedPaymentMethod[];
  readonly voucher_codes?: readonly WantedCode[];
}

type Of<A extends ArrayName> = NonNullable<WantedImport[A]>[number];
type Makers = { readonly [A in ArrayName]: (entry: FileArrays[A], index: number, hash: KeyedHash) => Of<A> };

const MAKERS: Makers = {
  integrations: (entry, index) => ({ index, id: entry.id, value: entry }),
  merchants: (entry, index) => ({
    index,
    id: entry.id,
    value: { ...entry, adjustment_codes: entry.adjustment_codes ?? [] },
  }),
  brands: (entry, index) => ({
    index,
    id: entry.id,
    value: {
      ...entry,
      integration_id: entry.integration_id ?? null,
      consolidated: entry.consolidated ?? 0,
      consolidated_products: entry.consolidated_products ?? [],
      description: entry.description ?? '',
      image_url: entry.image_url ?? '',
      active: entry.active ?? true,
      visible_to: entry.visible_to ?? null,
    },
  }),
  stores: (entry, index) => ({
    index,
    id: entry.id,
    value: { ...entry, address: entry.address ?? '', postcode: entry.postcode ?? '' },
  }),
  segments: (entry, index) => ({ index, id: entry.id, value: { ...entry, configuration: entry.configuration ?? {} } }),
  products: (entry, index) => ({
    index,
    id: entry.id,
    value: {
      ...entry,
      description: entry.description ?? '',
      image_url: entry.image_url ?? '',
      active: entry.active ?? true,
      segments: entry.segments ?? [],
      valid_days: entry.valid_days ?? VALID_DAYS,
    },
  }),
  categories: (entry, index) => ({
    index,
    id: entry.id,
    value: { ...entry, image_url: entry.image_url ?? '', featured: entry.featured ?? 0 },
  }),
  users: ({ password, password_hash, ...entry }, index, hash) => {
    const username = normaliseUsername(entry.username);
    const phone = entry.phone_number === undefined ? undefined : normalisePhoneNumber(entry.phone_number);
    return {
      index,
      id: entry.id,
      value: {
        id: entry.id,
        username: entry.username,
        name: entry.name ?? '',
        locale: entry.locale ?? null,
        phone_number: phone ?? null,
        device_tokens: entry.device_tokens ?? [],
        active: entry.active ?? true,
        roles: entry.roles ?? [],
        merchant_id: entry.merchant_id ?? null,
        permissions: entry.permissions ?? [],
      },
      secret: givenSecret(password === undefined ? undefined : opaqueString(password), password_hash),
      usernameHash: hash('username', username),
      usernameFaulty: !isUsername(username),
      phoneHash: phone === undefined ? undefined : hash('phone', phone),
      phoneFaulty: entry.phone_number !== undefined && phone === undefined,
    };
  },
  clients: ({ secret, secret_hash, ...entry }, index) => ({
    index,
    id: entry.id,
    value: { ...entry, active: entry.active ?? true, users: entry.users ?? null },
    secret: givenSecret(secret, secret_hash),
  }),
  payment_methods: ({ top_ups, ...entry }, index) => ({
    index,
    id: entry.reference,
    value: { ...entry, customer: entry.customer ?? null, prepaid: entry.prepaid ?? false, active: true },
    topUps: top_ups ?? [],
  }),
  voucher_codes: (entry, index, hash) => ({
    index,
    id: `${entry.segment_id}-${hash('code', entry.code)}`,
    value: { ...entry, pin: entry.pin ?? null },
  }),
};

/** One of the two must be given; `undefined` (a fault) where both or neither are. */
function givenSecret(plain: string | undefined, hash: string | undefined): GivenSecret | undefined {
  if (plain !== undefined) return hash === undefined ? { plain } : undefined;
  return hash === undefined ? undefined : { hash };
}

/** What the file's entries want. */
export async function wantedOf(file: CheckedFile, hash: KeyedHash): Promise<WantedImport> {
  const wanted: Partial<Record<ArrayName, Wanted<unknown>[]>> = {};
  for (const array of Object.keys(file) as ArrayName[]) {
    const made: Wanted<unknown>[] = [];
    const make = MAKERS[array] as (entry: unknown, index: number, hash: KeyedHash) => Wanted<unknown>;
    const entries: readonly Placed<unknown>[] = file[array] ?? [];
    await inSlices(entries, ({ entry, index }) => made.push(make(entry, index, hash)));
    wanted[array] = made;
  }
  return wanted as unknown as WantedImport;
}

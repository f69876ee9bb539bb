/** The entries of a file as they are to be in the log: whole, with defaults. */
import type { Client, PaymentMethod, ReservationKind, User } from '../domain/account.js';
import type { Brand, Category, Integration, Merchant, Product, Segment, Store } from '../domain/catalogue.js';
import type { KeyedHash } from '../domain/keyedHash.js';
import { normalisePhoneNumber } from '../domain/phoneNumber.js';
import { isUsername, normaliseUsername, opaqueString } from '../domain/precis.js';
import { inSlices } from '../lib/async/slices.js';
import { type ArrayName, type CheckedFile, DEFAULTS, type FileArrays, type Placed } from './file.js';

export type GivenSecret = { readonly plain: string } | { readonly hash: string };

export interface Wanted<V> {
  readonly index: number;
  readonly id: string;
  readonly value: V;
}

/** `value.phone_number`: E.164; null where there is none, or it is faulty. */
export interface WantedUser extends Wanted<Omit<User, 'password_hash'>> {
  readonly secret: GivenSecret | undefined;
  readonly usernameHash: string;
  readonly usernameFaulty: boolean;
  readonly phoneHash: string | undefined;
  readonly phoneFaulty: boolean;
}

/** `undefined`: the user has no number. */
export function reservedHash(kind: ReservationKind, { usernameHash, phoneHash }: WantedUser): string | undefined {
  return kind === 'username' ? usernameHash : phoneHash;
}

export interface WantedClient extends Wanted<Omit<Client, 'secret_hash'>> {
  readonly secret: GivenSecret | undefined;
}

export interface WantedPaymentMethod extends Wanted<PaymentMethod> {
  readonly topUps: readonly { readonly id: string; readonly amount: number }[];
}

/** `id`: segment and hash, as in the stream's name. */
export interface WantedCode extends Wanted<{
  readonly segment_id: string;
  readonly code: string;
  readonly pin: string | null;
}> {}

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
  merchants: (entry, index) => ({ index, id: entry.id, value: { ...DEFAULTS.merchants, ...entry } }),
  brands: (entry, index) => ({ index, id: entry.id, value: { ...DEFAULTS.brands, ...entry } }),
  stores: (entry, index) => ({ index, id: entry.id, value: { ...DEFAULTS.stores, ...entry } }),
  segments: (entry, index) => ({ index, id: entry.id, value: { ...DEFAULTS.segments, ...entry } }),
  products: (entry, index) => ({ index, id: entry.id, value: { ...DEFAULTS.products, ...entry } }),
  categories: (entry, index) => ({ index, id: entry.id, value: { ...DEFAULTS.categories, ...entry } }),
  users: ({ password, password_hash, ...entry }, index, hash) => {
    const username = normaliseUsername(entry.username);
    const phone = entry.phone_number === undefined ? undefined : normalisePhoneNumber(entry.phone_number);
    return {
      index,
      id: entry.id,
      value: { ...DEFAULTS.users, ...entry, phone_number: phone ?? null },
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
    value: { ...DEFAULTS.clients, ...entry },
    secret: givenSecret(secret, secret_hash),
  }),
  payment_methods: ({ top_ups, ...entry }, index) => ({
    index,
    id: entry.reference,
    value: { ...DEFAULTS.payment_methods, ...entry, active: true },
    topUps: top_ups ?? [],
  }),
  voucher_codes: (entry, index, hash) => ({
    index,
    id: `${entry.segment_id}-${hash('code', entry.code)}`,
    value: { ...DEFAULTS.voucher_codes, ...entry },
  }),
};

/** `undefined` (a fault) unless exactly one of the two is given. */
function givenSecret(plain: string | undefined, hash: string | undefined): GivenSecret | undefined {
  if (plain !== undefined) return hash === undefined ? { plain } : undefined;
  return hash === undefined ? undefined : { hash };
}

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

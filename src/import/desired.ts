/** The entries of a file as they are to be in the log: whole, with defaults. */
import type { Client, PaymentMethod, ReservationKind, User } from '../domain/account.js';
import type { Brand, Category, Integration, Merchant, Product, Segment, Store } from '../domain/catalogue.js';
import type { KeyedHash } from '../domain/keyedHash.js';
import {
  paymentMethodSubject,
  type PersonName,
  phoneSubject,
  usernameSubject,
  userSubject,
} from '../domain/personalFields.js';
import { readPhoneNumber } from '../domain/phoneNumber.js';
import { isUsername, normaliseUsername, opaqueString } from '../lib/precis.js';
import { inSlices } from '../lib/async/slices.js';
import { type ArrayName, type CheckedFile, DEFAULTS, type FileArrays, type Placed } from './file.js';

export type GivenSecret = { readonly plain: string } | { readonly hash: string };

export interface Desired<V> {
  readonly index: number;
  readonly id: string;
  readonly value: V;
}

/** `value.phone_number`: E.164, not always valid; null where the user has none, or where the text is no number. */
export interface DesiredUser extends Desired<Omit<User, 'password_hash'>> {
  readonly secret: GivenSecret | undefined;
  readonly usernameId: string;
  readonly usernameFaulty: boolean;
  readonly phoneId: string | undefined;
  readonly phoneUnreadable: boolean;
}

/** Id of the username or number that a user reserves; `undefined`: they have no number. */
export function reservedId(kind: ReservationKind, { usernameId, phoneId }: DesiredUser): string | undefined {
  return kind === 'username' ? usernameId : phoneId;
}

interface DesiredClient extends Desired<Omit<Client, 'secret_hash'>> {
  readonly secret: GivenSecret | undefined;
}

export interface DesiredPaymentMethod extends Desired<PaymentMethod> {
  readonly topUps: readonly { readonly id: string; readonly amount: number }[];
}

/** A voucher code. `id`: segment and hash, as in the stream's name. */
export interface DesiredCode extends Desired<{
  readonly segment_id: string;
  readonly code: string;
  readonly pin: string | null;
}> {}

export interface DesiredImport {
  readonly integrations?: readonly Desired<Integration>[];
  readonly merchants?: readonly Desired<Merchant>[];
  readonly brands?: readonly Desired<Brand>[];
  readonly stores?: readonly Desired<Store>[];
  readonly segments?: readonly Desired<Segment>[];
  readonly products?: readonly Desired<Product>[];
  readonly categories?: readonly Desired<Category>[];
  readonly users?: readonly DesiredUser[];
  readonly clients?: readonly DesiredClient[];
  readonly payment_methods?: readonly DesiredPaymentMethod[];
  readonly voucher_codes?: readonly DesiredCode[];
}

type Of<A extends ArrayName> = NonNullable<DesiredImport[A]>[number];
/** Returns the id of a username or a number, known or proposed. */
export type ReservedIds = (name: PersonName) => string;

type Maker<A extends ArrayName> = (entry: FileArrays[A], hash: KeyedHash, idOf: ReservedIds) => Omit<Of<A>, 'index'>;

/** Makers of entries that have more to them than their fields and defaults. */
const MAKERS: { readonly [A in ArrayName]?: Maker<A> } = {
  users: ({ password, password_hash, ...entry }, _hash, idOf) => {
    const { username, phone } = reservationsOf(entry);
    return {
      id: entry.id,
      value: { ...DEFAULTS.users, ...entry, phone_number: phone ?? null },
      secret: givenSecret(password === undefined ? undefined : opaqueString(password), password_hash),
      usernameId: idOf(usernameSubject(username)),
      usernameFaulty: !isUsername(username),
      phoneId: phone === undefined ? undefined : idOf(phoneSubject(phone)),
      phoneUnreadable: entry.phone_number !== undefined && phone === undefined,
    };
  },
  clients: ({ secret, secret_hash, ...entry }) => ({
    id: entry.id,
    value: { ...DEFAULTS.clients, ...entry },
    secret: givenSecret(secret, secret_hash),
  }),
  payment_methods: ({ top_ups, ...entry }) => ({
    id: entry.reference,
    value: { ...DEFAULTS.payment_methods, ...entry, active: true },
    topUps: top_ups ?? [],
  }),
  voucher_codes: (entry, hash) => ({
    id: `${entry.segment_id}-${hash('code', entry.code)}`,
    value: { ...DEFAULTS.voucher_codes, ...entry },
  }),
};

function makerOf(array: ArrayName): Maker<ArrayName> {
  const plain = (entry: { readonly id: string }): object => ({
    id: entry.id,
    value: { ...DEFAULTS[array], ...entry },
  });
  return (MAKERS[array] ?? plain) as Maker<ArrayName>;
}

/** `undefined` (a fault) unless exactly one of the two is given. */
function givenSecret(plain: string | undefined, hash: string | undefined): GivenSecret | undefined {
  if (plain !== undefined) return hash === undefined ? { plain } : undefined;
  return hash === undefined ? undefined : { hash };
}

interface Reservations {
  readonly username: string;
  readonly phone: string | undefined;
}

function reservationsOf({
  username,
  phone_number,
}: Pick<FileArrays['users'], 'username' | 'phone_number'>): Reservations {
  return {
    username: normaliseUsername(username),
    phone: phone_number === undefined ? undefined : readPhoneNumber(phone_number),
  };
}

/**
 * The subjects of personal data in a file: the names its users reserve, and the subjects whose data keys its events
 * need.
 */
export async function subjectsIn(file: CheckedFile): Promise<readonly PersonName[]> {
  const names: PersonName[] = [];
  await inSlices(file.users ?? [], ({ entry }) => {
    const { username, phone } = reservationsOf(entry);
    names.push(userSubject(entry.id), usernameSubject(username));
    if (phone !== undefined) names.push(phoneSubject(phone));
  });
  await inSlices(file.payment_methods ?? [], ({ entry }) => names.push(paymentMethodSubject(entry.reference)));
  return names;
}

export async function desiredOf(file: CheckedFile, hash: KeyedHash, idOf: ReservedIds): Promise<DesiredImport> {
  const desired: Partial<Record<ArrayName, Of<ArrayName>[]>> = {};
  for (const array of Object.keys(file) as ArrayName[]) {
    const made: Of<ArrayName>[] = [];
    const make = makerOf(array);
    const entries: readonly Placed<FileArrays[ArrayName]>[] = file[array] ?? [];
    await inSlices(entries, ({ entry, index }) => made.push({ index, ...make(entry, hash, idOf) } as Of<ArrayName>));
    desired[array] = made;
  }
  return desired as DesiredImport;
}

/**
 * Imported accounts (docs/import.md#import-arrays): users, API clients, payment methods, and the reservations that
 * keep usernames and phone numbers unique.
 */

import type { Aggregate, DomainEvent, Happened } from './decider.js';
import { type Entry, type EntryEvent, evolveEntry } from './entry.js';
import type { ErasureEvent } from './erasure.js';

/**
 * Permissions of a merchant's user at the merchant's own locations; `webhooks` is for the merchant's webhook endpoints.
 */
export const PERMISSIONS = ['redeem', 'unredeem', 'webhooks'] as const;

type Permission = (typeof PERMISSIONS)[number];

/** docs/support.md#ops-roles. */
export type Role = 'support' | 'auditor';

/** A person who works under `/ops` (docs/api/tokens.md#staff-accounts). */
export const isStaff = ({ roles }: Pick<User, 'roles'>): boolean => roles.length > 0;

/** `merchant_id: null`: a customer. */
export interface User {
  readonly id: string;
  readonly username: string;
  /** Argon2id hash of the password, as a PHC string. Secret. */
  readonly password_hash: string;
  readonly name: string;
  readonly locale: string | null;
  /** The user's phone number in E.164. Personal. */
  readonly phone_number: string | null;
  readonly device_tokens: readonly string[];
  readonly active: boolean;
  readonly roles: readonly Role[];
  readonly merchant_id: string | null;
  readonly permissions: readonly Permission[];
}

/**
 * `users: null`: the client may log in every user. `staff`: whether roles count for users logged in through the client;
 * null: they count, since the operator has not decided.
 */
export interface Client {
  readonly id: string;
  /** Argon2id hash of the client's secret, as a PHC string. Secret. */
  readonly secret_hash: string;
  readonly name: string;
  readonly active: boolean;
  readonly users: readonly string[] | null;
  readonly staff: boolean | null;
}

export interface PaymentMethod {
  readonly reference: string;
  readonly kind: 'card' | 'wallet';
  readonly users: readonly string[];
  /** Id of the customer at the card processor. */
  readonly customer: string | null;
  /** A prepaid wallet must be topped up before it pays; other wallets are settled by invoice. */
  readonly prepaid: boolean;
  readonly active: boolean;
}

/** Times are ISO 8601. The present holder has no `to`. */
export interface PhoneHolder {
  readonly user_id: string;
  readonly from: string;
  readonly to?: string;
}

/**
 * The owner of a gift sent to a number at `sentAt` (docs/api/gifts.md#gift-owner): the holder at that time, else the
 * first later one. `holders` are in order of time.
 */
export function ownerByPhone(holders: readonly PhoneHolder[], sentAt: string): string | undefined {
  return holders.find((holder) => holder.to === undefined || holder.to > sentAt)?.user_id;
}

export interface AccountKinds {
  readonly user: User;
  readonly client: Client;
  readonly paymentMethod: PaymentMethod;
}

export type AccountKind = keyof AccountKinds;

/** Kinds of accounts, in the order of an import. */
export const ACCOUNT_KINDS = ['user', 'client', 'paymentMethod'] as const satisfies readonly AccountKind[];

/** Stream of an account; the id of a payment method is its reference. */
export const accountStream = (kind: AccountKind, id: string): string => `${kind}-${id}`;

/**
 * Secret in `UserAdded` and `UserChanged`: `password_hash`. Personal: `username`, `name`, `phone_number`,
 * `device_tokens`. `UserRetired` frees username and phone number.
 */
export type UserEvent = EntryEvent<'user', User>;

/** Secret in `ClientAdded` and `ClientChanged`: `secret_hash`. */
export type ClientEvent = EntryEvent<'client', Client>;

/** Personal in `PaymentMethodAdded` and `PaymentMethodChanged`: `customer`. */
export type PaymentMethodEvent = EntryEvent<'paymentMethod', PaymentMethod> | PaymentMethodErased;

/**
 * The payment method was erased together with its last user. An import may add its reference again, for another user.
 */
type PaymentMethodErased = DomainEvent<'PaymentMethodErased', { readonly erasure_id: string }>;

const NOTHING_PERSONAL = { username: '', password_hash: '', name: '', phone_number: null, device_tokens: [] } as const;

export function evolveUser(state: Entry<User>, event: DomainEvent): Entry<User> {
  if (event.type === 'PersonErased' && state.status !== 'none')
    return { status: 'erased', value: { ...state.value, ...NOTHING_PERSONAL, active: false } };
  const next = evolveEntry(state, event);
  return next.status === 'retired'
    ? { status: 'retired', value: { ...next.value, phone_number: null, device_tokens: [] } }
    : next;
}

export function evolvePaymentMethod(state: Entry<PaymentMethod>, event: DomainEvent): Entry<PaymentMethod> {
  return event.type === 'PaymentMethodErased' && state.status !== 'none'
    ? { status: 'erased', value: { ...state.value, customer: null, active: false } }
    : evolveEntry(state, event);
}

export type ReservationKind = 'username' | 'phone';

/** `hash` is the keyed hash of the normalised username, or of the phone number in E.164. */
export const reservationStream = (kind: ReservationKind, hash: string): string => `${kind}-${hash}`;

export const phoneStream = (hash: string): string => reservationStream('phone', hash);

export const usernameStream = (hash: string): string => reservationStream('username', hash);

type UsernameTaken = DomainEvent<'UsernameTaken', { readonly user_id: string }>;

type UsernameGivenUp = DomainEvent<'UsernameGivenUp', { readonly user_id: string }>;

export type PhoneTaken = DomainEvent<'PhoneTaken', { readonly user_id: string }>;

export type PhoneGivenUp = DomainEvent<'PhoneGivenUp', { readonly user_id: string }>;

export type ReservationEvent = UsernameTaken | UsernameGivenUp | PhoneTaken | PhoneGivenUp;

export type AccountEvent = UserEvent | ClientEvent | PaymentMethodEvent | ReservationEvent | ErasureEvent;

/** Holders of a username or phone number, in order of time. */
export type Reservation = readonly PhoneHolder[];

export const reservationAggregate: Aggregate<Reservation, AccountEvent> = {
  initial: [],
  evolve(holders: Reservation, event: Happened<AccountEvent>): Reservation {
    switch (event.type) {
      case 'UsernameTaken':
      case 'PhoneTaken':
        return [...holders, { user_id: event.data.user_id, from: event.at }];
      case 'UsernameGivenUp':
      case 'PhoneGivenUp':
        return holders.map((holder) => (holder.to === undefined ? { ...holder, to: event.at } : holder));
      default:
        return holders;
    }
  },
};

export function holderOf(reservation: Reservation): string | undefined {
  const last = reservation.at(-1);
  return last?.to === undefined ? last?.user_id : undefined;
}

/** The caller makes sure that the reservation is free. */
export function takeReservation(kind: ReservationKind, reservation: Reservation, userId: string): ReservationEvent[] {
  return holderOf(reservation) === userId
    ? []
    : [{ type: kind === 'username' ? 'UsernameTaken' : 'PhoneTaken', data: { user_id: userId } }];
}

export function giveUpReservation(kind: ReservationKind, reservation: Reservation, userId: string): ReservationEvent[] {
  return holderOf(reservation) === userId
    ? [{ type: kind === 'username' ? 'UsernameGivenUp' : 'PhoneGivenUp', data: { user_id: userId } }]
    : [];
}

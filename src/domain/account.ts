/**
 * Accounts as imports bring them (decisions 9): users, API clients, payment methods, and the reservations that keep
 * usernames and phone numbers unique.
 */

import type { Aggregate, DomainEvent, Happened } from './decider.js';
import { type Entry, type EntryEvent, evolveEntry } from './entry.js';

/** What a merchant's user may do at the merchant's locations. */
export type Permission = 'redeem' | 'unredeem';

/** Duties beside being a customer (decisions 8). */
export type Role = 'support' | 'auditor';

/** A user account. `merchant_id` null: a customer. */
export interface User {
  readonly id: string;
  readonly username: string;
  /** Argon2id, PHC string. Secret. */
  readonly password_hash: string;
  readonly name: string;
  readonly locale: string | null;
  /** E.164. Personal. */
  readonly phone_number: string | null;
  readonly device_tokens: readonly string[];
  readonly active: boolean;
  readonly roles: readonly Role[];
  readonly merchant_id: string | null;
  readonly permissions: readonly Permission[];
}

/** An API client. `users: null`: it may log in every user. */
export interface Client {
  readonly id: string;
  /** Argon2id, PHC string. Secret. */
  readonly secret_hash: string;
  readonly name: string;
  readonly active: boolean;
  readonly users: readonly string[] | null;
}

/** A stored card, or a shared wallet. */
export interface PaymentMethod {
  readonly reference: string;
  readonly kind: 'card' | 'wallet';
  readonly users: readonly string[];
  /** The card processor's customer id. */
  readonly customer: string | null;
  /** A wallet that must be topped up before it pays; else it is settled by invoice. */
  readonly prepaid: boolean;
  readonly active: boolean;
}

/** Who has, or had, a phone number: times are ISO 8601; `to` is absent for the present holder. */
export interface PhoneHolder {
  readonly user_id: string;
  readonly from: string;
  readonly to?: string;
}

/**
 * The owner of what was sent to a number at `sentAt` (decisions 2): who had the number then, or else the first who has
 * it later. `holders` are in order of time.
 */
export function ownerByPhone(holders: readonly PhoneHolder[], sentAt: string): string | undefined {
  return holders.find((holder) => holder.to === undefined || holder.to > sentAt)?.user_id;
}

/** Entry kinds of accounts, with their entries. The kind is the first part of the stream's name. */
export interface AccountKinds {
  readonly user: User;
  readonly client: Client;
  readonly paymentMethod: PaymentMethod;
}

/** The name of an entry kind. */
export type AccountKind = keyof AccountKinds;

/** The names of all entry kinds, in the order in which imports bring them in. */
export const ACCOUNT_KINDS = ['user', 'client', 'paymentMethod'] as const satisfies readonly AccountKind[];

/** The stream of an account; a payment method's id is its reference. */
export const accountStream = (kind: AccountKind, id: string): string => `${kind}-${id}`;

/**
 * Events of a user's stream. Secret in `UserAdded` and `UserChanged`: `password_hash`. Personal there: `username`,
 * `name`, `phone_number`, `device_tokens`. A pruned user (`UserRetired`) can't be reached or log in any more: the
 * number and the username are free for others.
 */
export type UserEvent = EntryEvent<'user', User>;

/** Events of a client's stream. Secret in `ClientAdded` and `ClientChanged`: `secret_hash`. */
export type ClientEvent = EntryEvent<'client', Client>;

/** Events of a payment method's stream. Personal in `PaymentMethodAdded` and `PaymentMethodChanged`: `customer`. */
export type PaymentMethodEvent = EntryEvent<'paymentMethod', PaymentMethod>;

/** The user after one more event: a retired one has no number and no devices any more. */
export function evolveUser(state: Entry<User>, event: DomainEvent): Entry<User> {
  const next = evolveEntry(state, event);
  return next.status === 'retired'
    ? { status: 'retired', value: { ...next.value, phone_number: null, device_tokens: [] } }
    : next;
}

/** What a reservation keeps for one user at a time. */
export type ReservationKind = 'username' | 'phone';

/** The stream of a reservation; `hash` is the keyed hash of the normalised username, or of the number in E.164. */
export const reservationStream = (kind: ReservationKind, hash: string): string => `${kind}-${hash}`;

/** The stream of a phone number, by the keyed hash of its E.164 form. */
export const phoneStream = (hash: string): string => reservationStream('phone', hash);

/** The stream of a username, by the keyed hash of its normalised form. */
export const usernameStream = (hash: string): string => reservationStream('username', hash);

/** The name is the user's. The stream's name tells it only to who holds the key. */
export type UsernameTaken = DomainEvent<'UsernameTaken', { readonly user_id: string }>;

/** The name is free again. */
export type UsernameGivenUp = DomainEvent<'UsernameGivenUp', { readonly user_id: string }>;

/** The number is the user's. The stream's name tells it only to who holds the key. */
export type PhoneTaken = DomainEvent<'PhoneTaken', { readonly user_id: string }>;

/** The number is free again. */
export type PhoneGivenUp = DomainEvent<'PhoneGivenUp', { readonly user_id: string }>;

/** Events of a reservation's stream. */
export type ReservationEvent = UsernameTaken | UsernameGivenUp | PhoneTaken | PhoneGivenUp;

/** Events of accounts. */
export type AccountEvent = UserEvent | ClientEvent | PaymentMethodEvent | ReservationEvent;

/** Everyone who has or had it, in order of time; the present holder is the last, without `to`. */
export type Reservation = readonly PhoneHolder[];

/** The fold. */
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

/** Whose it is now. */
export function holderOf(reservation: Reservation): string | undefined {
  const last = reservation.at(-1);
  return last?.to === undefined ? last?.user_id : undefined;
}

/** Takes it for a user; no event when it is the user's already. The caller has made sure that nobody else's it is. */
export function takeReservation(kind: ReservationKind, reservation: Reservation, userId: string): ReservationEvent[] {
  return holderOf(reservation) === userId
    ? []
    : [{ type: kind === 'username' ? 'UsernameTaken' : 'PhoneTaken', data: { user_id: userId } }];
}

/** Gives up what the user holds; no event when it isn't the user's. */
export function giveUpReservation(kind: ReservationKind, reservation: Reservation, userId: string): ReservationEvent[] {
  return holderOf(reservation) === userId
    ? [{ type: kind === 'username' ? 'UsernameGivenUp' : 'PhoneGivenUp', data: { user_id: userId } }]
    : [];
}

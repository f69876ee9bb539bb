/**
 * Accounts as imports bring them (docs/decisions.md#import-arrays): users, API clients, payment methods, and the
 * reservations that keep usernames and phone numbers unique.
 */

import type { Aggregate, DomainEvent, Happened } from './decider.js';
import { type Entry, type EntryEvent, evolveEntry } from './entry.js';

/** What a merchant's user may do at the merchant's locations. */
export type Permission = 'redeem' | 'unredeem';

/** Duties beside being a customer (docs/decisions.md#ops-roles). */
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
 * The owner of what was sent to a number at `sentAt` (docs/decisions.md#gift-owner): the holder at that time, else the
 * first one later. `holders` are in order of time.
 */
export function ownerByPhone(holders: readonly PhoneHolder[], sentAt: string): string | undefined {
  return holders.find((holder) => holder.to === undefined || holder.to > sentAt)?.user_id;
}

/** Entries by kind. The kind is the first part of the stream's name. */
export interface AccountKinds {
  readonly user: User;
  readonly client: Client;
  readonly paymentMethod: PaymentMethod;
}

export type AccountKind = keyof AccountKinds;

/** In the order of an import. */
export const ACCOUNT_KINDS = ['user', 'client', 'paymentMethod'] as const satisfies readonly AccountKind[];

/** The stream of an account; a payment method's id is its reference. */
export const accountStream = (kind: AccountKind, id: string): string => `${kind}-${id}`;

/**
 * Events of a user's stream. Secret in `UserAdded` and `UserChanged`: `password_hash`. Personal there: `username`,
 * `name`, `phone_number`, `device_tokens`. After `UserRetired` number and username are free for others.
 */
export type UserEvent = EntryEvent<'user', User>;

/** Events of a client's stream. Secret in `ClientAdded` and `ClientChanged`: `secret_hash`. */
export type ClientEvent = EntryEvent<'client', Client>;

/** Events of a payment method's stream. Personal in `PaymentMethodAdded` and `PaymentMethodChanged`: `customer`. */
export type PaymentMethodEvent = EntryEvent<'paymentMethod', PaymentMethod>;

/** The user after one more event: a retired one has no number and no devices. */
export function evolveUser(state: Entry<User>, event: DomainEvent): Entry<User> {
  const next = evolveEntry(state, event);
  return next.status === 'retired'
    ? { status: 'retired', value: { ...next.value, phone_number: null, device_tokens: [] } }
    : next;
}

export type ReservationKind = 'username' | 'phone';

/** The stream of a reservation; `hash` is the keyed hash of the normalised username, or of the number in E.164. */
export const reservationStream = (kind: ReservationKind, hash: string): string => `${kind}-${hash}`;

export const phoneStream = (hash: string): string => reservationStream('phone', hash);

export const usernameStream = (hash: string): string => reservationStream('username', hash);

/** The name is the user's. The stream's name has it as a keyed hash only. */
export type UsernameTaken = DomainEvent<'UsernameTaken', { readonly user_id: string }>;

/** The name is free again. */
export type UsernameGivenUp = DomainEvent<'UsernameGivenUp', { readonly user_id: string }>;

/** The number is the user's. The stream's name has it as a keyed hash only. */
export type PhoneTaken = DomainEvent<'PhoneTaken', { readonly user_id: string }>;

/** The number is free again. */
export type PhoneGivenUp = DomainEvent<'PhoneGivenUp', { readonly user_id: string }>;

export type ReservationEvent = UsernameTaken | UsernameGivenUp | PhoneTaken | PhoneGivenUp;

export type AccountEvent = UserEvent | ClientEvent | PaymentMethodEvent | ReservationEvent;

/** All holders in order of time; the present one is the last, without `to`. */
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

/** The present holder. */
export function holderOf(reservation: Reservation): string | undefined {
  const last = reservation.at(-1);
  return last?.to === undefined ? last?.user_id : undefined;
}

/** Takes it for a user; again: no event. The caller has made sure that it is free. */
export function takeReservation(kind: ReservationKind, reservation: Reservation, userId: string): ReservationEvent[] {
  return holderOf(reservation) === userId
    ? []
    : [{ type: kind === 'username' ? 'UsernameTaken' : 'PhoneTaken', data: { user_id: userId } }];
}

/** Gives up what the user holds; else: no event. */
export function giveUpReservation(kind: ReservationKind, reservation: Reservation, userId: string): ReservationEvent[] {
  return holderOf(reservation) === userId
    ? [{ type: kind === 'username' ? 'UsernameGivenUp' : 'PhoneGivenUp', data: { user_id: userId } }]
    : [];
}

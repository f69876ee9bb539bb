/** The read model `accounts`: users, clients, payment methods, usernames and phone numbers. A document's id is its stream's name. */
import type { Client, PaymentMethod, PhoneHolder, User } from '../domain/account.js';

/** `user-{id}`. `credential` rises with each change that ends the user's sessions: a new password, being disabled. */
export interface UserDocument extends User {
  readonly entry: 'user';
  readonly credential: number;
}

/** `client-{id}`. `credential` rises with each new secret and each disabling. */
export interface ClientDocument extends Client {
  readonly entry: 'client';
  readonly credential: number;
}

/** `paymentMethod-{reference}`. */
export interface PaymentMethodDocument extends PaymentMethod {
  readonly entry: 'paymentMethod';
}

/** `username-{hash}`: `user_id` is null when the name was given up. */
export interface UsernameDocument {
  readonly entry: 'username';
  readonly user_id: string | null;
}

/** `phone-{hash}`: who had the number when. */
export interface PhoneDocument {
  readonly entry: 'phone';
  readonly holders: readonly PhoneHolder[];
}

/** A document of the collection. */
export type AccountDocument = UserDocument | ClientDocument | PaymentMethodDocument | UsernameDocument | PhoneDocument;

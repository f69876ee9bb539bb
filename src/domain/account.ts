/** Accounts as imports bring them (decisions 9): users, API clients, payment methods, and the reservations that keep usernames and phone numbers unique. */

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
 * The owner of what was sent to a number at `sentAt` (decisions 2): who had the number then, or else the first who has it later.
 * `holders` are in order of time.
 */
export function ownerByPhone(holders: readonly PhoneHolder[], sentAt: string): string | undefined {
  return holders.find((holder) => holder.to === undefined || holder.to > sentAt)?.user_id;
}

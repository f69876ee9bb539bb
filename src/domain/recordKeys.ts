/**
 * The keys of records that hold personal data, or are found by keyed hashes of it. What writes them and what erases them
 * (`ops/people/eraseRecords.ts`) agree here.
 */

/** `{session id}`. `2` is the version of the record's shape: sessions of another shape count as ended. */
export const SESSIONS = 'session/2/';

/** `{command id}`: a stored answer. */
export const ANSWERS = 'idempotency:';

/** `{gift id}` or `{gift id}/{attempt}`: a claim with the number that a message goes to. */
export const SEND_CLAIMS = 'send/';

/** `{hash of the username}.{hash of the address}`: the user has logged in from there. */
export const LOGIN_SEEN = 'login-seen:';

/** `{hash of the username}`: a hash of the user's password. */
export const LOGIN_HASHES = 'login-hash:';

/** Prefixes of counters, followed by `:` and what is counted. */
export const COUNTERS = {
  /** Failed logins, by hash of the username; `pair`: `{hash of the username}.{hash of the address}`. */
  loginPair: 'throttle-pair',
  loginUsername: 'throttle-username',
  /** Purchases with messages, by hash of the number and by buyer. */
  smsNumber: 'sms-number',
  smsBuyer: 'sms-buyer',
} as const;

/** `{number's hash or buyer's id}/{transaction}`: a purchase that was counted. */
export const smsMarker = (kind: 'number' | 'buyer', counted: string): string => `smsUnit/${kind}/${counted}/`;

/**
 * Keys of records that hold personal data, or are found by keyed hashes of it. The code that writes such records and
 * the code that erases them (`ops/people/erasure/derivedData.ts`) share these keys.
 */

/**
 * Prefix of a session's key, before `{session id}`. `2` is the version of the record's shape: sessions of another shape
 * count as ended.
 */
export const SESSIONS = 'session/2/';

/** Prefix of a stored answer's key, before `{command id}`. */
export const ANSWERS = 'idempotency:';

/** Prefix before `{gift id}` or `{gift id}/{attempt}`: a claim, which holds the number to which a message goes. */
export const SEND_CLAIMS = 'send/';

/** Prefix before `{hash of the username}.{hash of the address}`: the user has logged in from this address. */
export const LOGIN_SEEN = 'login-seen:';

/** Prefix before `{hash of the username}`: the record holds a hash of the user's password. */
export const LOGIN_HASHES = 'login-hash:';

/** Prefixes of counters, followed by `:` and what is counted. */
export const COUNTERS = {
  /** Counters of failed logins, by hash of the username; `pair`: `{hash of the username}.{hash of the address}`. */
  loginPair: 'throttle-pair',
  loginUsername: 'throttle-username',
  /** Counters of purchases with messages, by hash of the number and by buyer. */
  smsNumber: 'sms-number',
  smsBuyer: 'sms-buyer',
} as const;

/** Prefix of markers `{number's hash or buyer's id}/{transaction}`, each for a purchase that was counted. */
export const smsMarker = (kind: 'number' | 'buyer', counted: string): string => `smsUnit/${kind}/${counted}/`;

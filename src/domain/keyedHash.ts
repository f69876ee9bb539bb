/** Keyed hashes, since a plain hash of a phone number is easily reversed (docs/design.md#keyed-hashes). */
import { createHmac } from 'node:crypto';

/** Kinds of hashed texts: equal texts of different kinds have different hashes. */
type HashKind =
  | 'subject'
  | 'phone'
  | 'username'
  | 'client'
  | 'secret'
  | 'code'
  | 'command'
  | 'body'
  | 'transaction'
  | 'address'
  | 'refresh'
  | 'backup'
  | 'shortcode';

/** HMAC-SHA-256 with HASH_KEY, or with a purchase's data key, cut to 128 bits: 22 characters of base64url. */
export type KeyedHash = (kind: HashKind, text: string) => string;

export function keyedHash(key: Buffer): KeyedHash {
  return (kind, text) =>
    createHmac('sha256', key).update(kind).update('\0').update(text).digest('base64url').slice(0, 22);
}

/**
 * The HMACs in stream names and command ids; a plain hash of a phone number is soon undone
 * (docs/design.md#keyed-hashes).
 */
import { createHmac } from 'node:crypto';

/** What is hashed; it separates equal texts of different meaning. */
export type HashKind = 'phone' | 'username' | 'code' | 'command' | 'transaction' | 'address' | 'refresh' | 'backup';

/** HMAC-SHA-256 under HASH_KEY, cut to 128 bits, as 22 characters of base64url. */
export type KeyedHash = (kind: HashKind, text: string) => string;

export function keyedHash(key: Buffer): KeyedHash {
  return (kind, text) =>
    createHmac('sha256', key).update(kind).update('\0').update(text).digest('base64url').slice(0, 22);
}

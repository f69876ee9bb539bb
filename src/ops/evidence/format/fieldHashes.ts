/**
 * Salted hashes of an event's data and metadata in its leaf (docs/evidence.md#salted-hashes). Without the salt a hash
 * reveals nothing, not even of a value with few possibilities such as a PIN.
 */
import { hash } from 'node:crypto';
import { sha256 } from './merkleTree.js';

/** Length of a salt: 16 bytes in hex. */
const SALT_CHARACTERS = 32;
const SALTS_OF_A_HASH = 4;

/** The salts of one event: each call of the returned function gives the next one, in hex. */
export function saltsOf(saltKey: string, eventId: string): () => string {
  let block = 0;
  let salts = '';
  let at = SALTS_OF_A_HASH;
  return () => {
    if (at === SALTS_OF_A_HASH) {
      salts = hash('sha512', `${saltKey} ${eventId} ${block++}`, 'hex');
      at = 0;
    }
    return salts.slice(at * SALT_CHARACTERS, ++at * SALT_CHARACTERS);
  };
}

/** The hash, in hex, of a field that is hashed apart from the rest of its event's data. */
export const fieldHash = (name: string, value: unknown, salt: string): string =>
  textHash(`${JSON.stringify(name)}:${JSON.stringify(value)}`, salt);

/** The digest of an event's data. @param value the data, with hashes in place of the fields that are hashed apart */
export const dataDigest = (apart: readonly string[], value: object, salt: string): Buffer =>
  textDigest(`${JSON.stringify(apart)}${JSON.stringify(value)}`, salt);

export const metadataDigest = (metadata: object, salt: string): Buffer => textDigest(JSON.stringify(metadata), salt);

/** Salted SHA-256 of a JSON text, the salt first: in hex here, as bytes in `textDigest`. */
export const textHash = (text: string, salt: string): string => hash('sha256', salt + text, 'hex');
export const textDigest = (text: string, salt: string): Buffer => sha256(salt + text);

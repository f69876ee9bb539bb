/**
 * Salted hashes of what a leaf holds of an event (docs/evidence.md#salted-hashes): a hash says nothing to those who lack
 * the salt, not even of a PIN.
 */
import { hash } from 'node:crypto';
import { sha256 } from './merkleTree.js';

/** In hex: 16 bytes each. */
const SALT_CHARACTERS = 32;
const SALTS_OF_A_HASH = 4;

/** The salts of one event, in hex: as many as are asked for, in their order. */
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

/** In hex: of a field that stands apart. */
export const fieldHash = (name: string, value: unknown, salt: string): string =>
  textHash(`${JSON.stringify(name)}:${JSON.stringify(value)}`, salt);

/** @param value the data, with their hashes in place of the fields that stand apart */
export const dataDigest = (apart: readonly string[], value: object, salt: string): Buffer =>
  textDigest(`${JSON.stringify(apart)}${JSON.stringify(value)}`, salt);

export const metadataDigest = (metadata: object, salt: string): Buffer => textDigest(JSON.stringify(metadata), salt);

/** The same, of the JSON text that stands behind the salt. */
export const textHash = (text: string, salt: string): string => hash('sha256', salt + text, 'hex');
export const textDigest = (text: string, salt: string): Buffer => sha256(salt + text);

/** Rules shared by all key stores. */
import { type ErasureRow, MAX_ERASURE_BYTES, MAX_SECRET_BYTES, type SubjectRow } from '../ports/keyStore.js';

/** An id or a lookup: 128 bits as base64url. */
const KEY = /^[A-Za-z0-9_-]{22}$/;

/** @throws Error that names the fault, without lookup and secret */
export function refuseInvalid(row: SubjectRow): void {
  refuseInvalidId(row.id);
  if (!KEY.test(row.lookup)) throw new Error(`the lookup of subject ${row.id} is not 22 characters of base64url`);
  refuseLongSecret(row);
}

/** @throws Error */
export function refuseLongSecret({ id, secret }: Pick<SubjectRow, 'id' | 'secret'>): void {
  // A character has 3 bytes at most, so the bytes of most secrets need not be counted.
  if (secret.length * 3 <= MAX_SECRET_BYTES) return;
  const bytes = Buffer.byteLength(secret);
  if (bytes > MAX_SECRET_BYTES)
    throw new Error(`the secret of subject ${id} has ${bytes} bytes, at most ${MAX_SECRET_BYTES} are allowed`);
}

/** @throws Error */
export function refuseInvalidId(id: string): void {
  if (!KEY.test(id)) throw new Error(`${JSON.stringify(id)} is not an id of a subject: 22 characters of base64url`);
}

/** @throws Error, without the text */
export function refuseInvalidErasure({ id, text }: ErasureRow): void {
  if (!KEY.test(id)) throw new Error(`${JSON.stringify(id)} is not an id of an erasure: 22 characters of base64url`);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_ERASURE_BYTES)
    throw new Error(`the text of erasure ${id} has ${bytes} bytes, at most ${MAX_ERASURE_BYTES} are allowed`);
}

export function takenId(id: string): Error {
  return new Error(`subject ${id} is found by another lookup`);
}

/** Ed25519 keys as the 32 bytes of RFC 8032. node:crypto takes these keys in DER only. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

export const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/** The DER prefixes (RFC 8410) before the 32 bytes of a private key and of a public one. */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

export interface Ed25519Key {
  readonly publicKey: Buffer;
  sign(message: Uint8Array): Buffer;
}

/** @param seed 32 random bytes: the private key */
export function ed25519Key(seed: Uint8Array): Ed25519Key {
  const key = createPrivateKey({ key: Buffer.concat([PRIVATE_PREFIX, seed]), format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(PUBLIC_PREFIX.length);
  return { publicKey, sign: (message) => sign(null, message, key) };
}

/** @param publicKey 32 bytes */
export function ed25519Verifier(publicKey: Uint8Array): (message: Uint8Array, signature: Uint8Array) => boolean {
  const key: KeyObject = createPublicKey({
    key: Buffer.concat([PUBLIC_PREFIX, publicKey]),
    format: 'der',
    type: 'spki',
  });
  return (message, signature) => signature.length === SIGNATURE_BYTES && verify(null, message, key, signature);
}

/**
 * Keys of notes as text (c2sp.org/signed-note, "Verifier keys"; the private form is that of golang.org/x/mod). They are
 * Ed25519 keys (RFC 8032).
 */
import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { fromBase64, MalformedEvidenceError } from './parsing.js';

/** The signature type of a log's notes; below it, that of a witness' cosignatures. */
export const ED25519_NOTE = 1;
export const COSIGNATURE_V1 = 4;
type SignatureType = typeof ED25519_NOTE | typeof COSIGNATURE_V1;

interface VerifierKey {
  readonly name: string;
  /** A hash of 32 bits over name, type and public key. Name and id together identify the key. */
  readonly keyId: number;
  readonly type: SignatureType;
  readonly publicKey: Buffer;
}

/** Text that identifies a key, in messages and as a key of maps. */
export const keyName = ({ name, keyId }: { name: string; keyId: number }): string => `${name}+${hex(keyId)}`;

/** Whether a text may name a key: not empty, without Unicode spaces and `+`. */
export const isKeyName = (name: string): boolean => name.isWellFormed() && /^[^\p{White_Space}+]+$/u.test(name);

function keyIdOf(name: string, type: SignatureType, publicKey: Uint8Array): number {
  const named = Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([type]), publicKey]);
  return hash('sha256', named, 'buffer').readUInt32BE();
}

/** @throws MalformedEvidenceError for a name that no key may have */
export function verifierKey(name: string, type: SignatureType, publicKey: Buffer): VerifierKey {
  if (!isKeyName(name)) throw new MalformedEvidenceError("a key's name is not empty and has neither spaces nor +");
  return { name, keyId: keyIdOf(name, type, publicKey), type, publicKey };
}

/** The verifier key ("vkey") as text: `name+hash+base64`. */
export const formatVerifierKey = (key: VerifierKey): string =>
  `${keyName(key)}+${Buffer.concat([Buffer.from([key.type]), key.publicKey]).toString('base64')}`;

/** @throws MalformedEvidenceError */
export function parseVerifierKey(text: string): VerifierKey {
  const found = /^([^+]+)\+([\da-f]{8})\+(.+)$/su.exec(text);
  if (found === null) throw new MalformedEvidenceError("a verifier's key is name+8 hex digits+base64");
  const [, name, id, encoded] = found as unknown as [string, string, string, string];
  const { type, bytes } = typed(encoded);
  const key = verifierKey(name, type, bytes);
  if (hex(key.keyId) !== id)
    throw new MalformedEvidenceError(`the verifier's key of ${name} has another id than ${id}`);
  return key;
}

/** The signer's key, a secret, as text: `PRIVATE+KEY+name+hash+base64`. @param seed 32 random bytes */
export function formatSignerKey(name: string, type: SignatureType, seed: Uint8Array): string {
  const key = verifierKey(name, type, ed25519Key(seed).publicKey);
  return `${PRIVATE}${keyName(key)}+${Buffer.concat([Buffer.from([type]), seed]).toString('base64')}`;
}

interface SignerKey {
  readonly key: VerifierKey;
  sign(message: Uint8Array): Buffer;
}

/** @throws MalformedEvidenceError, whose message does not contain the key */
export function parseSignerKey(text: string): SignerKey {
  const found = /^PRIVATE\+KEY\+([^+]+)\+([\da-f]{8})\+(.+)$/su.exec(text);
  if (found === null) throw new MalformedEvidenceError("a signer's key is PRIVATE+KEY+name+8 hex digits+base64");
  const [, name, id, encoded] = found as unknown as [string, string, string, string];
  const { type, bytes } = typed(encoded);
  const { publicKey, sign } = ed25519Key(bytes);
  const key = verifierKey(name, type, publicKey);
  if (hex(key.keyId) !== id) throw new MalformedEvidenceError(`the signer's key of ${name} has another id than ${id}`);
  return { key, sign };
}

const PRIVATE = 'PRIVATE+KEY+';

const hex = (keyId: number): string => keyId.toString(16).padStart(8, '0');

function typed(encoded: string): { type: SignatureType; bytes: Buffer } {
  const all = fromBase64(encoded, 'a key');
  const [type] = all;
  if (type !== ED25519_NOTE && type !== COSIGNATURE_V1)
    throw new MalformedEvidenceError('a key is of a type that is not known: Ed25519 is 1, a cosignature/v1 4');
  if (all.length !== 1 + KEY_BYTES) throw new MalformedEvidenceError(`an Ed25519 key has ${KEY_BYTES} bytes`);
  return { type, bytes: all.subarray(1) };
}

const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/** The DER prefixes (RFC 8410) before the 32 bytes of a private key and of a public one. */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

interface Ed25519Key {
  readonly publicKey: Buffer;
  sign(message: Uint8Array): Buffer;
}

/** @param seed 32 random bytes: the private key */
function ed25519Key(seed: Uint8Array): Ed25519Key {
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

/** Cosignatures of witnesses (c2sp.org/tlog-cosignature, Ed25519) over a checkpoint and the time of the cosignature. */
import { ed25519Verifier, SIGNATURE_BYTES } from './ed25519.js';
import { MalformedEvidenceError } from './errors.js';
import { COSIGNATURE_V1, parseSignerKey, parseVerifierKey } from './noteKeys.js';
import type { NoteSignature, NoteSigner, NoteVerifier } from './signedNote.js';

const TIME_BYTES = 8;
const LATEST = 253_402_300_799n;

/** Signs checkpoints with the time of the signature. @param now seconds since 1970 */
export function cosigner(signerKey: string, now: () => number): NoteSigner {
  const { key, sign } = parseSignerKey(signerKey);
  if (key.type !== COSIGNATURE_V1) throw new MalformedEvidenceError(`the key of ${key.name} makes no cosignatures`);
  return {
    name: key.name,
    keyId: key.keyId,
    sign(body) {
      const time = Buffer.alloc(TIME_BYTES);
      time.writeBigUInt64BE(BigInt(now()));
      return Buffer.concat([time, sign(signedText(time.readBigUInt64BE(), body))]);
    },
  };
}

/** A cosignature without a time, or with one after the year 9999, is not valid. */
export function cosignatureVerifier(verifierKey: string): NoteVerifier {
  const { name, keyId, type, publicKey } = parseVerifierKey(verifierKey);
  if (type !== COSIGNATURE_V1) throw new MalformedEvidenceError(`the key of ${name} is none of cosignatures`);
  const verify = ed25519Verifier(publicKey);
  return {
    name,
    keyId,
    verify(body, signature) {
      if (signature.length !== TIME_BYTES + SIGNATURE_BYTES) return false;
      const bytes = Buffer.from(signature);
      const time = bytes.readBigUInt64BE();
      return time > 0n && time <= LATEST && verify(signedText(time, body), bytes.subarray(TIME_BYTES));
    },
  };
}

/** The time of a valid cosignature, seconds since 1970. */
export const cosignedAt = ({ signature }: NoteSignature): number => Number(signature.readBigUInt64BE());

const signedText = (time: bigint, body: string): Buffer => Buffer.from(`cosignature/v1\ntime ${time}\n${body}`);

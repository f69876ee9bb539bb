/** The keys that sign heads of the tree (SEAL_KEY), and what verifies them. */
import { hkdfSync } from 'node:crypto';
import { ED25519_NOTE, formatSignerKey, formatVerifierKey, parseSignerKey } from '../format/noteKeys.js';
import { type NoteSigner, noteSigner, type NoteVerifier, noteVerifier } from '../format/signedNote.js';

/** Permanent name of a log: `host/log/{log id}`. It is also the name of the log's keys. */
export const originOf = (host: string, logId: string): string => `${host}/log/${logId}`;

export interface HeadKeys {
  readonly signers: readonly NoteSigner[];
  readonly verifiers: readonly NoteVerifier[];
  /** Public keys as text, for parties that verify: `name+hash+base64`. */
  readonly verifierKeys: readonly string[];
}

/** Ed25519 keys, made of the texts of SEAL_KEY by HKDF-SHA-256 (RFC 5869). All of them sign. */
export function headKeys(texts: readonly string[], origin: string): HeadKeys {
  const signerKeys = texts.map((text) =>
    formatSignerKey(origin, ED25519_NOTE, Buffer.from(hkdfSync('sha256', text, '', 'gift-commerce seal key', 32))),
  );
  const verifierKeys = signerKeys.map((key) => formatVerifierKey(parseSignerKey(key).key));
  return { signers: signerKeys.map(noteSigner), verifiers: verifierKeys.map(noteVerifier), verifierKeys };
}

/** Known verifiers of an origin. Where an origin has none, none of its signatures is verified. */
export type VerifiersOf = (origin: string) => readonly NoteVerifier[];

/**
 * Verifiers made from SEAL_KEY, and the `given` ones of the same origin.
 * @param keys texts of SEAL_KEY
 */
export function verifiersOf(keys: readonly string[], given: readonly NoteVerifier[] = []): VerifiersOf {
  const known = new Map<string, readonly NoteVerifier[]>();
  return (origin) => {
    const own = known.get(origin) ?? headKeys(keys, origin).verifiers;
    known.set(origin, own);
    const others = given.filter(({ name, keyId }) => name === origin && !own.some((one) => one.keyId === keyId));
    return [...own, ...others];
  };
}

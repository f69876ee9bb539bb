/** Signed notes (c2sp.org/signed-note): a text, and lines of signatures below it. */
import { ED25519_NOTE, ed25519Verifier, isKeyName, keyName, parseSignerKey, parseVerifierKey } from './noteKeys.js';
import { MalformedEvidenceError, UnknownSignersError, UntrustedNoteError } from './parsing.js';

export interface NoteSigner {
  readonly name: string;
  readonly keyId: number;
  sign(body: string): Uint8Array;
}

export interface NoteVerifier {
  readonly name: string;
  readonly keyId: number;
  verify(body: string, signature: Uint8Array): boolean;
}

export interface NoteSignature {
  readonly name: string;
  readonly keyId: number;
  /** Bytes of the signature, without the key's id. */
  readonly signature: Buffer;
}

export interface ParsedNote {
  /** The signed text, with the newline that ends it. */
  readonly body: string;
  readonly signatures: readonly NoteSignature[];
}

const MAX_BYTES = 1_000_000;
const MAX_SIGNATURES = 100;
const DASH = '\u2014 ';
const KEY_ID_BYTES = 4;
const BASE64 = /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/;

/** @throws MalformedEvidenceError for a signer's key of another type than Ed25519 notes */
export function noteSigner(signerKey: string): NoteSigner {
  const { key, sign } = parseSignerKey(signerKey);
  if (key.type !== ED25519_NOTE) throw new MalformedEvidenceError(`the key of ${key.name} signs no notes`);
  return { name: key.name, keyId: key.keyId, sign: (body) => sign(Buffer.from(body)) };
}

/** @throws MalformedEvidenceError for a verifier's key of another type than Ed25519 notes */
export function noteVerifier(verifierKey: string): NoteVerifier {
  const { name, keyId, type, publicKey } = parseVerifierKey(verifierKey);
  if (type !== ED25519_NOTE) throw new MalformedEvidenceError(`the key of ${name} is none of notes`);
  const verify = ed25519Verifier(publicKey);
  return { name, keyId, verify: (body, signature) => verify(Buffer.from(body), signature) };
}

/** @param body ends with a newline @throws MalformedEvidenceError for a body that no note may have */
export function signNote(body: string, signers: readonly NoteSigner[]): string {
  return withSignatures(`${body}\n`, signatures(body, signers));
}

/** The signatures of a text without the text, as a witness sends them. */
export function signatures(body: string, signers: readonly NoteSigner[]): NoteSignature[] {
  checkText(body);
  if (!body.endsWith('\n')) throw new MalformedEvidenceError('the text of a note ends with a newline');
  return signers.map((signer) => ({
    name: signer.name,
    keyId: signer.keyId,
    signature: Buffer.from(signer.sign(body)),
  }));
}

/** The note with added signatures below its own. */
export function withSignatures(note: string, added: readonly NoteSignature[]): string {
  return note + added.map(formatSignature).join('');
}

/** The signature as a line of a note, with its newline. */
export function formatSignature({ name, keyId, signature }: NoteSignature): string {
  if (!isKeyName(name)) throw new MalformedEvidenceError("a key's name is not empty and has neither spaces nor +");
  const id = Buffer.alloc(KEY_ID_BYTES);
  id.writeUInt32BE(keyId);
  return `${DASH}${name} ${Buffer.concat([id, signature]).toString('base64')}\n`;
}

/** Parses a note without verifying any signature: its content is not to be trusted. @throws MalformedEvidenceError */
export function parseNote(note: string | Uint8Array): ParsedNote {
  const text = typeof note === 'string' ? note : decoded(note);
  checkText(text);
  const end = text.lastIndexOf('\n\n');
  if (end < 0) throw new MalformedEvidenceError('a note has an empty line before its signatures');
  return { body: text.slice(0, end + 1), signatures: parseSignatures(text.slice(end + 2)) };
}

/** Parses lines of signatures, at least one. @throws MalformedEvidenceError */
export function parseSignatures(lines: string): NoteSignature[] {
  if (!lines.endsWith('\n')) throw new MalformedEvidenceError('a note ends with lines of signatures');
  const all = lines.slice(0, -1).split('\n');
  if (all.length > MAX_SIGNATURES)
    throw new MalformedEvidenceError(`a note has more than ${MAX_SIGNATURES} signatures`);
  return all.map(parseSignature);
}

/**
 * Parses a note and verifies its signatures by the known keys. Unknown keys are ignored, also where they share a name
 * or an id with a known one.
 * @returns the first valid signature of each known key
 * @throws MalformedEvidenceError; UnknownSignersError where no known key signed; UntrustedNoteError where a known key's
 * signature is invalid
 */
export function openNote(note: string | Uint8Array, verifiers: readonly NoteVerifier[]): ParsedNote {
  const { body, signatures: all } = parseNote(note);
  const known = new Map(verifiers.map((verifier) => [keyName(verifier), verifier]));
  if (known.size < verifiers.length) throw new MalformedEvidenceError('two known keys have the same name and id');
  const valid = new Map<string, NoteSignature>();
  for (const found of all) {
    const name = keyName(found);
    const verifier = known.get(name);
    if (verifier === undefined) continue;
    if (!verifier.verify(body, found.signature))
      throw new UntrustedNoteError(`the signature of ${name} is not valid for this text`);
    if (!valid.has(name)) valid.set(name, found);
  }
  if (valid.size === 0) throw new UnknownSignersError('no known key has signed this note');
  return { body, signatures: [...valid.values()] };
}

function parseSignature(line: string): NoteSignature {
  const [name, encoded, ...others] = line.startsWith(DASH) ? line.slice(DASH.length).split(' ') : [];
  if (name === undefined || encoded === undefined || others.length > 0 || !isKeyName(name))
    throw new MalformedEvidenceError('a signature is a line of an em dash, the name of a key, and base64');
  // Bits after the last byte are ignored, as in other implementations: an unknown key's signature must not fail a note.
  if (!BASE64.test(encoded)) throw new MalformedEvidenceError('a signature is not base64');
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.length <= KEY_ID_BYTES) throw new MalformedEvidenceError('a signature has an id and at least one byte');
  return { name, keyId: bytes.readUInt32BE(), signature: bytes.subarray(KEY_ID_BYTES) };
}

function decoded(note: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(note);
  } catch (cause) {
    throw new MalformedEvidenceError('a note is UTF-8', { cause });
  }
}

/** Control characters below U+0020, but newlines. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\0-\x09\x0b-\x1f]/;

function checkText(text: string): void {
  if (text.length > MAX_BYTES) throw new MalformedEvidenceError(`a note has more than ${MAX_BYTES} characters`);
  if (!text.isWellFormed()) throw new MalformedEvidenceError('a note is UTF-8');
  if (CONTROL.test(text)) throw new MalformedEvidenceError('a note has no control characters but newlines');
}

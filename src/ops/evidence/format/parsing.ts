/**
 * Errors about evidence, and strict parsers: each value has one text form, so two different texts never parse equal.
 */
/** What was given as evidence proves nothing; the subclasses say why. */
export class EvidenceError extends Error {}

/** A leaf, tile, note, checkpoint, proof or request does not have its format. The message names the fault. */
export class MalformedEvidenceError extends EvidenceError {
  override readonly name = 'MalformedEvidenceError';
}

/** For `catch` of a promise: none where what was read is malformed. @throws every other error */
export function noneIfMalformed(error: unknown): undefined {
  if (error instanceof MalformedEvidenceError) return undefined;
  throw error;
}

/** What `read` returns; `undefined`: it is malformed. @throws every other error */
export function unlessMalformed<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    return noneIfMalformed(error);
  }
}

/** A note without a valid signature of a known key, or with an invalid one. */
export class UntrustedNoteError extends EvidenceError {
  override readonly name = 'UntrustedNoteError';
}

/** A note was signed by unknown keys only. */
export class UnknownSignersError extends UntrustedNoteError {}

/** The log of a checkpoint does not have an event, or not with the content that a bundle shows. */
export class UnprovenEventError extends EvidenceError {
  override readonly name = 'UnprovenEventError';
}

/**
 * Decodes base64 (RFC 4648, section 4) with padding, without set bits after the last byte.
 * @throws MalformedEvidenceError naming `what`
 */
export function fromBase64(text: string, what: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw new MalformedEvidenceError(`${what} is not base64`);
  return bytes;
}

export const HASH_BYTES = 32;

/** Decodes a SHA-256 hash from base64. @throws MalformedEvidenceError naming `what` */
export function hashFromBase64(text: string, what: string): Buffer {
  const hash = fromBase64(text, what);
  if (hash.length !== HASH_BYTES) throw new MalformedEvidenceError(`${what} has ${hash.length} bytes, not 32`);
  return hash;
}

/** Parses a decimal number without leading zeroes, up to 2^53-1. @throws MalformedEvidenceError naming `what` */
export function fromDecimal(text: string, what: string): number {
  const value = Number(text);
  if (!/^(0|[1-9]\d*)$/.test(text) || !Number.isSafeInteger(value))
    throw new MalformedEvidenceError(`${what} is not a decimal number from 0 to 2^53-1`);
  return value;
}

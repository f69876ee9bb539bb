/** Strict parsers of base64 and numbers: each value has one text form, so two different texts never parse equal. */
import { MalformedEvidenceError } from './errors.js';

/**
 * Decodes base64 (RFC 4648, section 4) with padding, without set bits after the last byte.
 * @throws MalformedEvidenceError naming `what`
 */
export function fromBase64(text: string, what: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw new MalformedEvidenceError(`${what} is no base64`);
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
    throw new MalformedEvidenceError(`${what} is no decimal number from 0 to 2^53-1`);
  return value;
}

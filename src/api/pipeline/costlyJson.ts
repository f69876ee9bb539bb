import { HttpError } from './errors.js';

/** Limits on nested levels, fields of one object, and names of fields in a long body. No schema has half as many. */
const MOST_LEVELS = 32;
const MOST_FIELDS = 256;
const MOST_NAMES = 256;
/** Number of marks from which names are compared: a body with fewer marks is never costly. */
const MARKS_OF_A_LONG_BODY = 1_000;
/** Number of fields so far in the object that is open at each level. */
const fields = new Int32Array(MOST_LEVELS + 1);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Refuses JSON that takes long to parse and to check for its length. A value costs some thirty times as much as a
 * character of text, a name that no earlier object had even more. The bytes are scanned once, before anything else
 * reads them.
 * @param marks the most opening braces and brackets, colons and commas outside strings
 * @throws HttpError `malformed_json` for more than 32 levels; `request_too_large` for more marks, more than 256 fields
 * of one object, or more than 256 different names
 */
export function refuseCostlyJson(bytes: Uint8Array, marks: number): void {
  let depth = 0;
  let seen = 0;
  let nameAt = 0;
  let nameEnd = 0;
  let names: Set<number> | undefined;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        nameAt = at;
        nameEnd = at = endOfString(bytes, at);
        continue;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > MOST_LEVELS) throw new HttpError('malformed_json');
        fields[depth] = 0;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        continue;
      case 0x3a: // :
        if (++(fields[depth] as number) > MOST_FIELDS) throw new HttpError('request_too_large');
        if (seen > MARKS_OF_A_LONG_BODY && (names ??= new Set()).add(hashOf(bytes, nameAt, nameEnd)).size > MOST_NAMES)
          throw new HttpError('request_too_large');
        break;
      case 0x2c: // ,
        break;
      default:
        continue;
    }
    if (++seen > marks) throw new HttpError('request_too_large');
  }
}

/** The 32-bit FNV-1a hash of a part of the bytes. */
function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  return hash;
}

/** The offset of the closing quote, or beyond the end. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (let byte = bytes[at]; byte !== undefined && byte !== QUOTE; byte = bytes[at]) at += byte === BACKSLASH ? 2 : 1;
  return at;
}

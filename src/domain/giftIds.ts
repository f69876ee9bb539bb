/**
 * Gift ids and shortcodes: two spellings of the same random 80 bits (docs/decisions.md#gift-ids). An id is 20
 * hexadecimal digits, a shortcode 16 characters of Crockford's base 32 (no I, L, O, U).
 */
import { createHash } from 'node:crypto';
import { BASE32 } from './base32.js';

const BYTES = 10;
const ID = /^[0-9a-f]{20}$/;
const SHORTCODE = /^[0-9A-HJKMNP-TV-Z]{16}$/;

export interface GiftIds {
  readonly gift_id: string;
  readonly message_id: string;
}

export function shortcodeOf(giftId: string): string {
  let code = '';
  for (let at = 0; at < 20; at += 5) {
    const bits = Number.parseInt(giftId.slice(at, at + 5), 16);
    code +=
      BASE32.charAt((bits >>> 15) & 31) +
      BASE32.charAt((bits >>> 10) & 31) +
      BASE32.charAt((bits >>> 5) & 31) +
      BASE32.charAt(bits & 31);
  }
  return code;
}

/** A shortcode's case does not matter; O is read as 0, I and L as 1 (Crockford). */
export function giftIdOf(identifier: string): string | undefined {
  if (ID.test(identifier)) return identifier;
  if (identifier.length !== 16) return undefined;
  const code = identifier.toUpperCase().replaceAll('O', '0').replaceAll(/[IL]/g, '1');
  if (!SHORTCODE.test(code)) return undefined;
  let id = '';
  for (let at = 0; at < 16; at += 4) {
    let bits = 0;
    for (const letter of code.slice(at, at + 4)) bits = bits * 32 + BASE32.indexOf(letter);
    id += bits.toString(16).padStart(5, '0');
  }
  return id;
}

/** SHAKE256 of a purchase's random 256-bit seed (hexadecimal), 80 bits for each id. */
export function deriveGiftIds(seed: string, count: number): GiftIds[] {
  const idsAt = giftIdsIn(seed, count);
  return Array.from({ length: count }, (_, index) => idsAt(index));
}

/** As `deriveGiftIds`, one gift at a time; `index` is below `count`. */
export function giftIdsIn(seed: string, count: number): (index: number) => GiftIds {
  const output = createHash('shake256', { outputLength: count * BYTES * 2 })
    .update(seed, 'hex')
    .digest('hex');
  return (index) => {
    const at = index * BYTES * 4;
    return { gift_id: output.slice(at, at + 20), message_id: output.slice(at + 20, at + 40) };
  };
}

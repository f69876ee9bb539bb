/**
 * Gift ids and shortcodes (docs/api/gifts.md#gift-ids). An id is 80 random bits as 20 hexadecimal digits, and names a
 * gift. A shortcode is a permutation of these bits under HASH_KEY, as 16 characters of Crockford's base 32 (no I, L, O,
 * U). It opens the gift: without the key it can't be derived from the id.
 */
import { createCipheriv, createHash } from 'node:crypto';
import { INVISIBLE } from '../lib/invisible.js';
import { BASE32 } from '../lib/base32.js';
import type { KeyedHash } from './keyedHash.js';

const BYTES = 10;
const ID = /^[0-9a-f]{20}$/;
const SHORTCODE = /^[0-9A-HJKMNP-TV-Z]{16}$/;
/**
 * Four rounds are a strong pseudorandom permutation (Luby and Rackoff, 1988). Of pairs that a caller knows but can't
 * choose, the best attack takes 2^40 (Patarin, 2001): more gifts than there ever are.
 */
const ROUNDS = [0, 1, 2, 3] as const;
const BACKWARDS = ROUNDS.toReversed();

export interface GiftIds {
  readonly gift_id: string;
  readonly message_id: string;
}

export const isGiftId = (text: string): boolean => ID.test(text);

export const isShortcode = (text: string): boolean => lettersIn(text) !== undefined;

/** Maximum length in characters of a text that is read as a shortcode. */
const MOST_TYPED = 64;
/** Characters to skip: those with which people group letters or scanners end a code, and invisible ones. */
const BETWEEN_LETTERS = new RegExp(`[\\s\\p{Dash}\\p{Cc}${INVISIBLE}]+`, 'gu');
/** Full-width forms of the ASCII characters, as Japanese and Chinese keyboards also write them. */
const FULL_WIDTH = /[\uff01-\uff5e]/g;
const FULL_WIDTH_OFFSET = 0xfee0;

/**
 * The letters of a shortcode that a person typed or a scanner sent (docs/api/gifts.md#gift-ids). The case does not
 * matter; O is read as 0, I and L as 1 (Crockford).
 */
function lettersIn(text: string): string | undefined {
  if (SHORTCODE.test(text)) return text;
  if (text.length > MOST_TYPED) return undefined;
  const letters = text
    .replaceAll(FULL_WIDTH, (letter) => String.fromCharCode(letter.charCodeAt(0) - FULL_WIDTH_OFFSET))
    .replaceAll(BETWEEN_LETTERS, '');
  // Checked before `toUpperCase`, which turns some letters outside ASCII into ASCII ones.
  if (/[^0-9a-z]/i.test(letters)) return undefined;
  const read = letters.toUpperCase().replaceAll('O', '0').replaceAll(/[IL]/g, '1');
  return SHORTCODE.test(read) ? read : undefined;
}

export interface Shortcodes {
  of(giftId: string): string;
  /** The gift's id, from an id or a shortcode; `undefined`: the text is neither. */
  giftIdOf(identifier: string): string | undefined;
}

/** A balanced Feistel network, whose round function is AES-128: a library's FF1 takes ten times as long. */
export function shortcodesUnder(hash: KeyedHash): Shortcodes {
  const key = Buffer.from(hash('shortcode', ''), 'base64url');
  const cipher = createCipheriv('aes-128-ecb', key, null);
  const block = Buffer.alloc(16);
  /** Permutes the words in place; each half of the network is two words. */
  const permute = (words: Words, rounds: readonly number[]): Words => {
    for (const round of rounds) {
      const half = round % 2 === 0 ? 0 : 2;
      block.writeUInt32LE(round, 0);
      block.writeUInt32LE(words[half], 4);
      block.writeUInt32LE(words[half === 0 ? 1 : 3], 8);
      const mask = cipher.update(block);
      words[half === 0 ? 2 : 0] ^= mask.readUInt32LE(0) & WORD;
      words[half === 0 ? 3 : 1] ^= mask.readUInt32LE(4) & WORD;
    }
    return words;
  };
  return {
    of: (giftId) => lettersOf(permute(wordsOf(giftId), ROUNDS)),
    giftIdOf(identifier) {
      if (isGiftId(identifier)) return identifier;
      const letters = lettersIn(identifier);
      return letters === undefined ? undefined : digitsOf(permute(wordsIn(letters), BACKWARDS));
    },
  };
}

/** Four words of 20 bits each: five hexadecimal digits of an id, or four letters of a shortcode. */
type Words = [number, number, number, number];
const WORD = 0xfffff;

const wordsOf = (id: string): Words => [wordAt(id, 0), wordAt(id, 5), wordAt(id, 10), wordAt(id, 15)];

const wordAt = (id: string, at: number): number => Number.parseInt(id.slice(at, at + 5), 16);

const digitsOf = (words: Words): string => words.map((word) => word.toString(16).padStart(5, '0')).join('');

const wordsIn = (code: string): Words => [wordIn(code, 0), wordIn(code, 4), wordIn(code, 8), wordIn(code, 12)];

function wordIn(code: string, at: number): number {
  let bits = 0;
  for (let letter = at; letter < at + 4; letter++) bits = bits * 32 + BASE32.indexOf(code.charAt(letter));
  return bits;
}

function lettersOf(words: Words): string {
  let code = '';
  for (const word of words) for (let bits = 15; bits >= 0; bits -= 5) code += BASE32.charAt((word >>> bits) & 31);
  return code;
}

/** Ids of a purchase's gifts: SHAKE256 of the purchase's random 256-bit seed (hexadecimal), 80 bits for each id. */
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

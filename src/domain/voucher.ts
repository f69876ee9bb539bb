/** docs/api/vouchers.md#voucher-expiry */
import { BASE32 } from '../lib/base32.js';

const CODE_LENGTH = 12;
const DAY_MS = 86_400_000;

/** Ids of the integrations whose brands have V1 vouchers (docs/api/vouchers.md#generate-a-v1-voucher). */
export const V1_INTEGRATIONS: ReadonlySet<string> = new Set(['1', '2', '3', '4', '5', '6']);

/** Check character by Luhn's algorithm modulo 32, which finds every single wrong character and most swaps. */
function checkCharacter(code: string): string {
  let sum = 0;
  let factor = 2;
  for (const letter of [...code].reverse()) {
    const addend = factor * BASE32.indexOf(letter);
    factor = factor === 2 ? 1 : 2;
    sum += Math.floor(addend / 32) + (addend % 32);
  }
  return BASE32.charAt((32 - (sum % 32)) % 32);
}

/** A code of 60 random bits and a check character, made from at least 12 random bytes. */
export function generateCode(random: Uint8Array): string {
  const code = Array.from(random.subarray(0, CODE_LENGTH), (byte) => BASE32.charAt(byte & 31)).join('');
  return code + checkCharacter(code);
}

export const PINS = 10_000;

/** PIN of four digits, from a random whole number below `PINS`. */
export const pinOf = (random: number): string => String(random).padStart(4, '0');

/**
 * Time at which a voucher expires: the end of the gift's last valid day (UTC), or `segmentDays` after `now` (ISO 8601)
 * if that is earlier.
 */
export function voucherExpiry(now: string, expiresOn: string, segmentDays: number): string {
  const endOfGift = Date.parse(expiresOn) + DAY_MS - 1;
  return new Date(Math.min(endOfGift, Date.parse(now) + segmentDays * DAY_MS)).toISOString();
}

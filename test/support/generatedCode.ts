/** Voucher codes that the service made up. */
import { BASE32 } from '../../src/domain/base32.js';
import { generateCode } from '../../src/domain/voucher.js';

/** Whether a generated code is spelled right: the same characters have that check character. */
export function isGeneratedCode(code: string): boolean {
  const letters = [...code].map((letter) => BASE32.indexOf(letter));
  return letters.length === 13 && !letters.includes(-1) && generateCode(Uint8Array.from(letters.slice(0, -1))) === code;
}

/** Ids that a command gives to what it makes: the same for every repetition of the command. */
import { createHash } from 'node:crypto';

/** `bits` of a SHA-256 over the command's id, in hexadecimal; the command's id can't be found from it. */
export function idFrom(
  commandId: string,
  kind: 'transaction' | 'redemption' | 'voucher' | 'refund',
  bits: 80 | 128 = 80,
): string {
  return createHash('sha256')
    .update(`${kind}\0${commandId}`)
    .digest('hex')
    .slice(0, bits / 4);
}

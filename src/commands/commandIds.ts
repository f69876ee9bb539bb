/** Ids that a command gives to what it makes: the same for every repetition of the command. */
import { createHash } from 'node:crypto';

/**
 * The id of what a command makes: hexadecimal, `bits` of a SHA-256 over the command's id; it does not tell the
 * command's id.
 */
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

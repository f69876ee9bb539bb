import { createHash } from 'node:crypto';

/**
 * An id that is the same for every repetition of the command. It has `bits` of a SHA-256, so that the command's id
 * can't be derived from it.
 */
export function idFrom(
  commandId: string,
  kind: 'transaction' | 'redemption' | 'voucher' | 'refund' | 'block' | 'webhookEndpoint' | 'webhookSecret',
  bits: 80 | 128 = 80,
): string {
  return createHash('sha256')
    .update(`${kind}\0${commandId}`)
    .digest('hex')
    .slice(0, bits / 4);
}

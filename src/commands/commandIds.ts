import { createHash } from 'node:crypto';

/** The same for every repetition of the command. `bits` of a SHA-256: the command's id can't be derived from it. */
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

/**
 * Events that a reset leaves in the log (docs/api/sandbox.md#starting-again): those that imports wrote, and erasures of
 * persons.
 */
import { ACCOUNT_KINDS, type ReservationKind } from '../../domain/account.js';
import { CATALOGUE_KINDS } from '../../domain/catalogue.js';
import { RESTORED_STREAM } from '../../domain/restored.js';
import { kindOf } from '../../domain/streamName.js';
import type { VoucherCodeEvent } from '../../domain/voucherCode.js';
import type { WalletEvent } from '../../domain/wallet.js';

const WHOLE: ReadonlySet<string> = new Set([
  ...CATALOGUE_KINDS,
  ...ACCOUNT_KINDS,
  ...(['username', 'phone'] as const satisfies readonly ReservationKind[]),
]);

/**
 * Types in streams that purchases write to as well, and whether a reset leaves them. A code is assigned for good, so it
 * is free where its assignment is left out.
 */
const IN_PART: ReadonlyMap<string, boolean> = new Map(
  Object.entries({
    VoucherCodeAdded: true,
    VoucherCodeChanged: true,
    VoucherCodeWithdrawn: true,
    VoucherCodeAssigned: false,
    WalletToppedUp: true,
    WalletDebited: false,
    WalletDebitRefused: false,
    WalletCredited: false,
  } satisfies Record<(VoucherCodeEvent | WalletEvent)['type'], boolean>),
);

export function survivesReset(stream: string, type: string): boolean {
  // This stream tells from where on the keys of a restored log fit.
  return WHOLE.has(kindOf(stream)) || stream === RESTORED_STREAM || IN_PART.get(type) === true;
}

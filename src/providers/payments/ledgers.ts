/** The ledger of the payment provider that the settings choose. */
import type { PaymentLedger } from '../../ports/paymentLedger.js';
import type { Records } from '../../ports/readStore.js';
import type { ProviderSettings } from '../settings.js';

/**
 * Loads what it needs; the libraries are large, so only that of the provider is. What it gives opens the ledger for one
 * comparison: such a ledger may remember what it has read. It holds nothing open.
 */
export async function providersLedger(
  { stripe }: Pick<ProviderSettings, 'stripe'>,
  records: Records,
): Promise<() => PaymentLedger> {
  if (stripe !== undefined) {
    const { stripeLedger } = await import('./stripeLedger.js');
    return () => stripeLedger(stripe);
  }
  const { simulatedLedger } = await import('./simulatedLedger.js');
  return () => simulatedLedger(records);
}

import type { PaymentLedger } from '../../ports/paymentLedger.js';
import type { Records } from '../../ports/readStore.js';
import type { ProviderSettings } from '../settings.js';

/** Loads only the chosen provider's library. The result opens the ledger for one comparison; it holds nothing open. */
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

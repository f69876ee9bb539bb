/** The ledger of the payment provider that the settings choose. */
import type { PaymentLedger } from '../../ports/paymentLedger.js';
import type { Records } from '../../ports/readStore.js';
import type { ProviderSettings } from '../../providerSettings.js';

/** Opens it; it holds nothing open. The libraries are large: only that of the provider is loaded. */
export async function providersLedger({ stripe }: Pick<ProviderSettings, 'stripe'>, records: Records): Promise<PaymentLedger> {
  if (stripe !== undefined) return (await import('./stripeLedger.js')).stripeLedger(stripe);
  return (await import('./simulatedLedger.js')).simulatedLedger(records);
}
